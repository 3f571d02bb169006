import pytest

from spark_app.report.limits import Limits
from spark_app.report.scope import scope
from spark_app.report.sections.executors import executors
from tests.unit.eventlog import log
from tests.unit.report import made
from tests.unit.report.conftest import Read


def test_running_tasks_are_at_most_the_cores(reading: Read) -> None:
    """A task whose result is still on its way to the driver overlaps the next one on its core."""
    tasks = [made.ended_task(number, 0, 2200 + 900 * number, 1000) for number in range(9)]
    lines = [log.executor("1", cores=1), log.job(0, [0]), log.stage(0, tasks=9), *tasks]
    shown = executors(scope(reading([log.started(), *lines, log.ended(13_000)]).app, None), Limits())
    assert max(shown.tasks) == shown.top == pytest.approx(1.0)
    assert all(running <= cores for running, cores in zip(shown.tasks, shown.cores, strict=True))


def test_tasks_of_a_log_without_executors_are_shown(reading: Read) -> None:
    """There is nothing that they could exceed."""
    lines = [log.started(), log.job(0, [0]), log.stage(0), made.ended_task(0, 0, 2200, 5000), log.ended()]
    assert max(executors(scope(reading(lines).app, None), Limits()).tasks) == pytest.approx(1.0)


def test_running_tasks_are_at_most_the_slots(reading: Read) -> None:
    """Three cores run one task of two cores, and not one and a half."""
    tasks = [made.ended_task(number, 0, 2200 + 900 * number, 1000) for number in range(9)]
    lines = [log.environment({"spark.task.cpus": "2"}), log.executor("1", cores=3), log.job(0, [0]), log.stage(0)]
    shown = executors(scope(reading([log.started(), *lines, *tasks, log.ended(13_000)]).app, None), Limits())
    assert (max(shown.tasks), shown.top) == (1, 3)
