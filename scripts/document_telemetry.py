"""Writes docs/telemetry.md from the vocabulary: each span, metric and attribute, as code states it.

Run it as `.venv/bin/python scripts/document_telemetry.py`; a folder as argument gets the file instead.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from spark_app.vocabulary import names, spark_names
from spark_app.vocabulary.names import Attribute, Metric, SpanName
from spark_app.vocabulary.prometheus_names import series

ROOT: Final = Path(__file__).resolve().parents[1]
INTRODUCTION: Final = """\
# Spans, metrics and attributes

What pipelines and the [bridge](reference.md#spark-app-bridge) send over OTLP. `src/spark_app/vocabulary` states each
name once, and `python scripts/document_telemetry.py` makes this page of it.
"""


def page() -> str:
    """The whole page."""
    sections = (
        ("Resource", "Who reports.", _attributes(names.RESOURCE)),
        ("Spans of pipelines", "A name is this word and its subject: `run etl.daily_sales`.", _spans(names.SPANS)),
        ("Spans of Spark applications", "Made from event logs.", _spans(spark_names.SPANS)),
        ("Metrics of pipelines", "A project adds its own ([recipe](recipes.md#a-metric)).", _metrics(names.METRICS)),
        ("Metrics of Spark applications", "Made from event logs.", _metrics(spark_names.METRICS)),
        ("Metrics of the bridge", "Served on a port of its own.", _metrics(spark_names.BRIDGE_METRICS)),
        ("Attributes of pipelines", "Labels of metrics have few values.", _attributes(_not_resource(names.ATTRIBUTES))),
        (
            "Attributes of Spark applications",
            "On spans; `yes` says which are labels, too.",
            _attributes(_not_resource(spark_names.ATTRIBUTES)),
        ),
    )
    return INTRODUCTION + "".join(f"\n## {title}\n\n{text}\n\n{table}" for title, text, table in sections)


def _not_resource(attributes: Iterable[Attribute]) -> list[Attribute]:
    return [attribute for attribute in attributes if attribute not in names.RESOURCE]


def _spans(spans: Iterable[SpanName]) -> str:
    rows = [(f"`{span.prefix}`", span.meaning, _named(span.attributes)) for span in spans]
    return _table(("span", "meaning", "attributes"), rows)


def _metrics(metrics: Iterable[Metric]) -> str:
    rows = [
        (f"`{each.name}`", f"`{series(each)}`", each.kind, f"`{each.unit}`", _named(each.labels), each.meaning)
        for each in metrics
    ]
    return _table(("metric", "in Prometheus", "kind", "unit", "labels", "meaning"), rows)


def _attributes(attributes: Iterable[Attribute]) -> str:
    rows = [
        (f"`{each.name}`", f"`{each.type.__name__}`", "yes" if each.is_label else "", each.meaning)
        for each in attributes
    ]
    return _table(("attribute", "type", "label", "meaning"), rows)


def _named(attributes: Iterable[Attribute]) -> str:
    return ", ".join(f"`{attribute.name}`" for attribute in attributes)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Writes the page into the tree, or into the folder that is named."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs"
    (target / "telemetry.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
