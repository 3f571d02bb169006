"""Rules about what an application reads again, and what it keeps for that."""

from typing import Final

from app.amounts import count, duration, size, things
from app.eventlog.application import Application
from app.eventlog.diagnoses.query import query_name, sentence
from app.eventlog.diagnoses.stage import stage_name
from app.eventlog.diagnoses.thresholds import Thresholds
from app.eventlog.diagnoses.words import cut
from app.eventlog.findings import Finding
from app.eventlog.reuse import Cache, Reads

MOST: Final = 5
"""How many findings of a rule an application has; the worst ones."""


def repeated_scan(app: Application, limits: Thresholds) -> list[Finding]:
    """The same files, read again and again, and each time from storage.

    Cost: the time that tasks spent on all scans but one, spread over all slots; unknown for formats whose scans do not
    tell their time.
    """
    reads = [one for one in app.reuse.reads if one.times >= limits.repeated_scans]
    worst = sorted(reads, key=_again_bytes, reverse=True)
    found = [(one, _scan_cost(app, one)) for one in worst if _again_bytes(one) >= limits.repeated_scan_bytes]
    return [_repeated(app, one, cost) for one, cost in found if cost is None or cost >= limits.cost_ms][:MOST]


def _again_bytes(reads: Reads) -> int:
    return (reads.times - 1) * reads.bytes


def _scan_cost(app: Application, reads: Reads) -> float | None:
    at_once = app.slots
    if not at_once or reads.scan_ms is None:
        return None
    return reads.scan_ms * (reads.times - 1) / reads.times / at_once


def _repeated(app: Application, reads: Reads, cost: float | None) -> Finding:
    queries = ", ".join(query_name(app, query) for query in reads.queries)
    return Finding(
        "repeated_scan",
        "warning",
        f"{cut(reads.place)} is read {count(reads.times)} times, each time {size(reads.bytes)} in "
        f"{things(reads.files, 'file')}, first by {queries}",
        "Keep what they have in common: cache() or persist() the DataFrame before the first of them and unpersist() it "
        "after the last, or write it once as a smaller table.",
        {"times": reads.times, "files": reads.files, "read_again_bytes": _again_bytes(reads)},
        cost_ms=cost,
        query=reads.queries[0] if reads.queries else None,
    )


def unused_cache(app: Application, limits: Thresholds) -> list[Finding]:
    """Something was cached, and only the query or job that filled the cache has used it.

    No cost: what storing took is a part of the tasks that also computed it. The threshold is the time of those tasks.
    """
    idle = [one for one in app.reuse.caches if one.uses == 1 and one.fill_ms >= limits.cache_fill_ms]
    return [_unused(app, one) for one in sorted(idle, key=lambda one: one.fill_ms, reverse=True)[:MOST]]


def _unused(app: Application, cache: Cache) -> Finding:
    where = query_name(app, cache.query) if cache.query is not None else _stage_name(app, cache.filled_in)
    return Finding(
        "unused_cache",
        "info",
        f"{sentence(where)} fills a cache that nothing else reads; its tasks took {duration(cache.fill_ms)}",
        "Leave out cache() or persist(): it takes time and memory, and pays only from the second reading on. If a "
        "later action was meant to use it, it must start from the same DataFrame, before unpersist().",
        {"fill_task_ms": cache.fill_ms},
        stage=cache.filled_in,
        query=cache.query,
        operator=cut(cache.name),
    )


def _stage_name(app: Application, key: tuple[int, int]) -> str:
    stage = app.stages.get(key)
    return f"stage {key[0]}" if stage is None else stage_name(app, stage.info, stage.properties)
