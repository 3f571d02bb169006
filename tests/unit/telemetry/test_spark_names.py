"""What event logs tell is named as all else is."""

import re

import pytest

from app.telemetry import names, spark_names
from app.telemetry.names import Attribute, Metric, SpanName
from app.telemetry.prometheus_names import series

LABELS = {spark_names.STAGE_GROUP, spark_names.LOSS, spark_names.RULE, spark_names.SEVERITY}


def test_every_entry_is_in_its_list() -> None:
    """What the module defines is what dashboards and documents are made from."""
    found = {
        kind: {each for each in vars(spark_names).values() if isinstance(each, kind)} for kind in (Metric, SpanName)
    }
    assert found == {Metric: set(spark_names.METRICS), SpanName: set(spark_names.SPANS)}
    assert {each for each in vars(spark_names).values() if isinstance(each, Attribute)} == set(spark_names.ATTRIBUTES)


def test_a_name_is_stated_once_in_both_catalogues() -> None:
    """No two metrics share a name, neither here nor in Prometheus; no two attributes do."""
    both = (*names.METRICS, *spark_names.METRICS)
    told = [attribute.name for attribute in {*names.ATTRIBUTES, *spark_names.ATTRIBUTES}]
    for found in ([metric.name for metric in both], [series(metric) for metric in both], told):
        assert len(found) == len(set(found)), found


@pytest.mark.parametrize("metric", spark_names.METRICS, ids=lambda metric: metric.name)
def test_a_metric_is_bounded_and_says_what_it_means(metric: Metric) -> None:
    """Its unit is in UCUM and not in its name; of its labels none is an id."""
    assert re.fullmatch(r"spark(\.[a-z]+(_[a-z]+)*)+", metric.name)
    assert re.fullmatch(r"s|By|\{[a-z]+\}", metric.unit)
    assert not re.search(r"seconds|bytes|_ms|total|\bratio|\bcount\b", metric.name)
    assert metric.meaning[0].isupper()
    assert not metric.meaning.endswith(".")
    assert set(metric.labels) <= LABELS
    assert all(label.is_label for label in metric.labels)


@pytest.mark.parametrize("metric", spark_names.METRICS, ids=lambda metric: metric.name)
def test_buckets_rise_and_fit_their_unit(metric: Metric) -> None:
    """From a hundredth of a second to hours; from a page to more than a task should ever hold."""
    assert list(metric.buckets) == sorted(set(metric.buckets))
    assert bool(metric.buckets) is (metric.kind == "histogram")
    if metric.buckets:
        least, most = {"s": (0.01, 7200), "By": (4096, 16 * 2**30)}[metric.unit]
        assert (metric.buckets[0], metric.buckets[-1]) == (least, most)
