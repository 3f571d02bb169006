"""Task attempts of a stage are counted as Spark counts them."""

from pathlib import Path
from typing import Final

from spark_app.eventlog.comparison import profiling
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.model.entities import MAX_FAILURES
from spark_app.eventlog.parse.log_tailer import ReadErrors
from spark_app.eventlog.reader import Reading
from tests.eventlogs import walking
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses import cases
from tests.unit.eventlog.log import Line

LOST: Final = [cases.task(number, 10, executor="1") for number in range(3)]
KEPT: Final = [cases.task(number, 10, executor="2") for number in range(3, 5)]
DYING: Final = cases.task(5, 4, begin=10, executor="1", loss="Container killed")
AGAIN: Final = [cases.task(number, 10, begin=15, executor="2") for number in range(6, 10)]


def lost_executor() -> list[Line]:
    """A stage of 6 tasks on two executors: one is lost with a running task and the output of three, which run again."""
    begin, *lines, end, over = cases.stage([*LOST, *KEPT], seconds=26, cores=2)
    gone = log.removed("1", time=cases.BEGAN + 14_100, reason="Container killed")
    again = [line for index, pair in enumerate(AGAIN) for line in _attempt(pair, index)]
    lost = [log.resubmitted(pair[1]) for pair in LOST]
    executors = [log.executor("1", cores=3), log.executor("2", cores=3)]
    return [begin, *executors, *lines, *DYING, gone, *lost, *again, end, over]


def _attempt(pair: list[Line], index: int) -> list[Line]:
    return [line | {"Task Info": line["Task Info"] | {"Index": index, "Attempt": 1}} for line in pair]


def test_a_task_whose_output_is_lost_has_completed_and_failed() -> None:
    """By Spark's rule; its time and its metrics count once, and no task is taken for an ended one while it runs."""
    app = log.application(lost_executor())
    stage = app.stages[0, 0]
    assert (stage.completed, stage.failed, stage.resubmitted, stage.killed) == (9, 4, 3, 0)
    assert (len(stage.durations_ms), sum(stage.durations_ms)) == (10, 94_000)
    assert stage.totals.run_ms == 90_000
    assert (app.running, app.is_whole) == (0, True)


def test_a_task_whose_result_is_lost_has_failed() -> None:
    """Spark logs it as not failed, and counts it as failed."""
    lost = log.task(1, 1) | {"Task End Reason": {"Reason": "TaskResultLost"}}
    del lost["Task Metrics"]
    app = log.application([log.started(), log.job(1, [1]), log.stage(1), lost])
    assert (app.stages[1, 0].completed, app.stages[1, 0].failed) == (0, 1)


def test_a_task_whose_output_is_lost_has_one_span() -> None:
    """A failed one, with the metrics of the attempt."""
    app, spans = log.read(lost_executor())
    walking.assert_is_forest(app, spans.values())
    lost = spans["task 1"]
    assert lost.failure is not None
    assert lost.failure.type == "Resubmitted"
    assert lost.attributes["spark.executor.run_time"] == 10_000
    assert spans["stage 0.0"].attributes["spark.stage.tasks.failed"] == 4


def test_a_lost_executor_costs_the_output_that_it_held() -> None:
    """Spark repeats these tasks in the same attempt of the stage; they did not fail by themselves."""
    found = cases.found(lost_executor(), Thresholds(cost_ms=0))
    assert "Lost 1 of 3 executors and 4 tasks" in found["lost_executors"].text
    assert found["lost_executors"].numbers["lost_task_ms"] == 34_000
    assert "failed_tasks" not in found


def test_a_task_that_the_log_has_twice_counts_once() -> None:
    """Wherever its second end stands, and whatever it says."""
    repeated = [*cases.task(0, 1), *cases.task(1, 2), *cases.task(0, 1, host="other")]
    begin, executor, job, stage, *_ = cases.stage([], seconds=3)
    app = log.application([begin, executor, job, stage, *repeated])
    assert [task.info.id for task in app.stages[0, 0].slowest] == [1, 0]


def test_lost_output_leaves_room_for_tasks_that_failed_by_themselves() -> None:
    """An executor may hold the output of thousands of tasks."""
    many = [cases.task(number, 1) for number in range(2 * MAX_FAILURES)]
    begin, executor, job, stage, *_ = cases.stage([], seconds=3)
    lost = [log.resubmitted(pair[1]) for pair in many]
    failed = [line for number in range(1000, 1020) for line in cases.task(number, 1, error="no")]
    lines = [begin, executor, job, stage, *(line for pair in many for line in pair), *lost, *failed]
    app = log.application(lines)
    assert sum(task.reason.reason == "ExceptionFailure" for task in app.stages[0, 0].kept) == 20
    assert app.stages[0, 0].failed_itself == 20


def test_what_lost_tasks_did_is_no_work_of_the_application() -> None:
    """A comparison takes it for time that was lost, not for more rows or more work."""
    lines = lost_executor()
    for line in lines:
        if "Task Metrics" in line:
            line["Task Metrics"] = line["Task Metrics"] | {"Input Metrics": {"Bytes Read": 90, "Records Read": 9}}
    reading = Reading(Path("app-1"), log.application(lines), ReadErrors(), 0, is_finished=True)
    (group,) = profiling.run_profile(reading).groups
    assert group.spent.wasted == 34_000
    assert group.spent.other == 60_000
    assert group.volume.input_records == 6 * 9
