"""A cached DataFrame or RDD that only the query or job that filled it used."""

from spark_app.eventlog.diagnoses.judgement import least_cost
from spark_app.eventlog.diagnoses.query import query_name, sentence
from spark_app.eventlog.diagnoses.rule import MAX_FINDINGS, rule
from spark_app.eventlog.diagnoses.stage import name_of
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.repeated_reads import Cache
from spark_app.formatting import duration
from spark_app.redaction import excerpt


@rule(
    explains=("gc_pressure", "spill"),
    explains_in="query",
)
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
    return [
        _unused(app, cache) for cache in sorted(unused, key=lambda cache: cache.fill_ms, reverse=True)[:MAX_FINDINGS]
    ]


def _unused(app: Application, cache: Cache) -> Finding:
    where = query_name(app, cache.query) if cache.query is not None else name_of(app, cache.filled_in)
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
