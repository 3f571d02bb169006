from collections.abc import Iterator

import pytest

from tests.browser.chromium import Page, chromium


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One browser for all tests of a module."""
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened
