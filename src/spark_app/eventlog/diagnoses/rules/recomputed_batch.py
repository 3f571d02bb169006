"""A micro-batch whose rows several actions of `foreachBatch` compute, each anew."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import rule
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model import work_names
from spark_app.eventlog.model.entities import Query, StageAttempt
from spark_app.eventlog.model.repeated_reads import SAVED_BY_CACHE
from spark_app.eventlog.parse.events import RddInfo
from spark_app.formatting import duration
from spark_app.redaction import excerpt

MAX_BEFORE: Final = 50
"""How many numbers before that of a query its batch is looked for: queries of a batch follow each other."""
MAX_NAME: Final = 100


@rule(cause="missing_cache", explains=("repeated_scan",), explains_in="query")
def recomputed_batch(view: QueryView) -> Finding | None:
    """A micro-batch whose rows several actions of `foreachBatch` compute, each anew.

    Evidence: the actions, the RDDs that both have computed, and the time of the tasks that computed them again.
    Why: Spark keeps nothing of the rows of a batch for the next action: each reads the sources and calls all functions
        of the query once more.
    Change: `persist()` the rows at the beginning of the function, and `unpersist()` them at its end.
    Threshold: two actions in a batch (Spark's guide of Structured Streaming says to cache there).
    Cost: the run time of the tasks of the stages that computed the same RDDs again, at most that of the action before
        which took longest for them, divided by the mean number of running tasks, times 0.9, since reading a cache takes
        time, too (project). What else these stages have done is unknown: it is at most that, and at least what the
        action took that was done soonest.
    """
    if view.query.batch is None:
        return None
    own = _computed(view.app.stages_of(view.query))
    others = [(query, _computed(view.app.stages_of(query))) for query in _before(view)]
    shared = [(query, _run_ms(stages, own), _run_ms(own, stages)) for query, stages in others if own.keys() & stages]
    if not shared:
        return None
    before, first_ms, again_ms = max(shared, key=lambda each: min(each[1:]))
    least_ms = min(first for _, first, _ in shared)
    most = _wall_ms(view, min(first_ms, again_ms)) * SAVED_BY_CACHE
    names = [excerpt(_name(view, each), MAX_NAME) for each in (before, view.query)]
    return view.finding(
        "recomputed_batch",
        f"{names[1]} computes the rows of its micro-batch that {names[0]} has computed before, in "
        f"{duration(again_ms)} of tasks",
        advice="Keep the rows of a batch for all actions of the function of foreachBatch: batch.persist() at its "
        "beginning, batch.unpersist() at its end.",
        operator=None,
        numbers={"task_ms": again_ms},
        cost_ms=most,
        cause=view.query.batch.query,
    ).within((min(most, _wall_ms(view, least_ms) * SAVED_BY_CACHE), most))


def _run_ms(stages: Mapping[int, StageAttempt], others: Mapping[int, StageAttempt]) -> float:
    """The run time of the tasks of those stages that have computed RDDs of others, too."""
    same = {(stage.info.id, stage.info.attempt): stage for rdd, stage in stages.items() if rdd in others}
    return float(sum(stage.totals.run_ms for stage in same.values()))


def _wall_ms(view: QueryView, task_ms: float) -> float:
    """What a time of tasks took of the duration of the query; at most all of it."""
    usages = [stage.usage for stage in view.app.stages_of(view.query) if stage.usage is not None]
    busy, total = sum(usage.busy_ms for usage in usages), sum(usage.task_ms for usage in usages)
    return min(float(view.wall_ms), task_ms * busy / total if total else task_ms / max(1.0, view.app.slots or 1))


def _name(view: QueryView, query: Query) -> str:
    return work_names.call_site(view.app, query) or f"query {query.id}"


def _before(view: QueryView) -> Iterator[Query]:
    """The queries of the same batch before one, the first of them first."""
    own = view.query
    for number in range(max(0, own.id - MAX_BEFORE), own.id):
        query = view.app.queries.get(number)
        if query is not None and query.batch == own.batch and query.ended is not None and query.id != own.root:
            yield query


def _computed(stages: Sequence[StageAttempt]) -> dict[int, StageAttempt]:
    """The RDDs that whole stages have computed, and not read from a cache, each with its stage."""
    whole = [stage for stage in stages if stage.info.rdds and stage.info.tasks == stage.info.rdds[0].partitions]
    return {rdd: stage for stage in whole for rdd in _not_cached(stage.info.rdds)}


def _not_cached(rdds: Sequence[RddInfo]) -> set[int]:
    """The RDDs that a stage computes without those that it reads from a cache, and what these were computed from."""
    known = {rdd.id: rdd for rdd in rdds}
    open_ids, seen = [rdds[0].id], set[int]()
    while open_ids:
        rdd = known[open_ids.pop()]
        if rdd.id not in seen and not (rdd.level.use_memory or rdd.level.use_disk):
            seen.add(rdd.id)
            open_ids += [number for number in rdd.parents if number in known]
    return seen
