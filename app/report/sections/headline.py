"""How it ended, and the numbers that say how big it was; what no task told is None."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from app.eventlog.model import Totals
from app.report import intervals
from app.report.scope import Scope

ALL_CORES: Final = 1.02
"""A share of busy cores from which on some cores cannot have been told; clocks of hosts differ a little."""
Mood = Literal["good", "bad", "unsure"]


@dataclass(frozen=True, slots=True)
class Headline:
    """Outcome and numbers; times in milliseconds, sizes in bytes, shares from 0 to 1."""

    outcome: str
    mood: Mood
    error: str | None
    duration: float
    tasks: int
    failed_tasks: int
    rows_read: int | None
    rows_written: int | None
    bytes_read: int | None
    bytes_written: int | None
    shuffled: int | None
    spilled: int | None
    gc_share: float | None
    cpu_share: float | None
    cores_busy: float | None
    cores: int | None
    idle: float
    idle_share: float | None
    jobs: int
    stages: int
    queries: int


def headline(scope: Scope) -> Headline:
    """The numbers of all that is in scope."""
    totals = [stage.totals for stage in scope.stages if stage.shuffle_read_bytes]
    run_ms, period = _sum(totals, lambda each: each.run_ms), scope.period
    outcome, mood, error = _outcome(scope)
    idle = sum(gap.length for gap in intervals.gaps(intervals.of_tasks(scope.stages), period))
    return Headline(
        outcome=outcome,
        mood=mood,
        error=error,
        duration=period.length,
        tasks=sum(len(stage.durations_ms) for stage in scope.stages),
        failed_tasks=sum(stage.failed for stage in scope.stages),
        rows_read=_told(totals, lambda each: each.input_records, lambda each: each.input_bytes),
        rows_written=_told(totals, lambda each: each.output_records, lambda each: each.output_bytes),
        bytes_read=_told(totals, lambda each: each.input_bytes, lambda each: each.input_records),
        bytes_written=_told(totals, lambda each: each.output_bytes, lambda each: each.output_records),
        shuffled=_sum(totals, lambda each: each.shuffle_write_bytes),
        spilled=_sum(totals, lambda each: each.disk_spilled),
        gc_share=_ratio(_sum(totals, lambda each: each.gc_ms), run_ms),
        cpu_share=_ratio(_sum(totals, lambda each: each.cpu_ns / 1e6), run_ms),
        cores_busy=_cores_busy(scope),
        cores=sum(executor.cores for executor in scope.app.executors.values() if executor.removed is None) or None,
        idle=idle,
        idle_share=_ratio(idle, period.length),
        jobs=len(scope.jobs),
        stages=len(scope.stages),
        queries=len(scope.queries),
    )


def _outcome(scope: Scope) -> tuple[str, Mood, str | None]:
    if scope.run is not None:
        return _outcome_of_run(scope)
    app = scope.app
    failed = [job for job in scope.jobs if job.has_failed]
    error = next((job.failure for job in reversed(failed) if job.failure), None)
    if app.exit_code:
        return f"failed with exit code {app.exit_code}", "bad", error
    if app.ended is None:
        return "no end in its log: still at work, or killed", "unsure", error
    if failed:
        return f"ended; {len(failed):,} of {len(scope.jobs):,} jobs failed", "bad", error
    return ("succeeded" if app.exit_code == 0 else "ended, no job failed"), "good", None


def _outcome_of_run(scope: Scope) -> tuple[str, Mood, str | None]:
    run = scope.run
    record = run.record if run else None
    if run is None or record is None or run.is_at_work:
        return "no end: still at work, or killed", "unsure", None
    return record.outcome.replace("_", " "), "good" if record.outcome == "succeeded" else "bad", record.error


def _cores_busy(scope: Scope) -> float | None:
    """Time of tasks over time of cores; unknown where the log has not told of all executors: more than all is none."""
    cores, cpus = intervals.of_cores(scope.app.executors.values(), scope.period.end), scope.app.task_cpus
    busy = intervals.within(((task, cpus) for task in intervals.of_tasks(scope.stages)), scope.period)
    share = _ratio(busy, intervals.within(cores, scope.period))
    return None if share is None or share > ALL_CORES else share


def _sum(totals: list[Totals], of: Callable[[Totals], float]) -> int | None:
    return round(sum(of(each) for each in totals)) if totals else None


def _told(totals: list[Totals], of: Callable[[Totals], int], other: Callable[[Totals], int]) -> int | None:
    """A sum; unknown where there are bytes without rows or rows without bytes, which some sources do not count."""
    total = _sum(totals, of)
    return None if total == 0 and _sum(totals, other) else total


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole
