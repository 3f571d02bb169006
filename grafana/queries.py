"""PromQL over the metrics of the catalogue, whose names and labels are those of `app.telemetry.names`."""

from typing import Final

from app.telemetry import names
from app.telemetry.names import Attribute, Metric
from app.telemetry.prometheus_names import label, series

RANGE: Final = "$__range"
INTERVAL: Final = "$__interval"

OF_PIPELINE: Final = f'{label(names.PIPELINE)}=~"$pipeline"'
"""Only the pipelines that the variable of the dashboard names."""

OF_APPLICATION: Final = f'{label(names.APPLICATION)}=~"$application"'
"""Only the applications that the variable of the dashboard names."""

REMEMBERED: Final = "168h"
_TICK: Final = "15s"


def grown(metric: Metric, window: str, where: str = OF_PIPELINE, *, part: str = "") -> str:
    """By how much a counter has grown within a window, per series and to the last digit.

    Not `increase()`: a job that is over sends nothing, so there are two samples per run and days between runs, and
    `increase()` makes 2 of one run, or none. Here the last value is remembered for as long as the collector adds up
    (`max_stale` in config/otel/collector.yaml), looked at in steps, and each step is counted.
    """
    selector = f"{series(metric)}{part}{_where(where)}"
    now = f"last_over_time({selector}[{REMEMBERED}])"
    before = f"last_over_time({selector}[{REMEMBERED}] offset {_TICK})"
    return f"sum_over_time(({step(now, before)})[{window}:{_TICK}])"


def step(now: str, before: str) -> str:
    """What a counter has more than before.

    What was not there before began at 0, with the first run of all; what is less than before began anew, with the
    collector: both count in full.
    """
    return f"{now} - {before} >= 0 or 1 * {now}"


def last(metric: Metric, window: str = RANGE, where: str = OF_PIPELINE) -> str:
    """What a gauge said last within a window; five minutes after its run nothing else knows it."""
    return f"last_over_time({series(metric)}{_where(where)}[{window}])"


def added(expression: str, *by: Attribute | str) -> str:
    """The sum, by some labels."""
    return f"sum{_by(by)} ({expression})"


def largest(expression: str, *by: Attribute | str) -> str:
    """The maximum, by some labels."""
    return f"max{_by(by)} ({expression})"


def mean(metric: Metric, window: str, *by: Attribute | str, where: str = OF_PIPELINE) -> str:
    """The mean of what a histogram was given within a window; nothing where it was given nothing."""
    total = added(grown(metric, window, where, part="_sum"), *by)
    count = added(grown(metric, window, where, part="_count"), *by)
    return f"{total} / ({count} > 0)"


def share(used: str, free: str) -> str:
    """What is used of something, of which the rest is free."""
    return f"sum({used}) / (sum({used}) + sum({free}))"


def legend(*of: Attribute) -> str:
    """A legend of the values of some labels."""
    return " ".join(f"{{{{{label(attribute)}}}}}" for attribute in of)


def _where(matchers: str) -> str:
    return f"{{{matchers}}}" if matchers else ""


def _by(labels: tuple[Attribute | str, ...]) -> str:
    named = [each if isinstance(each, str) else label(each) for each in labels]
    return f" by ({', '.join(named)})" if named else ""
