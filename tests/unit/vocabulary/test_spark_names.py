import re

from spark_app.vocabulary import names, spark_names
from spark_app.vocabulary.names import Attribute, Metric, SpanName
from spark_app.vocabulary.prometheus_names import series

METRICS = (*spark_names.METRICS, *spark_names.BRIDGE_METRICS)
LABELS = {spark_names.SIGNAL, spark_names.STAGE_GROUP, spark_names.LOSS, spark_names.RULE, spark_names.SEVERITY}


def test_every_entry_is_in_its_list() -> None:
    """Dashboards and documents are made from the lists."""
    entries = {
        kind: {each for each in vars(spark_names).values() if isinstance(each, kind)} for kind in (Metric, SpanName)
    }
    assert entries == {Metric: set(METRICS), SpanName: set(spark_names.SPANS)}
    assert {each for each in vars(spark_names).values() if isinstance(each, Attribute)} == set(spark_names.ATTRIBUTES)


def test_a_name_is_unique_in_both_catalogues() -> None:
    """No two metrics share a name, neither here nor in Prometheus; no two attributes do."""
    both = (*names.METRICS, *METRICS)
    attributes = [attribute.name for attribute in {*names.ATTRIBUTES, *spark_names.ATTRIBUTES}]
    for entries in ([metric.name for metric in both], [series(metric) for metric in both], attributes):
        assert len(entries) == len(set(entries)), entries


def test_a_metric_is_bounded_and_has_a_meaning() -> None:
    """Its unit is in UCUM and not in its name; no label is an id."""
    wrong = [
        metric.name
        for metric in METRICS
        if not re.fullmatch(r"spark(\.[a-z]+(_[a-z]+)*)+", metric.name)
        or not re.fullmatch(r"s|By|\{[a-z]+\}", metric.unit)
        or re.search(r"seconds|bytes|_ms|total|\bratio|\bcount\b", metric.name)
        or not metric.meaning[0].isupper()
        or metric.meaning.endswith(".")
        or not set(metric.labels) <= LABELS
        or not all(label.is_label for label in metric.labels)
    ]
    assert wrong == []


def test_buckets_rise_and_fit_their_unit() -> None:
    """From 10 ms to hours; from 4 KiB to more than a task should ever hold."""
    bounds = {"s": (0.01, 7200), "By": (4096, 16 * 2**30)}
    for metric in METRICS:
        assert list(metric.buckets) == sorted(set(metric.buckets)), metric.name
        assert bool(metric.buckets) is (metric.kind == "histogram"), metric.name
        assert not metric.buckets or (metric.buckets[0], metric.buckets[-1]) == bounds[metric.unit], metric.name
