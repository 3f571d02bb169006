from typing import Any, Final

import pytest

from spark_app.eventlog.diagnoses import outside_wait
from spark_app.eventlog.diagnoses.stage import StageView
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import DEFAULTS, settings, stage, task
from tests.unit.eventlog.log import Line

WAITING: Final[dict[str, Any]] = {
    "Executor CPU Time": 1_000_000_000,
    "Executor Deserialize Time": 12,
    "Executor Deserialize CPU Time": 10_000_000,
}
"""A second of work in a minute, on a host where computing takes a fifth longer."""


def wait(*tasks: list[Line]) -> outside_wait.OutsideWait | None:
    """The wait of a stage of a minute."""
    begin, *rest = stage(tasks, seconds=60, cores=2)
    app = log.application([begin, settings(master="local[2]"), *rest])
    return outside_wait.outside_wait(StageView(app, app.stages[0, 0], DEFAULTS))


def test_a_wait_is_the_longer_the_less_the_host_can_have_delayed_the_tasks() -> None:
    """59 s without a processor: a second of work may have taken 4.8 s, 1.2 s or one."""
    found = wait(task(0, 60, **WAITING))
    assert found is not None
    assert (found.run_ms, found.worked_ms) == (60_000, 1000)
    assert [found.least_ms, found.usual_ms, found.most_ms] == pytest.approx([55_200, 58_800, 59_000])


def test_attempts_that_were_killed_do_not_count() -> None:
    """Spark counts their run time, and no time on a processor: two such minutes are no wait of a task that works."""
    works = WAITING | {"Executor CPU Time": 40_000_000_000}
    copies = [task(number, 60, **WAITING | {"Executor CPU Time": 0}) for number in (1, 2)]
    for _, end in copies:
        end["Task Info"] |= {"Killed": True, "Speculative": True}
    assert wait(task(0, 60, **works), *copies) is None
    found = wait(task(0, 60, **WAITING), *copies)
    assert found is not None
    assert (found.run_ms, found.most_ms) == (60_000, 59_000)
