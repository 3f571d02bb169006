"""PromQL over the metrics of the catalogue, `spark_app.vocabulary.names`."""

from typing import Final

from spark_app.vocabulary import names, spark_names
from spark_app.vocabulary.names import Attribute, Metric
from spark_app.vocabulary.prometheus_names import label, series

RANGE: Final = "$__range"
INTERVAL: Final = "$__interval"
RATE_INTERVAL: Final = "$__rate_interval"

COLLECTOR: Final = 'up{job="otel-collector"}'
"""Whether the collector is up, which gets all that runs send."""
BRIDGE: Final = 'up{job="spark-bridge"}'
"""Whether the bridge is up, which reads the logs of applications."""

FAILED: Final = f'{label(names.OUTCOME)}!~"succeeded|interrupted"'
"""Matches the runs that failed: one that somebody stopped did not."""

OF_PIPELINE: Final = f'{label(names.PIPELINE)}=~"$pipeline"'
"""Matches the pipelines that are chosen on the dashboard."""

OF_APPLICATION: Final = (
    f'{label(names.APPLICATION)}=~"$application", {label(spark_names.KUBERNETES_NAMESPACE)}=~"$namespace"'
)
"""Matches the applications that are chosen on the dashboard, and their namespaces on Kubernetes."""


def grown(metric: Metric, window: str, where: str = OF_PIPELINE, *, part: str = "") -> str:
    """The growth of a counter within a window, per series."""
    return increase(f"{series(metric)}{part}{_where(where)}", window)


def increase(selector: str, window: str) -> str:
    """The exact increase of counters within a window.

    Plain `increase()` extrapolates: a run sends two samples, the count before it and the count after it, and would be
    counted twice. With `anchored` it is the difference between the last sample and the one at the start of the window.
    docs/decisions/0014 has the reasons.
    """
    return f"increase({selector}[{window}] anchored)"


def step(now: str, before: str) -> str:
    """The growth since an earlier value of a counter whose series begin without a 0, as those of span_metrics do.

    A counter without an earlier value started at 0 with the first run; one below its earlier value restarted with the
    collector. Both count in full.
    """
    return f"{now} - {before} >= 0 or 1 * {now}"


def last(metric: Metric, window: str = RANGE, where: str = OF_PIPELINE) -> str:
    """The last value of a gauge within a window; instant queries lose it five minutes after the run."""
    return f"last_over_time({series(metric)}{_where(where)}[{window}])"


def added(expression: str, *by: Attribute | str) -> str:
    """The sum, by some labels."""
    return f"sum{_by(by)} ({expression})"


def largest(expression: str, *by: Attribute | str) -> str:
    """The maximum, by some labels."""
    return f"max{_by(by)} ({expression})"


def mean(metric: Metric, window: str, *by: Attribute | str, where: str = OF_PIPELINE) -> str:
    """The mean of a histogram within a window; no series if it has no values there."""
    total = added(grown(metric, window, where, part="_sum"), *by)
    count = added(grown(metric, window, where, part="_count"), *by)
    return f"{total} / ({count} > 0)"


def known(expression: str, witness: str = COLLECTOR) -> str:
    """The same, or 0 where it has no series and who would have told of one is up: nothing happened.

    Without series and without a witness there is no answer: nothing is known.
    """
    return f"({expression}) or on () 0 * max({witness} == 1)"


def level(selector: str) -> str:
    """The latest value of a gauge that Prometheus scrapes, in a form that `first_and_others` can rank."""
    return f"last_over_time({selector}[{RATE_INTERVAL}])"


def first_and_others(expression: str, *by: Attribute | str, others: str, first: int) -> tuple[str, str]:
    """The series that are largest over the whole time range, at each of its moments, and all others as one.

    Without the whole range to go by, each moment would have its own largest ones, and a panel any number of series.
    """
    on = f"on ({', '.join(_labels(by))})"
    whole = _at_the_end(expression)
    chosen = f"topk({first}, {whole})"
    # Only a plain topk() is answered in the order of its values, which bars show.
    largest = chosen if whole == expression else f"{expression} and {on} {chosen}"
    return largest, f"{others}({expression} unless {on} {chosen})"


def _at_the_end(expression: str) -> str:
    """The expression over the whole time range, at its end: Prometheus evaluates it once.

    Of a gauge it is the highest value: the last one would hide what was over before.
    """
    window = next((each for each in (INTERVAL, RATE_INTERVAL) if f"[{each}]" in expression), None)
    if window is None:
        return expression
    return expression.replace("last_over_time(", "max_over_time(").replace(f"[{window}]", f"[{RANGE}] @ end()")


def share(used: str, free: str, matchers: str) -> str:
    """The used share of used and free."""
    used, free = used + _where(matchers), free + _where(matchers)
    return f"sum({used}) / (sum({used}) + sum({free}))"


def legend(*of: Attribute) -> str:
    """A legend of the values of some labels."""
    return " ".join(f"{{{{{label(attribute)}}}}}" for attribute in of)


def _where(matchers: str) -> str:
    return f"{{{matchers}}}" if matchers else ""


def _by(labels: tuple[Attribute | str, ...]) -> str:
    return f" by ({', '.join(_labels(labels))})" if labels else ""


def _labels(of: tuple[Attribute | str, ...]) -> list[str]:
    return [each if isinstance(each, str) else label(each) for each in of]
