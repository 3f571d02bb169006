"""What replays of the schedule say: blocked time, and how long it would have taken with changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from spark_app.eventlog.replay import doubts, what_if
from spark_app.eventlog.replay.blocked_time import BlockedTime, blocked_time
from spark_app.eventlog.replay.critical_path import Step, critical_path
from spark_app.eventlog.replay.what_if import Change, Forecast
from spark_app.eventlog.replay.work import Work
from spark_app.report.charts import across
from spark_app.report.intervals import Interval
from spark_app.report.scope import Scope, stage_name

MOST_STEPS: Final = 200
"""Steps of the critical path that are drawn, and in the document."""
MOST_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class PathStep:
    """A step of the critical path; times in milliseconds.

    Attributes:
        kind: The driver, or a stage.
        after_ms: When it began, after the start.
        duration_ms: How long it took.
        last_task_ms: How long of that the last task of the stage ran; None for the driver.
        stage: The id and the attempt of the stage; None for the driver.
        job: The job that the stage ran for first; None for the driver, and where it is not known.
        name: What the stage does.
    """

    kind: Literal["driver", "stage"]
    after_ms: float
    duration_ms: float
    last_task_ms: float | None
    stage: tuple[int, int] | None
    job: int | None
    name: str


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """What the end waited for, from the start on.

    Attributes:
        length_ms: How long it took.
        driver_ms: How long of that the driver alone was at work, or nothing was.
        steps: The longest steps, in the order of time.
        total: How many steps there are.
    """

    length_ms: float
    driver_ms: float
    steps: list[PathStep]
    total: int

    @property
    def longest(self) -> list[PathStep]:
        """The steps that are listed, the longest first."""
        return sorted(self.steps, key=lambda step: -step.duration_ms)[:MOST_LISTED]

    def across(self, time_ms: float) -> float:
        """Where a time after the start is in the drawing."""
        return across(time_ms, Interval(0, self.length_ms))


@dataclass(frozen=True, slots=True)
class Replays:
    """The replays of an application or of a run.

    Attributes:
        error_ratio: How far the replay of what was is off; positive if it is too long.
        blocked_time: What its tasks waited for, most saved first.
        forecasts: How long it would have taken with changes.
        critical_path: What its end waited for; None where no replay is to be believed.
        remarks: Why nothing is shown.
    """

    error_ratio: float
    blocked_time: list[BlockedTime]
    forecasts: list[Forecast]
    critical_path: CriticalPath | None
    remarks: list[str]


def replays(scope: Scope, changes: Sequence[Change] | None = None) -> Replays | None:
    """The replays; None where there is nothing to replay, as in a log without executors or with streaming queries.

    Args:
        scope: What they are of.
        changes: What is forecast; None for other cores.
    """
    done = scope.work
    if done is None:
        return None
    remarks = doubts.of_replays(done)
    forecasts = scope.forecasts if changes is None else what_if.forecasts(done, changes)
    if remarks:
        return Replays(done.error, [], forecasts, None, remarks)
    return Replays(done.error, blocked_time(done), forecasts, _path(scope, done), remarks)


def _path(scope: Scope, done: Work) -> CriticalPath:
    """The critical path with its longest steps."""
    steps = critical_path(done)
    driver_ms = sum(step.length_ms for step in steps if step.stage is None)
    longest = sorted(steps, key=lambda step: -step.length_ms)[:MOST_STEPS]
    shown = [_step(scope, done, step) for step in sorted(longest, key=lambda step: step.started)]
    return CriticalPath(done.took_ms, driver_ms, shown, len(steps))


def _step(scope: Scope, done: Work, step: Step) -> PathStep:
    after_ms, stage = step.started - done.start, step.stage
    if stage is None or step.last_launched is None:
        return PathStep("driver", after_ms, step.length_ms, None, None, None, "")
    last_task_ms = step.ended - max(step.started, step.last_launched)
    key, name = (stage.info.id, stage.info.attempt), stage_name(scope, stage)
    return PathStep("stage", after_ms, step.length_ms, last_task_ms, key, stage.job, name)
