"""Stage attempts: task times and their skew, data moved, failed tasks; and the Python functions that ran in them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from spark_app.eventlog import python_functions
from spark_app.eventlog.model import work_names
from spark_app.eventlog.model.entities import StageAttempt, Totals
from spark_app.eventlog.model.failures import OUTPUT_LOST
from spark_app.eventlog.model.shares import gc_share
from spark_app.eventlog.parse.events import RESUBMITTED, TaskEnd
from spark_app.eventlog.parse.locations import LogPath
from spark_app.eventlog.python_functions import Calls
from spark_app.report.groups import Group, grouped
from spark_app.report.limits import Limits
from spark_app.report.scope import Scope, Status, scheduling, stage_name

QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
_LEAST_MS: Final = 1.0
_MEANING: Final = {"Success": "", RESUBMITTED: OUTPUT_LOST}
"""What to show for reasons without a text of their own."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Task times in milliseconds at 5, 25, 50, 75, 95 and 100 %, and their positions on the axis in percent."""

    times: tuple[float, ...]
    at: tuple[float, ...]

    @property
    def skew(self) -> float | None:
        """The longest over the median."""
        return self.times[5] / self.times[2] if self.times[2] else None


@dataclass(frozen=True, slots=True)
class Task:
    """A task attempt, how it ended and why it failed; `duration` in milliseconds."""

    index: int
    attempt: int
    executor: str
    duration: float
    how: str
    why: str


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage attempt; times in milliseconds; `totals` is None where no task reported metrics."""

    anchor: str
    id: int
    attempt: int
    call_site: str
    name: str
    group: str | None
    pool: str | None
    status: Status
    failure: str | None
    started: float | None
    duration: float | None
    tasks: int
    ended: int
    failed: int
    killed: int
    speculative: int
    spread: Spread | None
    totals: Totals | None
    gc_share: float | None
    is_input_missed: bool
    slowest: list[Task]
    troubled: list[Task]


@dataclass(frozen=True, slots=True)
class Stages:
    """The longest stage attempts by start; `ticks` of the axis of task times (percent, milliseconds)."""

    shown: list[Stage]
    total: int
    ticks: list[tuple[float, float]]

    @property
    def groups(self) -> list[Group[Stage]]:
        """The same in groups."""
        return grouped(self.shown)


@dataclass(frozen=True, slots=True)
class Function:
    """The calls of an observed Python function in all attempts of a stage."""

    stage: int
    name: str
    calls: Calls


@dataclass(frozen=True, slots=True)
class Functions:
    """Python functions by stage, the longest first; `total` counts those that are not listed, too."""

    shown: list[Function]
    total: int


def functions(scope: Scope, limits: Limits, *, events: LogPath) -> Functions:
    """The Python functions that ran in the stages; none unless the program wraps them in `observed`.

    Args:
        scope: What the report is about.
        limits: How many are listed.
        events: The folder of the event log, beside which Python workers write their measurements.
    """
    stages = (stage.info.id for stage in scope.stages)
    calls = [Function(*each) for each in python_functions.in_stages(scope.app, stages, events)]
    calls.sort(key=lambda function: -function.calls.wall_us)
    return Functions(calls[: limits.stages], len(calls))


def stages(scope: Scope, limits: Limits) -> Stages:
    """The failed stage attempts and the longest ones."""
    chosen = sorted(ranked(scope)[: limits.stages], key=lambda stage: (stage.info.submitted or 0, stage.info.id))
    spreads = [_quantiles(stage.durations_ms) for stage in chosen]
    low, high = _axis([spread for spread in spreads if spread])
    shown = [
        _stage(scope, stage, limits, _spread(spread, low, high)) for stage, spread in zip(chosen, spreads, strict=True)
    ]
    return Stages(shown, len(scope.stages), _ticks(low, high))


def ranked(scope: Scope) -> list[StageAttempt]:
    """All stage attempts: the failed ones first, then the longest."""
    return sorted(scope.stages, key=lambda stage: (stage.info.failure is None, -_weight(stage)))


def of_attempt(scope: Scope, stage: StageAttempt, limits: Limits) -> Stage:
    """One stage attempt, with an axis of its own."""
    times = _quantiles(stage.durations_ms)
    return _stage(scope, stage, limits, _spread(times, *_axis([times] if times else [])))


def _weight(stage: StageAttempt) -> float:
    if stage.info.submitted is not None and stage.info.completed is not None:
        return stage.info.completed - stage.info.submitted
    return sum(stage.durations_ms)


def _quantiles(durations: Sequence[int]) -> tuple[float, ...] | None:
    """Times of real tasks, by the rank that Spark takes in its UI; source: `AppStatusStore.taskSummary`."""
    if not durations:
        return None
    ordered = sorted(durations)
    return tuple(float(ordered[min(int(share * len(ordered)), len(ordered) - 1)]) for share in QUANTILES)


def _axis(spreads: Sequence[tuple[float, ...]]) -> tuple[float, float]:
    """The powers of ten around all times."""
    low = min((max(_LEAST_MS, spread[0]) for spread in spreads), default=_LEAST_MS)
    high = max((max(_LEAST_MS, spread[-1]) for spread in spreads), default=_LEAST_MS)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return float(first), float(max(last, first + 1))


def _spread(times: tuple[float, ...] | None, low: float, high: float) -> Spread | None:
    if times is None:
        return None
    at = ((math.log10(max(_LEAST_MS, time)) - low) / (high - low) * 100 for time in times)
    return Spread(times, tuple(round(percent, 1) for percent in at))


def _ticks(low: float, high: float) -> list[tuple[float, float]]:
    """The ends of the axis, and its middle if that is a power of ten: more labels overlap in a narrow window."""
    step = int(high - low) // 2 if (high - low) % 2 == 0 else int(high - low)
    return [((power - low) / (high - low) * 100, 10**power) for power in range(int(low), int(high) + 1, step)]


def _stage(scope: Scope, stage: StageAttempt, limits: Limits, spread: Spread | None) -> Stage:
    info = stage.info
    status: Status = "failed" if info.failure else "done" if info.completed is not None else "not finished"
    job = scope.app.job_of(stage)
    group, pool = scheduling([job] if job else [])
    return Stage(
        anchor=f"stage-{info.id}-{info.attempt}",
        id=info.id,
        attempt=info.attempt,
        call_site="" if work_names.is_nowhere(info.name) else info.name,
        name=stage_name(scope, stage),
        group=group,
        pool=pool,
        status=status,
        failure=info.failure,
        started=info.submitted,
        duration=None if info.submitted is None or info.completed is None else info.completed - info.submitted,
        tasks=info.tasks,
        ended=len(stage.durations_ms),
        failed=stage.failed,
        killed=stage.killed,
        speculative=stage.speculative,
        spread=spread,
        totals=stage.totals if stage.shuffle_read_bytes else None,
        gc_share=gc_share([stage.totals], scope.app.task_cpus) if stage.shuffle_read_bytes else None,
        is_input_missed=stage.is_input_missed,
        slowest=[_task(task) for task in stage.slowest[: limits.tasks]] if len(stage.durations_ms) > 1 else [],
        troubled=[_task(task) for task in stage.kept[: limits.tasks]],
    )


def _task(task: TaskEnd) -> Task:
    info, reason = task.info, task.reason
    kinds = (("failed", info.has_failed), ("killed", info.was_killed), ("speculative", info.is_speculative))
    how = ", ".join(kind for kind, holds in kinds if holds) or ("retried" if info.attempt else "done")
    text = reason.description or reason.kill or reason.loss or _MEANING.get(reason.reason, reason.reason)
    why = ": ".join(part for part in (reason.error_type, text) if part)
    executor = f"executor {info.executor} on {info.host}"
    return Task(info.index, info.attempt, executor, info.duration_ms, how, why)
