"""Time in which no task ran or waited for an executor."""

from collections.abc import Sequence
from typing import Final

from spark_app.eventlog.diagnoses import settings_advice
from spark_app.eventlog.diagnoses.collected_rows import collected
from spark_app.eventlog.diagnoses.planning import planned
from spark_app.eventlog.diagnoses.query import query_name
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import Query
from spark_app.eventlog.model.occupancy import Kind, Stretch
from spark_app.formatting import duration, share

_STARTING: Final = (
    "Spark and the program started. Look for downloads (spark.jars.packages), slow imports, and files that the driver "
    "reads or lists before the first action; short programs gain from sharing one application."
)
_PLANNING: Final = (
    "List and commit fewer files, broadcast and collect less, and shorten plans that a loop of withColumn or union "
    "makes long."
)
_BETWEEN: Final = "Avoid toPandas and loops over rows in the driver, and run small jobs concurrently, in threads."
_THINKING: Final = " In a notebook, it may be the time of its user."
_ENDING: Final = "Stop the session after the last action, so that what the program does afterwards holds no executors."
_GAPS: Final[dict[Kind, tuple[str, str]]] = {
    "startup": ("before the first query or job", _STARTING),
    "planning": ("within queries and jobs", _PLANNING),
    "between": ("between queries and jobs", _BETWEEN),
    "ending": ("after the last query or job", _ENDING),
}
"""The kinds of time without a task that the driver is the cause of: where it was, and what to change."""


@rule(
    limits={
        "driver_gap_ms": Limit(
            10_000.0,
            "Driver gaps: time without a running task within queries, or between them, at least.",
            ge=0,
        ),
        "driver_batch_gap_ms": Limit(
            5000.0,
            "Driver gaps: the longest time between queries of a program that nobody types into, at least.",
            ge=0,
        ),
        "driver_edge_ms": Limit(
            60_000.0,
            "Driver gaps: time before the first query or after the last one, at least.",
            ge=0,
        ),
        "driver_gap_ratio": Limit(
            0.3,
            "Driver gaps: that time over the duration of the application, at least.",
            gt=0,
            le=1,
        ),
    },
)
def driver_gap(app: Application, limits: Thresholds) -> list[Finding]:
    """Time in which no task ran or waited for an executor.

    There is a finding for each kind of it: before the first query or job (Spark and the program start; analysis and
    listing of files for the first query are a part of it), within queries and jobs (the driver plans, lists,
    broadcasts, commits), between them, and after the last one.

    Evidence: the time of this kind, the longest stretch of it, and the query that it was in or before.
    Why: the cluster waits for one thread.
    Change: at the start downloads and imports; within queries list and commit fewer files, broadcast and collect less;
        between them set `spark.sql.execution.arrow.pyspark.enabled=true` for a `toPandas` without it, avoid loops over
        rows in the driver, and run small jobs in parallel, in threads; at the end stop the session after the last
        action.
    Threshold: {driver_gap_ratio} of the duration of the application for each kind, and {driver_gap_ms} within and
        between queries, {driver_edge_ms} before the first and after the last one, since every application starts
        (project). It is a warning within queries and jobs, else an info, because the log of a notebook does not say
        whether its user was thinking. `spark-app observe` knows more: between the queries of a command that names its
        program, which is no shell, notebook or server of pages, and that ended by itself and not by a signal, as a
        service does, only the driver can be at work. It is a warning there, whatever its share, if the longest time is
        {driver_batch_gap_ms} (project). The rule ignores streaming applications, which wait by design.
    Cost: that time, without what `collect_to_driver` and `slow_planning` tell of.
    """
    if not app.is_whole or app.batches:
        return []
    least = limits.driver_gap_ratio * app.usage.wall_ms
    claimed = [each.after for each in collected(app, limits)]
    claimed += [stretch for each in planned(app, limits) for stretch in (each.before, each.within)]
    own = {
        kind: max(0, ms - sum(each.length_ms for each in claimed if each.kind == kind))
        for kind, ms in app.task_free.sums.items()
    }
    return [
        _gap(app, kind, ms)
        for kind, ms in own.items()
        if kind in _GAPS
        and (ms >= max(least, _least_of(kind, limits)) or (kind == "between" and _is_stopped(app, limits, claimed)))
    ]


def _is_stopped(app: Application, limits: Thresholds, claimed: Sequence[Stretch]) -> bool:
    """Whether a program that nobody types into kept Spark waiting between queries, once for long."""
    longest = app.task_free.longest.get("between")
    is_own = longest is not None and longest.length_ms >= limits.driver_batch_gap_ms and longest not in claimed
    return is_own and app.is_batch


def _least_of(kind: Kind, limits: Thresholds) -> float:
    return limits.driver_edge_ms if kind in ("startup", "ending") else limits.driver_gap_ms


def _gap(app: Application, kind: Kind, ms: int) -> Finding:
    where, advice = _GAPS[kind]
    is_known = kind == "planning" or (kind == "between" and app.is_batch)
    longest, total = app.task_free.longest[kind], app.usage.wall_ms
    numbers: dict[str, float] = {f"{kind}_ms": ms, "longest_gap_ms": longest.length_ms, "wall_ms": total}
    part = f"{duration(ms)} of {duration(total)} ({share(ms / total)})"
    return Finding(
        "driver_gap",
        "warning" if is_known else "info",
        f"No task ran for {part}, {where}{_longest_stretch(app, longest, ms)}.",
        _without_arrow(app, longest) + (advice if is_known or kind != "between" else advice + _THINKING),
        numbers,
        cost_ms=ms,
        cause=kind,
    )


def _without_arrow(app: Application, longest: Stretch) -> str:
    """What turns Arrow on, if the query before the longest stretch has brought rows to pandas without it."""
    if longest.kind not in ("between", "ending"):
        return ""
    before = (query for query in app.queries.values() if query.ended is not None and query.started < longest.started)
    return settings_advice.use_arrow(app, max(before, key=_started, default=None))


def _longest_stretch(app: Application, longest: Stretch, ms: int) -> str:
    """What the longest stretch was before or in, where it is a part of several."""
    if longest.kind in ("startup", "ending"):
        return ""
    queries = app.queries.values()
    if longest.kind == "between":
        follows = min((query for query in queries if query.started >= longest.ended), key=_started, default=None)
        where = "" if follows is None else f" before {query_name(app, follows.id)}"
    else:
        inside = [query for query in queries if query.started <= longest.started <= (query.ended or app.last)]
        where = f" in {query_name(app, inside[-1].id)}" if inside else ""
    is_part = where and longest.length_ms < ms
    return f"; the longest time, {duration(longest.length_ms)}, was{where}" if is_part else where


def _started(query: Query) -> int:
    return query.started
