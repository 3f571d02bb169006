"""The top of a report: the outcome, the size of the work, and what of the log could not be read."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from spark_app.eventlog.model.occupancy import Utilization
from spark_app.eventlog.model.outcome import ending_of
from spark_app.eventlog.model.shares import cpu_share, gc_share
from spark_app.eventlog.model.task_numbers import moved, summed
from spark_app.eventlog.reader import Reading
from spark_app.formatting import quantity
from spark_app.report.formatting import Mood, mood
from spark_app.report.parts import Figures
from spark_app.report.scope import Scope
from spark_app.report.values import quotient, ratio, whole

ALL_CORES: Final = 1.02
"""A higher share of busy cores means that the log lacks executors; clocks of hosts differ a little."""


@dataclass(frozen=True, slots=True)
class Headline:
    """The outcome, and the figures of the JSON document, without what executors cost.

    Attributes:
        completed_tasks: Tasks that succeeded.
        is_input_missed: Whether Spark did not count bytes that were read.
    """

    outcome: str
    mood: Mood
    error: str | None
    figures: Figures
    completed_tasks: int
    is_input_missed: bool


def headline(scope: Scope) -> Headline:
    """Outcome and sums over all jobs, stages and tasks in scope."""
    outcome, mood, error = _outcome(scope)
    completed = sum(stage.completed for stage in scope.stages)
    return Headline(outcome, mood, error, _figures(scope), completed, _is_input_missed(scope))


def _is_input_missed(scope: Scope) -> bool:
    return any(stage.is_input_missed for stage in scope.stages)


def _figures(scope: Scope) -> Figures:
    totals = [stage.totals for stage in scope.stages if stage.shuffle_read_bytes]
    used = scope.occupancy.utilization
    known = moved(summed(totals)) if totals else {}
    return Figures(
        duration_ms=whole(scope.period.length),
        jobs=len(scope.jobs),
        stages=len(scope.stages),
        queries=len(scope.queries),
        tasks=sum(len(stage.durations_ms) for stage in scope.stages),
        failed_tasks=sum(stage.failed for stage in scope.stages),
        rows_read=known.get("rows_read"),
        bytes_read=None if _is_input_missed(scope) else known.get("bytes_read"),
        rows_written=known.get("rows_written"),
        bytes_written=known.get("bytes_written"),
        shuffled_bytes=known.get("shuffle_written_bytes"),
        spilled_bytes=known.get("spilled_bytes"),
        gc_ratio=ratio(gc_share(totals, scope.app.task_cpus)),
        cpu_ratio=ratio(cpu_share(totals)),
        cores=sum(executor.cores for executor in scope.app.executors.values() if executor.removed is None) or None,
        cores_busy_ratio=ratio(_cores_busy(used, scope.app.task_cpus)),
        idle_ms=whole(used.idle_ms),
        idle_ratio=ratio(quotient(used.idle_ms, used.wall_ms)),
    )


def _outcome(scope: Scope) -> tuple[str, Mood, str | None]:
    if scope.run is not None:
        return _outcome_of_run(scope)
    ending = ending_of(scope.app)
    shown = mood(ending.outcome)
    return ending.text, "unsure" if shown == "good" and ending.failed_jobs else shown, ending.error


def _outcome_of_run(scope: Scope) -> tuple[str, Mood, str | None]:
    run = scope.run
    record = run.record if run else None
    if run is None or record is None or run.is_running:
        return "no end: still running, or killed", "unsure", None
    return record.outcome.replace("_", " "), mood(record.outcome), record.error


def _cores_busy(used: Utilization, task_cpus: int) -> float | None:
    """Task time over core time; None where the log lacks executors, so that more cores would be busy than there are."""
    share = quotient(used.task_ms * task_cpus, used.core_ms)
    return None if share is None or share > ALL_CORES else min(1.0, share)


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
