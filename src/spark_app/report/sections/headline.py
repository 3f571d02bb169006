"""The top of a report: the outcome, the size of the work, and what of the log could not be read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from spark_app.eventlog.model.entities import Totals
from spark_app.eventlog.model.outcome import BAD, GOOD, ending_of
from spark_app.eventlog.model.shares import cpu_share, gc_share
from spark_app.eventlog.reader import Reading
from spark_app.formatting import quantity
from spark_app.report import intervals
from spark_app.report.scope import Scope

ALL_CORES: Final = 1.02
"""A higher share of busy cores means that the log lacks executors; clocks of hosts differ a little."""
Mood = Literal["good", "bad", "unsure"]


@dataclass(frozen=True, slots=True)
class Headline:
    """Outcome and numbers; times in milliseconds, sizes in bytes, shares from 0 to 1; None if not reported."""

    outcome: str
    mood: Mood
    error: str | None
    duration: float
    tasks: int
    completed_tasks: int
    failed_tasks: int
    rows_read: int | None
    rows_written: int | None
    bytes_read: int | None
    is_input_missed: bool
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
    """Outcome and sums over all jobs, stages and tasks in scope."""
    totals = [stage.totals for stage in scope.stages if stage.shuffle_read_bytes]
    period, is_missed = scope.period, any(stage.is_input_missed for stage in scope.stages)
    outcome, mood, error = _outcome(scope)
    idle = sum(gap.length for gap in intervals.gaps(intervals.of_tasks(scope.stages), period))
    return Headline(
        outcome=outcome,
        mood=mood,
        error=error,
        duration=period.length,
        tasks=sum(len(stage.durations_ms) for stage in scope.stages),
        completed_tasks=sum(stage.completed for stage in scope.stages),
        failed_tasks=sum(stage.failed for stage in scope.stages),
        rows_read=_counted(totals, lambda each: each.input_records, lambda each: each.input_bytes),
        rows_written=_counted(totals, lambda each: each.output_records, lambda each: each.output_bytes),
        bytes_read=None
        if is_missed
        else _counted(totals, lambda each: each.input_bytes, lambda each: each.input_records),
        is_input_missed=is_missed,
        bytes_written=_counted(totals, lambda each: each.output_bytes, lambda each: each.output_records),
        shuffled=_sum(totals, lambda each: each.shuffle_write_bytes),
        spilled=_sum(totals, lambda each: each.disk_spilled),
        gc_share=gc_share(totals, scope.app.task_cpus),
        cpu_share=cpu_share(totals),
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
    ending = ending_of(scope.app)
    mood: Mood = "bad" if ending.outcome in BAD else "good" if ending.outcome in GOOD else "unsure"
    return ending.text, "unsure" if mood == "good" and ending.failed_jobs else mood, ending.error


def _outcome_of_run(scope: Scope) -> tuple[str, Mood, str | None]:
    run = scope.run
    record = run.record if run else None
    if run is None or record is None or run.is_running:
        return "no end: still running, or killed", "unsure", None
    return record.outcome.replace("_", " "), "good" if record.outcome == "succeeded" else "bad", record.error


def _cores_busy(scope: Scope) -> float | None:
    """Task time over core time; None where the log lacks executors, so that more cores would be busy than there are."""
    cores, cpus = intervals.of_cores(scope.app.executors.values(), scope.period.end), scope.app.task_cpus
    busy = intervals.within(((task, cpus) for task in intervals.of_tasks(scope.stages)), scope.period)
    share = _ratio(busy, intervals.within(cores, scope.period))
    return None if share is None or share > ALL_CORES else min(1.0, share)


def _sum(totals: list[Totals], of: Callable[[Totals], float]) -> int | None:
    return round(sum(of(each) for each in totals)) if totals else None


def _counted(totals: list[Totals], of: Callable[[Totals], int], other: Callable[[Totals], int]) -> int | None:
    """A sum; unknown where there are bytes without rows or rows without bytes, which some sources do not count."""
    total = _sum(totals, of)
    return None if total == 0 and _sum(totals, other) else total


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def unread(reading: Reading, scope: Scope, *, is_live: bool = False) -> list[str]:
    """What the report lacks because the log, or a file of the run, could not be read: a sentence each.

    That the log has no end yet is no lack of a page that follows it.
    """
    return list(_unread(reading, scope, is_live=is_live))


def _unread(reading: Reading, scope: Scope, *, is_live: bool) -> Iterator[str]:
    app, run = reading.app, scope.run
    if app.ended is None and not is_live:
        yield "The log has no end: the application is still running or was killed. Times end with the last event."
    yield from reading.remarks
    if app.started is None:
        yield "The log lacks the start of the application: what happened before its first job is unknown."
    if run is not None and run.unread:
        yield f"Skipped {quantity(run.unread, 'unreadable line')} in the files of the run."
    if run is not None and run.trouble is not None:
        yield f"The report has no page of the model: {run.trouble}."
    if run is not None and run.trace_id is None:
        yield "The run was not traced: the report shows what Spark did between its start and its end."
