import re
from typing import Final

import pytest
from opentelemetry.metrics import Counter, Histogram
from opentelemetry.metrics import _Gauge as Gauge
from opentelemetry.sdk.resources import Resource

from spark_app.telemetry.instruments import Measurements
from spark_app.vocabulary import names
from spark_app.vocabulary.names import Attribute, Metric, SpanName

UNITS: Final = {
    "s",
    "By",
    "1",
    "{row}",
    "{day}",
    "{version}",
    "{run}",
    "{breach}",
    "{probe}",
    "{query}",
    "{batch}",
    "{record}",
    "{request}",
    "{restart}",
    "{row}/s",
}
KINDS: Final = {"counter": Counter, "histogram": Histogram, "gauge": Gauge}


def entries(kind: type) -> list[object]:
    """The entries of one kind that the module defines."""
    return [entry for entry in vars(names).values() if isinstance(entry, kind)]


def test_every_entry_is_in_its_list() -> None:
    """Dashboards and documents are made from the lists."""
    assert set(entries(Metric)) == set(names.METRICS)
    assert set(entries(Attribute)) == set(names.ATTRIBUTES)
    assert set(entries(SpanName)) == set(names.SPANS)


def test_a_name_is_unique() -> None:
    """No two metrics, attributes or spans share a name."""
    for entry_names in (
        [metric.name for metric in names.METRICS],
        [attribute.name for attribute in names.ATTRIBUTES],
        [span.prefix for span in names.SPANS],
    ):
        assert len(entry_names) == len(set(entry_names)), entry_names


def test_a_metric_is_dotted_with_its_unit_in_ucum_and_not_in_the_name() -> None:
    """The backend appends the unit to the name, so a name with the unit would have it twice."""
    wrong = [
        metric.name
        for metric in names.METRICS
        if not re.fullmatch(r"[a-z]+(\.[a-z]+(_[a-z]+)*)+", metric.name)
        or metric.unit not in UNITS
        or re.search(r"seconds|bytes$|_ms|total|\bratio|\bcount\b", metric.name)
    ]
    assert wrong == []


def test_a_meaning_is_a_phrase() -> None:
    """It starts with a capital and has no full stop: it becomes the description of the metric."""
    meanings = [metric.meaning for metric in names.METRICS]
    assert [text for text in meanings if not text[0].isupper() or text.endswith(".")] == []


def test_a_metric_has_few_valued_labels_only() -> None:
    """The id of a run, its slice or its invocation on a metric would make a new series per run."""
    wrong = [
        metric.name
        for metric in names.METRICS
        if not all(label.is_label for label in metric.labels)
        or not (names.PIPELINE in metric.labels or metric.name.startswith("platform."))
    ]
    assert wrong == []


def test_a_metric_becomes_the_instrument_of_its_kind() -> None:
    """The instrument has the name, unit, meaning and kind of the entry."""
    measurements = Measurements(Resource.get_empty())
    for metric in names.METRICS:
        measurements.record(metric, 1, dict.fromkeys(metric.labels, "x"))
        assert isinstance(measurements._instruments[metric], KINDS[metric.kind]), metric.name
    data = measurements.collect()
    assert data is not None
    collected = data.resource_metrics[0].scope_metrics[0].metrics
    assert sorted((metric.name, metric.unit, metric.description or "") for metric in collected) == sorted(
        (metric.name, metric.unit, metric.meaning) for metric in names.METRICS
    )


def test_labels_are_exactly_those_of_the_catalogue() -> None:
    """A missing label and one too many are errors that name the metric and both lists."""
    measurements = Measurements(Resource.get_empty())
    with pytest.raises(
        ValueError,
        match=r"pipeline\.runs has the labels .*outcome; it was recorded with pipeline\.name$",
    ):
        measurements.record(names.RUNS, 1, {names.PIPELINE: "x"})
    with pytest.raises(ValueError, match=r"recorded with .*pipeline\.run\.id"):
        measurements.record(names.READ, 1, {names.PIPELINE: "x", names.RUN_ID: "y"})


def test_buckets_rise_from_a_tenth_of_a_second_to_hours() -> None:
    """A run of a day and a step of a tenth of a second both fall between bounds."""
    for metric in names.METRICS:
        if metric.kind == "histogram":
            assert list(metric.buckets) == sorted(set(metric.buckets))
            assert metric.buckets[0] <= 0.1
            assert metric.buckets[-1] >= 7200
        else:
            assert metric.buckets == ()
