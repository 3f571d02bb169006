"""Attempts of stages: how long their tasks took, how unevenly, and what they moved."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.eventlog.events import TaskEnd
from app.eventlog.groups import group_of
from app.eventlog.model import StageAttempt, Totals
from app.report.limits import Limits
from app.report.scope import Scope

QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
_LEAST_MS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Spread:
    """Task times in milliseconds at 5, 25, 50, 75, 95 and 100 %, and where they lie on the axis of all, in percent."""

    times: tuple[float, ...]
    at: tuple[float, ...]

    @property
    def skew(self) -> float | None:
        """The longest over the median."""
        return self.times[5] / self.times[2] if self.times[2] else None


@dataclass(frozen=True, slots=True)
class Task:
    """One attempt of a task, how it ended, and why if it did not end well; its time in milliseconds."""

    index: int
    attempt: int
    place: str
    duration: float
    how: str
    why: str


@dataclass(frozen=True, slots=True)
class Stage:
    """One attempt of a stage; times in milliseconds; `totals` is None where no task told its metrics."""

    anchor: str
    id: int
    attempt: int
    name: str
    group: str
    status: str
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
    slowest: list[Task]
    troubled: list[Task]


@dataclass(frozen=True, slots=True)
class Stages:
    """The longest, in the order of their starts; `ticks` of the axis of task times: percent and milliseconds."""

    shown: list[Stage]
    total: int
    ticks: list[tuple[float, float]]


def stages(scope: Scope, limits: Limits) -> Stages:
    """The stage attempts that took longest; failed ones before all others."""
    ranked = sorted(scope.stages, key=lambda stage: (stage.info.failure is None, -_weight(stage)))
    chosen = sorted(ranked[: limits.stages], key=lambda stage: (stage.info.submitted or 0, stage.info.id))
    spreads = [_quantiles(stage.durations_ms) for stage in chosen]
    low, high = _axis([spread for spread in spreads if spread])
    shown = [
        _stage(scope, stage, limits, _spread(spread, low, high)) for stage, spread in zip(chosen, spreads, strict=True)
    ]
    return Stages(shown, len(scope.stages), _ticks(low, high))


def _weight(stage: StageAttempt) -> float:
    if stage.info.submitted is not None and stage.info.completed is not None:
        return stage.info.completed - stage.info.submitted
    return sum(stage.durations_ms)


def _quantiles(durations: Sequence[int]) -> tuple[float, ...] | None:
    """By nearest rank: each is the time of a task that there was."""
    if not durations:
        return None
    ordered = sorted(durations)
    return tuple(float(ordered[max(0, math.ceil(share * len(ordered)) - 1)]) for share in QUANTILES)


def _axis(spreads: Sequence[tuple[float, ...]]) -> tuple[float, float]:
    """Powers of ten around all times."""
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
    return [((power - low) / (high - low) * 100, 10**power) for power in range(int(low), int(high) + 1)]


def _stage(scope: Scope, stage: StageAttempt, limits: Limits, spread: Spread | None) -> Stage:
    info = stage.info
    status = "failed" if info.failure else "done" if info.completed is not None else "not finished"
    return Stage(
        anchor=f"stage-{info.id}-{info.attempt}",
        id=info.id,
        attempt=info.attempt,
        name=info.name,
        group=scope.named(group_of(scope.app, stage)),
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
        slowest=[_task(task) for task in stage.slowest[: limits.tasks]] if len(stage.durations_ms) > 1 else [],
        troubled=[_task(task) for task in stage.kept[: limits.tasks]],
    )


def _task(task: TaskEnd) -> Task:
    info, reason = task.info, task.reason
    kinds = (("failed", info.has_failed), ("killed", info.was_killed), ("speculative", info.is_speculative))
    how = ", ".join(kind for kind, holds in kinds if holds) or ("retried" if info.attempt else "done")
    told = reason.description or reason.kill or reason.loss or ("" if reason.reason == "Success" else reason.reason)
    why = ": ".join(part for part in (reason.error_type, told) if part)
    place = f"executor {info.executor} on {info.host}"
    return Task(info.index, info.attempt, place, info.duration_ms, how, why)
