from collections.abc import Iterator

import pytest

from tests.e2e import asked
from tests.e2e.signals import COUNTED, SIGNALS, Seen
from tests.e2e.stack import Stack, etl


@pytest.fixture(scope="session")
def stack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """The full stack, up and healthy; it ends with the tests, unless somebody had started it before them."""
    stack = Stack()
    stack.up()
    out = request.config.get_terminal_writer()
    out.line(f"healthy after {stack.seconds:.0f} s; left out, as their images cannot be had here: {stack.left_out}")
    yield stack
    if not stack.was_up:
        stack.down()


@pytest.fixture(scope="session")
def day(stack: Stack) -> Seen:
    """One day, run once on the cluster."""
    before = {
        (metric, signals.pipeline): asked.number(f'sum({metric}{{pipeline_name="{signals.pipeline}"}})') or 0.0
        for metric in COUNTED.values()
        for signals in SIGNALS
    }
    runs = etl("2024-01-01")
    assert [run["outcome"] for run in runs] == ["succeeded", "succeeded"]
    return Seen({run["pipeline"]: run for run in runs}, before)
