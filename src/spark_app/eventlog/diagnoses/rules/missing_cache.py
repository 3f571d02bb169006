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
from spark_app.eventlog.model.repeated_work import RepeatedStep
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
    steps = [step for step in app.repeated_work.steps if len(step.places) >= _least_times(step, limits)]
    return [finding for step in islice(_worst(steps), MAX_FINDINGS) for finding in _findings(app, step)]


def _least_times(step: RepeatedStep, limits: Thresholds) -> float:
    return limits.repeated_stages if step.is_of_rdds else limits.repeated_work


def _worst(steps: list[RepeatedStep]) -> Iterator[RepeatedStep]:
    """The steps that cost most, and of those that a query has only the worst: it contains the others.

    Each step comes after those that it needs, and is preferred to them where it costs the same.
    """
    seen = set[tuple[bool, int]]()
    for _, step in sorted(enumerate(steps), key=lambda item: (item[1].most_ms, item[0]), reverse=True):
        own = {(step.is_of_rdds, place) for place in step.places}
        if seen.isdisjoint(own):
            seen |= own
            yield step


def _findings(app: Application, step: RepeatedStep) -> Iterator[Finding]:
    """A finding for each query or stage that computed a step, each with its part of the cost."""
    total = sum(took.most_ms for took in step.places.values())
    low, estimate, high = (_wall_ms(app, ms) for ms in (step.least_ms, step.likely_ms, step.most_ms))
    for place, took in step.places.items():
        part = took.most_ms / total if total else 0.0
        yield Finding(
            "missing_cache",
            "info" if step.is_of_rdds else "warning",
            _text(app, step, total),
            "Keep what they share: cache() or persist() it before the first of them and unpersist() it after the last, "
            "or write it once as a table or a file.",
            {"times": len(step.places), "task_ms": total},
            cost_ms=estimate * part,
            stage=(place, 0) if step.is_of_rdds else None,
            query=None if step.is_of_rdds else place,
            operator=None if step.is_of_rdds else excerpt(step.name, MAX_OPERATOR),
            cause=EXPRESSION_ID.sub("", step.name),
        ).within((low * part, high * part))


def _text(app: Application, step: RepeatedStep, total: float) -> str:
    name, times = excerpt(step.name, MAX_OPERATOR), count(len(step.places))
    if step.is_of_rdds:
        return (
            f"{name} runs {times} stages that begin with the same RDDs, first stage {min(step.places)}; their tasks "
            f"took {duration(total)}"
        )
    return (
        f"{name} is computed by {times} queries from the same rows, first by {query_name(app, min(step.places))}; it "
        f"took their tasks up to {duration(total)}"
    )


def _wall_ms(app: Application, task_ms: float) -> float:
    return (app.usage.wall_of(task_ms) or 0.0) * SAVED_BY_CACHE
