"""Rules about where the time of an application went, as a whole."""

from app.amounts import duration, share
from app.eventlog.application import Application
from app.eventlog.diagnoses import sizing
from app.eventlog.diagnoses.stage import stage_name
from app.eventlog.diagnoses.thresholds import Thresholds
from app.eventlog.findings import Finding


def driver_gap(app: Application, limits: Thresholds) -> list[Finding]:
    """Time in which no task ran, nor waited for an executor: the driver planned, listed, committed, or ran Python.

    What Spark plans before a query begins counts as between queries, as the log has the beginning after it.

    Cost: that time. A warning if jobs and queries were open in enough of it; else an info, as a person may have been
    thinking. A streaming application waits and commits by design: it is not judged.
    """
    usage = app.usage
    gap = usage.planning_ms + usage.outside_ms
    if not app.is_whole or app.batches or _is_small(gap, usage.wall_ms, limits):
        return []
    parts = f"{duration(usage.planning_ms)} within jobs and queries, {duration(usage.outside_ms)} between them"
    where, numbers = "", {"planning_ms": usage.planning_ms, "outside_ms": usage.outside_ms, "wall_ms": usage.wall_ms}
    longest = usage.longest_gap
    if longest is not None and longest.length_ms:  # what is before the first task is no gap between two
        where = f"; the longest, {duration(longest.length_ms)}, was before "
        where += stage_name(app, longest.stage, longest.properties)
        numbers["longest_gap_ms"] = longest.length_ms
    return [
        Finding(
            "driver_gap",
            "info" if _is_small(usage.planning_ms, usage.wall_ms, limits) else "warning",
            f"In {share(gap / usage.wall_ms)} of {duration(usage.wall_ms)} no task ran: {parts}{where}.",
            "Within jobs and queries: list and commit fewer files, broadcast and collect less. Between them: no "
            "toPandas and no loops over rows in the driver, and small jobs at once, in threads, instead of one after "
            "the other. In a notebook it may be you who was thinking.",
            numbers,
            cost_ms=gap,
        )
    ]


def _is_small(gap_ms: float, wall_ms: float, limits: Thresholds) -> bool:
    return gap_ms < limits.driver_gap_ms or gap_ms < limits.driver_gap_ratio * wall_ms


def idle_cores(app: Application, limits: Thresholds) -> list[Finding]:
    """Cores that were there and had no task to run.

    No cost in time: idle cores cost money. On one machine (`local`, `local[...]`) they cost nothing: no finding.
    """
    usage = app.usage
    busy = usage.task_ms * app.task_cpus
    idle = usage.core_ms - busy
    if (
        sizing.is_local(app.properties)
        or not app.is_whole
        or idle <= max(limits.idle_core_ms, limits.idle_ratio * usage.core_ms)
    ):
        return []
    return [
        Finding(
            "idle_cores",
            "warning",
            f"Of {duration(usage.core_ms)} of core time, {duration(idle)} were idle ({share(idle / usage.core_ms)}).",
            "Use fewer executors (spark.executor.instances; spark.cores.max on standalone), or let their number follow "
            "the work: spark.dynamicAllocation.enabled=true, a shorter spark.dynamicAllocation.executorIdleTimeout.",
            {"idle_core_ms": idle, "core_ms": usage.core_ms, "idle_ratio": idle / usage.core_ms},
        )
    ]
