"""The Prometheus names of the catalogue, as Prometheus derives them from OTLP (UnderscoreEscapingWithSuffixes).

Source: `normalizeName` of prometheus/otlptranslator, for the units of the catalogue.
"""

import re
from typing import Final

from spark_app.vocabulary.names import Attribute, Metric

_UNITS: Final = {"s": "seconds", "By": "bytes", "/s": "per_second", "1": "", "": ""}


def series(metric: Metric) -> str:
    """The name of a metric's series; the three of a histogram add `_bucket`, `_sum` and `_count` to it.

    A unit that is a word of the name is not appended: `pipeline.bytes.read` in `By` is
    `pipeline_bytes_read_total`.

    Raises:
        KeyError: The unit is neither in braces nor in the table of this module.
    """
    words = re.findall(r"[a-zA-Z0-9]+", metric.name)
    unit = _UNITS[re.sub(r"\{\w+\}", "", metric.unit)]
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
