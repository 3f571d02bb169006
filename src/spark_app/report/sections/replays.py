"""What replays of the schedule say: blocked time, and how long it would have taken with changes."""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from spark_app.eventlog.document import Count, Known, Ms, Name, StageKey
from spark_app.eventlog.replay import limitations, what_if
from spark_app.eventlog.replay.blocked_time import BlockedTime, blocked_time
from spark_app.eventlog.replay.critical_path import CriticalStep, critical_path
from spark_app.eventlog.replay.what_if import Change, Forecast
from spark_app.eventlog.replay.work import Work
from spark_app.report.charts import across
from spark_app.report.intervals import Interval
from spark_app.report.scope import Scope, stage_name

MAX_STEPS: Final = 200
"""Steps of the critical path that are drawn, and in the document."""
MAX_LISTED: Final = 10


class PathStep(Struct, frozen=True):
    """A step of the critical path: the driver, or a stage from its first task to its last one on the path.

    `after_ms` is when it began, after the start; `last_task_ms` is how long of it the last task ran.
    """

    kind: Literal["driver", "stage"]
    after_ms: Ms
    duration_ms: Ms
    last_task_ms: Ms | None
    stage: StageKey | None
    job: Known
    name: Name


class CriticalPath(Struct, frozen=True):
    """What the end of the application waited for; the steps follow one another.

    `steps` has the longest 200 of `total`; `driver_ms` is the time in which the driver alone was at work.
    """

    length_ms: Ms
    driver_ms: Ms
    total: Count
    steps: list[PathStep]

    @property
    def longest(self) -> list[PathStep]:
        """The steps that are listed, the longest first."""
        return sorted(self.steps, key=lambda step: -step.duration_ms)[:MAX_LISTED]

    def across(self, time_ms: float) -> float:
        """Where a time after the start is in the drawing."""
        return across(time_ms, Interval(0, self.length_ms))


class Replays(Struct, frozen=True):
    """What replays of the schedule say, on the same cores and with changes.

    `error_ratio` is how far the replay of what was is off, positive if it is too long. `blocked_time` has the causes
    that Spark measured, most saved first. `forecasts` are those of other cores, or of the changes that were asked for.
    `remarks` say why there is no blocked time and no critical path.
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
    work = scope.work
    if work is None:
        return None
    remarks = limitations.of_replays(work)
    forecasts = scope.forecasts if changes is None else what_if.forecasts(work, changes)
    if remarks:
        return Replays(work.error, [], forecasts, None, remarks)
    return Replays(work.error, blocked_time(work), forecasts, _path(scope, work), remarks)


def _path(scope: Scope, work: Work) -> CriticalPath:
    """The critical path with its longest steps."""
    steps = critical_path(work)
    driver_ms = sum(step.length_ms for step in steps if step.stage is None)
    longest = sorted(steps, key=lambda step: -step.length_ms)[:MAX_STEPS]
    shown = [_step(scope, work, step) for step in sorted(longest, key=lambda step: step.started)]
    return CriticalPath(work.took_ms, driver_ms, len(steps), shown)


def _step(scope: Scope, work: Work, step: CriticalStep) -> PathStep:
    after_ms, stage = step.started - work.start, step.stage
    if stage is None or step.last_launched is None:
        return PathStep("driver", after_ms, step.length_ms, None, None, None, "")
    last_task_ms = step.ended - max(step.started, step.last_launched)
    key, name = StageKey(stage.info.id, stage.info.attempt), stage_name(scope, stage)
    return PathStep("stage", after_ms, step.length_ms, last_task_ms, key, stage.job, name)
