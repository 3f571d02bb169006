"""Stages of a report."""

from pathlib import Path

import pytest

from spark_app.report import page
from spark_app.report.limits import Limits
from spark_app.report.scope import scope
from spark_app.report.sections.stages import Stage, stages
from tests.unit.eventlog import log
from tests.unit.report import made
from tests.unit.report.conftest import Read


def listed(reading: Read, *lines: log.Line) -> list[Stage]:
    """The stages of a report."""
    return stages(scope(reading([log.started(), *lines, log.ended(90_000)]).app, None), Limits()).shown


def test_the_median_of_two_tasks_is_the_longer_one(reading: Read) -> None:
    """As in Spark's own UI: two tasks are no skew of 35 x."""
    tasks = [made.ended_task(0, 0, 2200, 1000), made.ended_task(1, 0, 2200, 35_000)]
    (stage,) = listed(reading, log.job(0, [0]), log.stage(0, tasks=2), *tasks, log.stage(0, end=40_000, tasks=2))
    assert stage.task_times is not None
    assert (stage.task_times.median_ms, stage.skew) == (35_000, 1.0)


@pytest.mark.parametrize(("longest", "ticks"), [(90, [10, 100]), (900, [10, 100, 1000]), (9000, [10, 10_000])])
def test_the_axis_of_task_times_has_labels_that_fit(reading: Read, longest: int, ticks: list[int]) -> None:
    """At its ends, and in its middle where that is a power of ten."""
    tasks = [made.ended_task(0, 0, 2200, 11), made.ended_task(1, 0, 2200, longest)]
    lines = [log.started(), log.job(0, [0]), log.stage(0, tasks=2), *tasks, log.ended(90_000)]
    assert [time for _, time in stages(scope(reading(lines).app, None), Limits()).ticks] == ticks


def test_the_job_group_and_the_pool_of_a_stage_are_shown(reading: Read, tmp_path: Path) -> None:
    """Those that the program set; the group of a streaming query is an id."""
    properties = {"spark.jobGroup.id": "nightly", "spark.scheduler.pool": "etl"}
    lines = [log.job(0, [0], **properties), log.stage(0), log.task(0, 0), log.stage(0, end=2900), log.job_ended(0)]
    (stage,) = listed(reading, *lines)
    assert (stage.group, stage.pool) == ("nightly", "etl")
    content = page.write(reading([log.started(), *lines, log.ended()]), output=tmp_path / "r.html").path.read_text()
    assert "0: save at job.py:7, group nightly, pool etl" in content
    assert 'job group <span class="foreign">nightly</span>' in content
    (stage,) = listed(reading, log.job(0, [0], **properties, **{"sql.streaming.queryId": "q"}), *lines[1:])
    assert (stage.group, stage.pool) == (None, "etl")
