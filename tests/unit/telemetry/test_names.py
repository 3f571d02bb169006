import re
from typing import Final

import pytest
from opentelemetry.metrics import Counter, Histogram
from opentelemetry.metrics import _Gauge as Gauge
from opentelemetry.sdk.resources import Resource

from app.telemetry import names
from app.telemetry.instruments import Measurements
from app.telemetry.names import Attribute, Metric, SpanName

UNITS: Final = {"s", "By", "1", "{row}", "{run}", "{breach}", "{probe}"}
KINDS: Final = {"counter": Counter, "histogram": Histogram, "gauge": Gauge}


def entries(kind: type) -> list[object]:
    """The entries of one kind that the module defines."""
    return [entry for entry in vars(names).values() if isinstance(entry, kind)]


def test_every_entry_is_in_its_list() -> None:
    """What the module defines is what dashboards and documents are made from."""
    assert set(entries(Metric)) == set(names.METRICS)
    assert set(entries(Attribute)) == set(names.ATTRIBUTES)
    assert set(entries(SpanName)) == set(names.SPANS)


def test_a_name_is_stated_once() -> None:
    """No two metrics, attributes or spans share a name."""
    for found in (
        [metric.name for metric in names.METRICS],
        [attribute.name for attribute in names.ATTRIBUTES],
        [span.prefix for span in names.SPANS],
    ):
        assert len(found) == len(set(found)), found


@pytest.mark.parametrize("metric", names.METRICS, ids=lambda metric: metric.name)
class TestMetric:
    """Each metric of the catalogue."""

    def test_is_dotted_with_its_unit_in_ucum_and_not_in_the_name(self, metric: Metric) -> None:
        """The backend adds the unit to the name, so a name with the unit would have it twice."""
        assert re.fullmatch(r"[a-z]+(\.[a-z]+(_[a-z]+)*)+", metric.name)
        assert metric.unit in UNITS
        assert not re.search(r"seconds|bytes$|_ms|total|\bratio|\bcount\b", metric.name)

    def test_says_what_it_means(self, metric: Metric) -> None:
        """The meaning is a phrase without a full stop: it becomes a description in dashboards."""
        assert metric.meaning[0].isupper()
        assert not metric.meaning.endswith(".")

    def test_has_few_valued_labels_only(self, metric: Metric) -> None:
        """The id of a run, its date or its invocation on a metric would make a new series per run."""
        assert names.PIPELINE in metric.labels or metric.name.startswith("platform.")
        assert all(label.is_label for label in metric.labels)

    def test_becomes_the_instrument_of_its_kind(self, metric: Metric) -> None:
        """Name, unit, meaning and kind of the entry are those of the instrument."""
        measurements = Measurements(Resource.get_empty())
        measurements.record(metric, 1, dict.fromkeys(metric.labels, "x"))
        assert isinstance(measurements.made[metric], KINDS[metric.kind])
        data = measurements.new()
        assert data is not None
        (found,) = data.resource_metrics[0].scope_metrics[0].metrics
        assert (found.name, found.unit, found.description) == (metric.name, metric.unit, metric.meaning)


def test_labels_are_exactly_those_of_the_catalogue() -> None:
    """A missing label and one too many are errors that name the metric and both lists."""
    measurements = Measurements(Resource.get_empty())
    with pytest.raises(ValueError, match=r"pipeline\.runs has labels pipeline\.name, .*outcome; found pipeline\.name$"):
        measurements.record(names.RUNS, 1, {names.PIPELINE: "x"})
    with pytest.raises(ValueError, match=r"found .*pipeline\.run\.id"):
        measurements.record(names.READ, 1, {names.PIPELINE: "x", names.RUN_ID: "y"})


def test_buckets_rise_and_reach_from_a_blink_to_hours() -> None:
    """A day's run and a step of a tenth of a second both fall between bounds."""
    for metric in names.METRICS:
        if metric.kind == "histogram":
            assert list(metric.buckets) == sorted(set(metric.buckets))
            assert metric.buckets[0] <= 0.1
            assert metric.buckets[-1] >= 7200
        else:
            assert metric.buckets == ()
