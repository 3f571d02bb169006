"""Rules about repeated reads and about caches."""

from typing import Final

from spark_app.eventlog.diagnoses import settings_advice
from spark_app.eventlog.diagnoses.judgement import least_cost
from spark_app.eventlog.diagnoses.query import query_name, sentence
from spark_app.eventlog.diagnoses.stage import stage_name
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding, rule
from spark_app.eventlog.model import memory_settings
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.repeated_reads import Cache, CachedPlan, Reads
from spark_app.formatting import count, duration, quantity, size
from spark_app.redaction import excerpt

MOST: Final = 5
"""How many findings of one rule an application has at most: the worst ones."""


@rule()
def repeated_scan(app: Application, limits: Thresholds) -> list[Finding]:
    """Several scans of the same files (equal path, partitions, number and bytes), in several queries or in one.

    Reads of a cache and skipped stages do not count.

    Evidence: number of scans, files, bytes of the repeated scans, the first queries.
    Why: storage is slower than memory, and each scan pays for it.
    Change: `cache()` before the first scan, `unpersist()` after the last; or write the shared part as a smaller table.
    Threshold: {repeated_scans} (project).
    Cost: the time of all scans but one, divided by the mean number of running tasks. For formats without a scan time
        (text, CSV, JSON) it is between nine tenths of the run time of the tasks of the shortest scan, for each scan but
        one, and nine tenths of that of the tasks of all scans but the longest one: reading a cache takes time, too
        (project). The rule tracks 1000 sets of files and reports the 5 worst.
    """
    repeated = [reads for reads in app.repeated_reads.reads if reads.times >= limits.repeated_scans]
    most = sorted(repeated, key=lambda reads: reads.repeated_ms or 0, reverse=True)[:MOST]
    return [_repeated(app, reads) for reads in most if reads.repeated_ms is not None]


def _repeated_bytes(reads: Reads) -> int:
    return (reads.times - 1) * reads.bytes


def _repeated(app: Application, reads: Reads) -> Finding:
    cost, low, high = (
        None if ms is None else app.usage.wall_of(ms)
        for ms in (reads.repeated_ms, reads.least_repeated_ms, reads.most_repeated_ms)
    )
    queries = ", ".join(query_name(app, query) for query in reads.queries)
    return Finding(
        "repeated_scan",
        "warning",
        f"{excerpt(reads.location)} is read {count(reads.times)} times, each time {size(reads.bytes)} in "
        f"{quantity(reads.files, 'file')}, first by {queries}",
        "Cache what they share: cache() or persist() the DataFrame before the first of them and unpersist() it "
        "after the last, or write it once as a smaller table.",
        {"times": reads.times, "files": reads.files, "read_again_bytes": _repeated_bytes(reads)},
        cost_ms=cost,
        query=reads.queries[0] if reads.queries else None,
        cause=reads.location,
    ).within(None if low is None or high is None else (low, high))


@rule()
def evicted_cache(app: Application, limits: Thresholds) -> list[Finding]:
    """A cached DataFrame that is computed again, although each of its partitions had been computed before.

    Evidence: the stages that computed parts of it again, and at most the time of tasks that they took for it.
    Why: blocks that find no memory are dropped, or not even stored, and each read computes them again.
    Change: a storage level with a disk (`MEMORY_AND_DISK`), a `spark.memory.fraction` that is below its default, more
        memory (`spark.executor.memory`; in local mode `spark.driver.memory`), fewer columns and rows in the cache, or
        no cache. The memory of executors that are lost or released is gone, too.
    Threshold: only the cost.
    Cost: for each stage the time of the tasks that first computed the cache, times the part that is computed again,
        and at most the run time of the tasks of the stage; divided by the mean number of running tasks. The part is
        how much the operators that fill the cache have counted once more. The log does not tell it of caches of RDDs.
        The rule tracks 1000 caches and reports the 5 that took longest.
    """
    least = least_cost(app, limits)
    plans = app.repeated_reads.cached_plans
    again = [plan for plan in plans if plan.again_ms and (app.usage.wall_of(plan.again_ms) or 0) >= least]
    return [_evicted(app, plan) for plan in sorted(again, key=lambda plan: plan.again_ms, reverse=True)[:MOST]]


def _evicted(app: Application, plan: CachedPlan) -> Finding:
    where = "" if plan.worst is None else f", most of it by {_stage_name(app, plan.worst)}"
    settings = app.properties
    more = settings_advice.now(settings, memory_settings.memory(settings))
    return Finding(
        "evicted_cache",
        "warning",
        f"A cached DataFrame is computed again in {quantity(plan.stages, 'stage')} after all of it was computed; their "
        f"tasks took up to {duration(plan.again_ms)} for it{where}",
        "The cache does not fit, or was lost with an executor. "
        f"{settings_advice.enough_memory(settings)}Persist it with StorageLevel.MEMORY_AND_DISK, select fewer columns "
        f"and rows before cache(), give it more memory ({more}), or do not cache it.",
        {"stages": plan.stages, "again_task_ms": plan.again_ms, "fill_task_ms": plan.fill_ms},
        cost_ms=app.usage.wall_of(plan.again_ms),
        stage=plan.worst,
        query=plan.query,
        operator=excerpt(plan.name),
        cause=str(plan.worst),
    )


@rule(explains=("gc_pressure", "spill"), explains_in="query")
def unused_cache(app: Application, limits: Thresholds) -> list[Finding]:
    """A cached DataFrame or RDD that only the query or job that filled it used.

    Delta's own caches do not count.

    Evidence: the time of the tasks that filled it; the log does not contain its size.
    Why: storing takes time, and uses memory that joins and sorts need.
    Change: remove `cache()`; or find out why a later action does not use the cache: it must start from the same
        DataFrame, before `unpersist()`.
    Threshold: the time of these tasks, judged as a cost.
        Explained by it: `gc_pressure` and `spill` of the same queries, which come behind it: it fills the memory.
    Cost: not estimated, because the same tasks also computed the data: an info. The rule tracks 1000 caches and reports
        the 5 that took longest.
    """
    least = least_cost(app, limits)
    unused = [
        cache
        for cache in app.repeated_reads.caches
        if cache.uses == 1 and (app.usage.wall_of(cache.fill_ms) or 0) >= least
    ]
    return [_unused(app, cache) for cache in sorted(unused, key=lambda cache: cache.fill_ms, reverse=True)[:MOST]]


def _unused(app: Application, cache: Cache) -> Finding:
    where = query_name(app, cache.query) if cache.query is not None else _stage_name(app, cache.filled_in)
    return Finding(
        "unused_cache",
        "info",
        f"{sentence(where)} fills a cache that nothing else reads; its tasks took {duration(cache.fill_ms)}",
        "Remove cache() or persist(): it takes time and memory, and only helps from the second read on. A later "
        "action uses the cache only if it starts from the same DataFrame, before unpersist().",
        {"fill_task_ms": cache.fill_ms},
        stage=cache.filled_in,
        query=cache.query,
        operator=excerpt(cache.name),
        cause=str(cache.id),
    )


def _stage_name(app: Application, key: tuple[int, int]) -> str:
    stage = app.stages.get(key)
    return f"stage {key[0]}" if stage is None else stage_name(app, stage.info, stage.properties)
