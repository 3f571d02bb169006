"""The same day twice, and two runs of it at once: the content is that of one undisturbed run.

`tests/chaos/test_kills.py` kills runs after each of their commits; `test_concurrent_reader.py` kills one.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.home import Home
from tests.integration.processes import PATIENCE_SECONDS, started
from tests.integration.repeated_day import RepeatedDay


@pytest.fixture(scope="module")
def day(new_home: Callable[[str], Home]) -> RepeatedDay:
    """The day, both times."""
    return RepeatedDay(new_home)


def test_the_same_day_twice_gives_the_same_content(day: RepeatedDay, tmp_path: Path) -> None:
    """A second run of the same files changes no row of any table; other files do."""
    home = day.twice.copied(tmp_path / "home")
    home.run()
    assert home.content() == day.content != day.first_content


def test_two_runs_of_a_day_at_once_both_succeed(day: RepeatedDay, tmp_path: Path) -> None:
    """Neither of two processes fails, and both together leave the content of one."""
    home = day.fresh.copied(tmp_path / "home")
    with started(home, stderr=tmp_path / "one") as one, started(home, stderr=tmp_path / "two") as two:
        codes = one.wait(PATIENCE_SECONDS), two.wait(PATIENCE_SECONDS)
    errors = [(tmp_path / name).read_text(encoding="utf-8") for name in ("one", "two")]
    assert codes == (0, 0), errors
    assert home.content() == day.first_content
