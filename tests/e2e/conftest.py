from collections.abc import Iterator

import pytest

from tests.e2e.stack import Stack


@pytest.fixture(scope="session")
def stack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """The full stack, up and healthy; the containers end with the tests, the data stays."""
    stack = Stack()
    stack.up()
    out = request.config.get_terminal_writer()
    out.line(f"healthy after {stack.seconds:.0f} s; left out, as their images cannot be had here: {stack.left_out}")
    yield stack
    stack.down()
