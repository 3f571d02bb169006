"""A model is trained, promoted and applied on the cluster, and each phase is in the back ends."""

import time
from typing import Any, Final

from spark_app.vocabulary import names, spark_names
from spark_app.vocabulary.prometheus_names import label, series
from tests.e2e import backends
from tests.e2e.signals import Learned
from tests.polling import poll_until

STEPS: Final = ("features", "statistics", "cross-validate", "write artifact", "evaluate candidate", "promote")
PIPELINE: Final = f'{label(names.PIPELINE)}="ml.refunds"'


def test_a_version_is_promoted(learned: Learned) -> None:
    """There was no history of days and no version before: it makes the one, and the gate lets the other pass."""
    assert learned.trained["outcome"] == "succeeded"
    assert (learned.card["version"], learned.card["verdict"]["is_promoted"]) == (1, True)


def test_spark_jobs_of_fits_are_below_their_fits(learned: Learned) -> None:
    """The trace has run, steps, a fit for each candidate and fold, and their jobs; no parent is missing."""
    trace_id, fits = learned.trained["trace_id"], {each["algorithm"] for each in learned.card["tried"]}
    wanted = {names.STEP_SPAN.of(step) for step in STEPS} | {names.FIT_SPAN.of(fit) for fit in fits}

    def found() -> set[str]:
        return {span["operationName"] for span in backends.JAEGER.spans(trace_id)}

    poll_until(lambda: found() >= wanted, lambda: f"spans {wanted - found()} of trace {trace_id}")
    poll_until(lambda: not without_jobs(trace_id), lambda: f"jobs below {without_jobs(trace_id)}")
    spans = backends.JAEGER.spans(trace_id)
    ids = {span["spanID"] for span in spans}
    assert [span["operationName"] for span in spans if not set(backends.parents(span)) <= ids] == []


def without_jobs(trace_id: str) -> list[str]:
    """The fits of a trace below which no span of a job is."""
    spans = backends.JAEGER.spans(trace_id)
    by_id = {span["spanID"]: span for span in spans}
    with_jobs = {id_ for span in spans if is_of(span, spark_names.JOB_SPAN) for id_ in above(span, by_id)}
    return [each["operationName"] for each in spans if is_of(each, names.FIT_SPAN) and each["spanID"] not in with_jobs]


def is_of(span: dict[str, Any], kind: names.SpanName) -> bool:
    """Whether a span is one of a kind."""
    return str(span["operationName"]).startswith(kind.of(""))


def above(span: dict[str, Any], by_id: dict[str, dict[str, Any]]) -> set[str]:
    """The ids of the spans that a span is below."""
    parents = backends.parents(span)
    return {*parents}.union(*(above(by_id[each], by_id) for each in parents if each in by_id))


def test_scores_are_those_of_the_card(learned: Learned) -> None:
    """Prometheus has the score of the held-out rows and the version in production."""
    selector = f'{PIPELINE}, {label(names.MODEL_ROLE)}="candidate", {label(names.DATA_SLICE)}="all"'
    score = last(names.ML_SCORE, f'{selector}, {label(names.SCORE_NAME)}="average_precision"')
    value = learned.card["evaluation"]["scores"]["average_precision"]["value"]
    poll_until(lambda: backends.number(score) == value, lambda: f"{value}, not {backends.number(score)}")
    assert backends.number(last(names.ML_VERSION, PIPELINE)) == 1


def last(metric: names.Metric, selector: str) -> str:
    """The query of the last value of a gauge, which a command sets and then ends."""
    return f"max(last_over_time({series(metric)}{{{selector}}}[1d]))"


def test_rows_of_a_scored_day_are_counted(learned: Learned) -> None:
    """Each row of the day is in the table once, and in the counter."""
    assert learned.scored["counts"]["published"] == learned.scored["counts"]["read"] > 0
    window = f"{time.time() - learned.began:.0f}s"
    grown = f"sum(increase({series(names.ML_PREDICTIONS)}{{{PIPELINE}}}[{window}] anchored))"
    rows = learned.scored["counts"]["read"]
    poll_until(lambda: backends.number(grown) == rows, lambda: f"{rows} rows, metric {backends.number(grown)}")


def test_log_lines_have_the_trace_id(learned: Learned) -> None:
    """Of the driver at least, in both runs."""
    for run in (learned.trained, learned.scored):
        trace_id = run["trace_id"]
        poll_until(lambda: "spark-app" in backends.log_services(trace_id), f"log lines of {trace_id}")  # noqa: B023
