"""Stage attempts: task times and their skew, data moved, failed tasks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import Struct, convert
from msgspec.structs import replace

from spark_app.eventlog.document import Count, Name
from spark_app.eventlog.model import call_sites
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.model.failures import OUTPUT_LOST
from spark_app.eventlog.model.shares import gc_share
from spark_app.eventlog.model.task_numbers import Totals, moved
from spark_app.eventlog.parse.events import RESUBMITTED, TaskEnd
from spark_app.report import parts
from spark_app.report.formatting import instant
from spark_app.report.groups import Group, grouped
from spark_app.report.limits import Limits
from spark_app.report.scope import Scope, scheduling, stage_name
from spark_app.report.values import whole

QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
_MIN_MS: Final = 1.0
_MEANING: Final = {"Success": "", RESUBMITTED: OUTPUT_LOST}
"""What to show for reasons without a text of their own."""


class Task(Struct):
    """A task attempt, how it ended and why it failed."""

    index: Count
    attempt: Count
    executor: Name
    duration_ms: Count
    how: str
    why: parts.TextIfAny | None


class Stage(parts.Stage, kw_only=True):
    """A stage attempt of the document, with what only a page draws.

    Attributes:
        totals: None where no task reported metrics.
        slowest, troubled: The longest tasks of several, and those that failed, were killed or retried.
    """

    call_site: str
    group: str | None
    pool: str | None
    speculative_tasks: int
    totals: Totals | None
    is_input_missed: bool
    slowest: list[Task]
    troubled: list[Task]

    @property
    def skew(self) -> float | None:
        """The longest task over the median one; None where no several tasks have ended."""
        times = self.task_times if self.ended_tasks > 1 else None
        return times.longest_ms / times.median_ms if times and times.median_ms else None


@dataclass(frozen=True, slots=True)
class Stages:
    """The longest stage attempts by start; `axis` are the powers of ten around all task times."""

    shown: list[Stage]
    total: int
    axis: tuple[int, int]

    @property
    def groups(self) -> list[Group[Stage]]:
        """The same in groups."""
        return grouped(self.shown)

    @property
    def ticks(self) -> list[tuple[float, float]]:
        """The ends of the axis, and its middle if that is a power of ten: more labels overlap in a narrow window."""
        low, high = self.axis
        step = (high - low) // 2 if (high - low) % 2 == 0 else high - low
        return [(self.at(10**power), 10**power) for power in range(low, high + 1, step)]

    def at(self, ms: float) -> float:
        """Where a task time is on the axis, in percent."""
        low, high = self.axis
        return round((math.log10(max(_MIN_MS, ms)) - low) / (high - low) * 100, 1)


def stages(scope: Scope, limits: Limits) -> Stages:
    """The failed stage attempts and the longest ones."""
    chosen = sorted(ranked(scope)[: limits.stages], key=lambda stage: (stage.info.submitted or 0, stage.info.id))
    shown = [of_attempt(scope, stage, limits) for stage in chosen]
    return Stages(shown, len(scope.stages), _axis([stage.task_times for stage in shown if stage.task_times]))


def ranked(scope: Scope) -> list[StageAttempt]:
    """All stage attempts: the failed ones first, then the longest."""
    return sorted(scope.stages, key=lambda stage: (stage.info.failure is None, -_weight(stage)))


def of_attempt(scope: Scope, stage: StageAttempt, limits: Limits) -> Stage:
    """One stage attempt."""
    info, job = stage.info, scope.app.job_of(stage)
    site = call_sites.parse(info.name)
    totals = stage.totals if stage.shuffle_read_bytes else None
    group, pool = scheduling([job] if job else [])
    return Stage(
        id=info.id,
        attempt=info.attempt,
        call_site=info.name if site is None or site.is_of_program else "",
        name=stage_name(scope, stage),
        group=group,
        pool=pool,
        status="failed" if info.failure else "done" if info.completed is not None else "not finished",
        error=info.failure,
        started=instant(info.submitted),
        duration_ms=whole(_time(stage)),
        tasks=info.tasks,
        ended_tasks=len(stage.durations_ms),
        failed_tasks=stage.failed,
        killed_tasks=stage.killed,
        speculative_tasks=stage.speculative,
        task_times=_task_times(stage.durations_ms),
        data=_data(totals, is_input_missed=stage.is_input_missed) if totals else None,
        totals=totals,
        gc_ratio=gc_share([totals], scope.app.task_cpus) if totals else None,
        is_input_missed=stage.is_input_missed,
        slowest=[_task(task) for task in stage.slowest[: limits.tasks]] if len(stage.durations_ms) > 1 else [],
        troubled=[_task(task) for task in stage.kept[: limits.tasks]],
    )


def _time(stage: StageAttempt) -> int | None:
    submitted, completed = stage.info.submitted, stage.info.completed
    return None if submitted is None or completed is None else completed - submitted


def _weight(stage: StageAttempt) -> int:
    time = _time(stage)
    return sum(stage.durations_ms) if time is None else time


def _task_times(durations: Sequence[int]) -> parts.TaskTimes | None:
    """Times of real tasks, by the rank that Spark takes in its UI; source: `AppStatusStore.taskSummary`."""
    if not durations:
        return None
    ordered = sorted(durations)
    return parts.TaskTimes(*(max(0, ordered[min(int(share * len(ordered)), len(ordered) - 1)]) for share in QUANTILES))


def _axis(times: Sequence[parts.TaskTimes]) -> tuple[int, int]:
    low = min((max(_MIN_MS, each.p5_ms) for each in times), default=_MIN_MS)
    high = max((max(_MIN_MS, each.longest_ms) for each in times), default=_MIN_MS)
    first = math.floor(math.log10(low))
    return first, max(math.ceil(math.log10(high)), first + 1)


def _data(totals: Totals, *, is_input_missed: bool) -> parts.Data:
    """What tasks moved; bytes that Spark did not count are unknown."""
    known = convert(moved(totals), parts.Data)
    return replace(known, bytes_read=None) if is_input_missed else known


def _task(task: TaskEnd) -> Task:
    info, reason = task.info, task.reason
    kinds = (("failed", info.has_failed), ("killed", info.was_killed), ("speculative", info.is_speculative))
    how = ", ".join(kind for kind, holds in kinds if holds) or ("retried" if info.attempt else "done")
    text = reason.description or reason.kill or reason.loss or _MEANING.get(reason.reason, reason.reason)
    why = ": ".join(part for part in (reason.error_type, text) if part)
    executor = f"executor {info.executor} on {info.host}"
    return Task(info.index, info.attempt, executor, info.duration_ms, how, why)
