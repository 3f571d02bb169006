"""Where the clock of the driver was set back, times are put in order, and that is counted."""

from typing import Any, Final

from spark_app.eventlog.comparison.wallclock import wall_clock
from spark_app.eventlog.model.clock import SLACK_MS, Clock
from tests.eventlogs import walking
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses import cases
from tests.unit.eventlog.log import Line

TIMES: Final = ("Timestamp", "Submission Time", "Completion Time", "Launch Time", "Finish Time", "time")


def set_back(line: Line, moment: int, ms: int) -> Line:
    """A line with the times of a clock that was set back at a moment."""
    changed: dict[str, Any] = {}
    for key, value in line.items():
        if isinstance(value, dict):
            changed[key] = set_back(value, moment, ms)
        elif key in TIMES and value > moment:
            changed[key] = value - ms
    return line | changed


def application() -> list[Line]:
    """A query with a job, a stage and two tasks."""
    lines = cases.stage([cases.task(0, 1), cases.task(1, 2)], seconds=3)
    lines[2] = log.job(0, [0], time=cases.BEGAN, **{"spark.sql.execution.id": "0"})
    end = cases.BEGAN + 3000
    return [*lines[:2], log.query(0, time=cases.BEGAN - 10), *lines[2:], log.query_ended(0, time=end), log.ended(end)]


def test_an_end_before_its_start_is_its_start() -> None:
    """Wherever the clock is set back: nothing takes less than no time, all is within its parent, and it is counted."""
    assert log.application(application()).clock.corrections == 0
    for moment in range(cases.BEGAN - 10, cases.BEGAN + 3000, 250):
        app, spans = log.read(set_back(line, moment, 5000) for line in application())
        assert app.clock.corrections > 0, moment
        assert app.clock.largest_ms <= 5000
        walking.assert_is_forest(app, spans.values())
        assert min(span.ended - span.started for span in spans.values()) >= 0
        stage = app.stages[0, 0]
        assert min(stage.durations_ms) >= 0
        clock = wall_clock(app)
        assert min(clock.startup, clock.end, *(clock.parts[0, 0].work, clock.parts[0, 0].idle)) >= 0
        assert app.usage.wall_ms <= app.last - (app.started or 0)


def test_a_failed_query_ends_no_earlier_than_its_stages() -> None:
    """Spark logs the end of its jobs after that of the query; by the clock of before, their tasks ended later."""
    begun = [log.started(), log.query(0), log.job(0, [0], **{"spark.sql.execution.id": "0"}), log.stage(0)]
    work = [log.task(0, 0, seconds=20), log.stage(0, end=2900, error="x")]
    over = [log.query_ended(0, time=2910, error="x"), log.job_ended(0, time=2920, error="x"), log.ended(2930)]
    app, spans = log.read([*begun, *work, *over])
    walking.assert_is_forest(app, spans.values())
    assert [app.queries[0].ended, app.jobs[0].completed, app.stages[0, 0].info.completed] == [22_200] * 3


def test_a_task_that_ends_before_its_launch_took_no_time() -> None:
    """A comparison divided by zero here, where the log has no executor."""
    lines = cases.stage([cases.task(0, -1.49, **{"Executor Run Time": 0})], seconds=3)
    app = log.application([lines[0], *lines[2:]])
    assert list(app.stages[0, 0].durations_ms) == [0]
    assert (app.clock.corrections, app.clock.largest_ms) == (1, 1490)
    assert wall_clock(app).parts[0, 0].work == 0


def test_threads_of_the_driver_may_stamp_times_out_of_order() -> None:
    """By some milliseconds, which no clock has to be blamed for; an end before its own start is no such thing."""
    clock = Clock()
    assert [clock.start(900, 1000), clock.end(1000, 900, 1000 + SLACK_MS)] == [1000, 1000 + SLACK_MS]
    assert clock.corrections == 0
    assert [clock.start(899, 1000), clock.end(999, 1000)] == [1000, 1000]
    assert (clock.corrections, clock.largest_ms) == (2, 101)


def test_a_known_start_may_be_missing() -> None:
    """Of the whole, or of the thing itself."""
    assert (Clock().start(5, None), Clock().end(5, None, None)) == (5, 5)


def test_lost_output_took_no_negative_time() -> None:
    """The second end of a task has the times of the first one, which a clock that was set back has disordered."""
    line = cases.task(0, -1.49, executor="0", **{"Executor Run Time": 0})
    lines = cases.stage([line], seconds=3)
    again = log.resubmitted(line[1])
    app = log.application([*lines[:-2], again, *lines[-2:], log.removed(time=14_000, reason="Container killed")])
    assert (app.stages[0, 0].resubmitted_ms, app.executors["0"].lost_task_ms) == (0, 0)
