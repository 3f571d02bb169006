"""What the names of the catalogue are called in Prometheus, which makes them of OTLP (UnderscoreEscapingWithSuffixes).

Source: `normalizeName` of prometheus/otlptranslator, as far as the units of the catalogue go.
"""

import re
from typing import Final

from app.telemetry.names import Attribute, Metric

_UNITS: Final = {"s": "seconds", "By": "bytes", "1": ""}


def series(metric: Metric) -> str:
    """The name of a metric's series; the three of a histogram add `_bucket`, `_sum` and `_count` to it.

    A unit that the name has already as a word is not added again: `pipeline.bytes.read` in `By` is
    `pipeline_bytes_read_total`.

    Raises:
        KeyError: The unit is neither in braces nor known here.
    """
    words = re.findall(r"[a-zA-Z0-9]+", metric.name)
    unit = "" if metric.unit.startswith("{") else _UNITS[metric.unit]
    if unit and unit not in words:
        words.append(unit)
    if metric.kind == "counter":
        words.append("total")
    if metric.kind == "gauge" and metric.unit == "1":
        words.append("ratio")
    return "_".join(words)


def label(attribute: Attribute) -> str:
    """The name of the label that an attribute becomes."""
    return re.sub(r"\W", "_", attribute.name)
