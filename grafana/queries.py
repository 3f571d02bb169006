"""PromQL over the metrics of the catalogue, `spark_app.telemetry.names`."""

from typing import Final

from spark_app.telemetry import names, spark_names
from spark_app.telemetry.names import Attribute, Metric
from spark_app.telemetry.prometheus_names import label, series

RANGE: Final = "$__range"
INTERVAL: Final = "$__interval"

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
    named = [each if isinstance(each, str) else label(each) for each in labels]
    return f" by ({', '.join(named)})" if named else ""
