"""An aggregate, a join, a window or a Python function that several queries compute from the same rows; or RDDs."""

from collections.abc import Iterator
from itertools import islice

from spark_app.eventlog.diagnoses.query import MAX_OPERATOR, query_name
from spark_app.eventlog.diagnoses.rule import MAX_FINDINGS, Limit, rule
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.plan_names import EXPRESSION_ID
from spark_app.eventlog.model.repeated_reads import SAVED_BY_CACHE
from spark_app.eventlog.model.repeated_work import Work
from spark_app.formatting import count, duration
from spark_app.redaction import excerpt


@rule(
    explains=("repeated_scan",),
    explains_in="query",
    limits={
        "repeated_work": Limit(
            2,
            "Missing cache: how many queries computed the same from the same rows, at least.",
            ge=2,
        ),
        "repeated_stages": Limit(
            3,
            "Missing cache: how many stages of RDDs one line of the program ran from the same RDDs, at least.",
            ge=2,
        ),
    },
)
def missing_cache(app: Application, limits: Thresholds) -> list[Finding]:
    """An aggregate, a join, a window or a Python function that several queries compute from the same rows; or RDDs.

    Of RDDs, it is an info: stages that one line of the program runs and that begin with the same RDDs probably compute
    the same, but the log does not tell which Python functions they call. Rows that are read from a cache, and stages
    that Spark skips since it has their shuffles, do not count.

    Evidence: the queries, the operator, and the time of the tasks that computed it.
    Why: Spark keeps nothing of a DataFrame or an RDD for the next action: each computes all that it needs.
    Change: `cache()` or `persist()` the DataFrame before the first action and `unpersist()` it after the last, or write
        it as a table once.
    Threshold: {repeated_work} queries, {repeated_stages} stages of RDDs (project).
        Explained by it: `repeated_scan` of the same queries, which comes behind it: what is kept is read once.
    Cost: the time of the tasks that computed it in all queries, but for computing it once with all rows, times 0.9,
        since reading a cache takes time, too (project); divided by the mean number of running tasks. The rows that
        passed filters tell which share of it each query has computed, and of a stage, the rows that passed its
        operators. It is between the time of the stages that did
        nothing else, and of all that did some of it; of RDDs between none and all. The rule ignores queries
        whose tasks took less than half a second, tracks 2000 such steps and reports the 5 worst, none twice for the
        same query.
    """
    found = [work for work in app.repeated_work.works if len(work.places) >= _least_times(work, limits)]
    return [finding for work in islice(_worst(found), MAX_FINDINGS) for finding in _findings(app, work)]


def _least_times(work: Work, limits: Thresholds) -> float:
    return limits.repeated_stages if work.is_of_rdds else limits.repeated_work


def _worst(works: list[Work]) -> Iterator[Work]:
    """The steps that cost most, and of those that a query has only the worst: it contains the others.

    Each step comes after those that it needs, and is preferred to them where it costs the same.
    """
    seen = set[tuple[bool, int]]()
    for _, work in sorted(enumerate(works), key=lambda item: (item[1].most_ms, item[0]), reverse=True):
        own = {(work.is_of_rdds, place) for place in work.places}
        if seen.isdisjoint(own):
            seen |= own
            yield work


def _findings(app: Application, work: Work) -> Iterator[Finding]:
    """A finding for each query or stage that computed a step, each with its part of the cost."""
    total = sum(took.most_ms for took in work.places.values())
    low, estimate, high = (_wall_ms(app, ms) for ms in (work.least_ms, work.likely_ms, work.most_ms))
    for place, took in work.places.items():
        part = took.most_ms / total if total else 0.0
        yield Finding(
            "missing_cache",
            "info" if work.is_of_rdds else "warning",
            _text(app, work, total),
            "Keep what they share: cache() or persist() it before the first of them and unpersist() it after the last, "
            "or write it once as a table or a file.",
            {"times": len(work.places), "task_ms": total},
            cost_ms=estimate * part,
            stage=(place, 0) if work.is_of_rdds else None,
            query=None if work.is_of_rdds else place,
            operator=None if work.is_of_rdds else excerpt(work.name, MAX_OPERATOR),
            cause=EXPRESSION_ID.sub("", work.name),
        ).within((low * part, high * part))


def _text(app: Application, work: Work, total: float) -> str:
    name, times = excerpt(work.name, MAX_OPERATOR), count(len(work.places))
    if work.is_of_rdds:
        return (
            f"{name} runs {times} stages that begin with the same RDDs, first stage {min(work.places)}; their tasks "
            f"took {duration(total)}"
        )
    return (
        f"{name} is computed by {times} queries from the same rows, first by {query_name(app, min(work.places))}; it "
        f"took their tasks up to {duration(total)}"
    )


def _wall_ms(app: Application, task_ms: float) -> float:
    return (app.usage.wall_of(task_ms) or 0.0) * SAVED_BY_CACHE
