"""What event logs tell, as exporters get it: exact ids, times, attributes and types."""

import dataclasses
import os
from collections.abc import Iterator
from typing import Any, Final

import pytest
from opentelemetry.sdk.metrics.export import AggregationTemporality, Gauge, Metric, MetricsData, Sum
from opentelemetry.sdk.metrics.export import Histogram as SdkHistogram
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from spark_app.eventlog.bridge.export import MAX_POINTS, Window, metrics_data, resource_of, sdk_spans
from spark_app.eventlog.bridge.metrics import Aggregate, merged
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.labels import LabelSources
from spark_app.eventlog.span_ids import SpanContext
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.export import Exporters
from spark_app.telemetry.otlp_client import OtlpClient, otlp_client
from spark_app.vocabulary import spark_names
from tests.receivers import PROTOCOLS, Protocol, Receiver, attributes, receiver
from tests.unit.eventlog import log
from tests.unit.eventlog.bridge.test_metrics import GROUP, aggregator, metered, program
from tests.unit.eventlog.log import (
    Line,
    becomes,
    ended,
    job,
    job_ended,
    operation,
    query,
    query_ended,
    read,
    session,
    stage,
    started,
    tag,
    task,
)  # fmt: skip

TOTAL: Final = Window(10**18, 10**18 + 5 * 10**9, is_delta=False)
STEP: Final = f"00-{'a' * 32}-{'b' * 16}-01"
ERROR: Final = "Job aborted: java.lang.IllegalStateException: no <script>"
EXECUTION: Final[dict[str, Any]] = {"spark.sql.execution.id": "0"}
STREAM: Final[dict[str, Any]] = {"sql.streaming.queryId": "q", "streaming.sql.batchId": "7", "spark.jobGroup.id": "r"}
SQL: Final = 'sql {\n  query: "SELECT 1"\n}\npython_origin {\n  call_site: "job.py:1"\n}\n'
ASKED: Final = {"spark.job.tags": tag("o")}
LINES: Final[list[Line]] = [
    started(), query(0), job(0, [0], traceparent=STEP, **EXECUTION),
    stage(0), task(0, 0, error="no"), stage(0, end=2900, error=ERROR), job_ended(0, error=ERROR),
    query_ended(0, error=ERROR), job(1, [1], **STREAM), stage(1), task(1, 1), stage(1, end=2950), job_ended(1),
    session(), operation("o", statement=SQL), becomes("o", "ReadyForExecution", time=1700),
    job(2, [2], **ASKED), stage(2), task(2, 2) | {"Event": "SparkListenerTaskStart"}, stage(2, end=2960), job_ended(2),
    becomes("o", "Finished", time=3000, producedRowCount=7), becomes("o", "Closed", time=3000), ended(),
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of whoever runs the tests do not reach the SDK."""
    for name in tuple(os.environ):
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)
    resource_of.cache_clear()


def exported() -> dict[str, ReadableSpan]:
    """One span of each kind, through an exporter of the SDK."""
    _, spans = read(LINES)
    found = Finding("spill", "warning", "5 GB", "more", {"spilled_bytes": 5e9}, 12.5, operator="Sort")
    spans["stage 0.0"] = dataclasses.replace(spans["stage 0.0"], findings=(found,))
    memory = InMemorySpanExporter()
    assert OtlpClient(Exporters(spans=memory), errors=TelemetryErrors()).send_spans(
        sdk_spans(spans.values(), Resource({"a": "b"}))
    )
    return dict(zip(spans, memory.get_finished_spans(), strict=True))


def test_there_is_a_span_of_each_kind() -> None:
    """Those of the catalogue, with its attributes, of its types."""
    found = exported()
    kinds = {kind.prefix: kind for kind in spark_names.SPANS}
    assert {name.split()[0] for name in found} == set(kinds)
    for name, span in found.items():
        known = {attribute.name: attribute.type for attribute in kinds[name.split()[0]].attributes}
        assert span.attributes
        assert {key: type(value) for key, value in span.attributes.items()}.items() <= known.items()


def test_ids_and_times_are_those_of_the_log() -> None:
    """Nanoseconds; the parent is of another process; the scope and the resource are ours."""
    _, spans = read(LINES)
    for name, span in exported().items():
        ids = spans[name].ids
        assert span.context is not None
        assert (span.context.trace_id, span.context.span_id) == (ids.trace_id, ids.span_id)
        assert span.context.trace_flags.sampled
        assert (span.start_time, span.end_time) == (spans[name].started * 10**6, spans[name].ended * 10**6)
        assert (span.parent and (span.parent.span_id, span.parent.is_remote)) == (
            ids.parent_id and (ids.parent_id, True)
        )
        assert (span.name, span.resource.attributes) == (spans[name].name, {"a": "b"})
        assert span.instrumentation_scope is not None
        assert span.instrumentation_scope.name == "spark_app"


def test_a_failure_is_a_status_and_an_event_at_the_end() -> None:
    """The type and the text, as text; what went well has neither."""
    found = exported()
    for name in ("sql 0", "job 0", "stage 0.0"):
        span = found[name]
        assert (span.status.status_code, span.status.description) == (
            StatusCode.ERROR,
            "java.lang.IllegalStateException",
        )
        event = span.events[0]
        assert (event.name, event.timestamp) == ("exception", span.end_time)
        assert event.attributes == {
            "exception.type": "java.lang.IllegalStateException",
            "exception.message": ERROR,
        }
    for name in ("job 1", "stage 1.0", "task 1"):
        assert (found[name].status.status_code, found[name].events) == (StatusCode.UNSET, ())


def test_a_finding_is_an_event() -> None:
    """With all that it says; what is unknown is absent."""
    span = exported()["stage 0.0"]
    assert (span.events[1].name, span.events[1].timestamp) == ("spark.finding", span.end_time)
    assert span.events[1].attributes == {
        "spark.finding.rule": "spill",
        "spark.finding.severity": "warning",
        "spark.finding.text": "5 GB",
        "spark.finding.advice": "more",
        "spark.finding.cost": 12.5,
        "spark.finding.operator": "Sort",
        "spark.finding.numbers": '{"spilled_bytes":5000000000.0}',
    }
    bare = dataclasses.replace(read(LINES)[1]["job 1"], findings=(Finding("spill", "info", "t", "a"),))
    (bare_exported,) = sdk_spans([bare], Resource.get_empty())
    assert set(bare_exported.events[0].attributes or ()) == {
        f"spark.finding.{key}" for key in ("rule", "severity", "text", "advice")
    }


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_links_arrive_with_the_number_of_those_left_out(protocol: Protocol, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links have a field of their own in OTLP, and their trace is that of the producer; other spans have none."""
    spans = read(LINES)[1]
    linked = dataclasses.replace(spans["batch 7"], links=(SpanContext(2, 3, 1), SpanContext(4, 5, 0)), links_left_out=9)
    flooded = dataclasses.replace(spans["job 1"], links_left_out=2**40)
    with receiver() as receiving:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiving.endpoint(protocol))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        client = otlp_client(errors=TelemetryErrors())
        assert client.send_spans(sdk_spans([linked, flooded, spans["job 0"]], Resource({"a": "b"})))
        client.close()
    links = [[(link.trace_id, link.span_id) for link in span.links] for span in receiving.spans]
    ids = [[tuple(map(int.from_bytes, pair)) for pair in pairs] for pairs in links]
    assert ids == [[(2, 3), (4, 5)], [], []]
    assert [span.dropped_links_count for span in receiving.spans] == [9, 2**32 - 1, 0]


def test_the_resource_is_the_application(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the service, whatever the program that reads the log is called; where it runs, the variables know best."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "the bridge")
    assert resource_of("shop", environment="dev").attributes.items() >= {
        ("service.name", "shop"), ("service.instance.id", "batch"), ("spark.app.name", "shop"),
        ("deployment.environment.name", "dev"),
    }  # fmt: skip
    resource_of.cache_clear()
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=production,team=a")
    assert resource_of("shop", environment="dev").attributes.items() >= {
        ("service.name", "shop"), ("deployment.environment.name", "production"), ("team", "a"),
    }  # fmt: skip


def test_labels_of_an_application_go_before_those_of_the_program_that_reads_its_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An application that says its team has it, and the cluster of the bridge."""
    resource_of.cache_clear()
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=east,team=ops")
    sources = LabelSources({"team": ["spark.team"]}, of_metrics=["team"])
    app = log.application([log.started(), log.environment({"spark.team": "web"})])
    resource = resource_of(sources.labelled_name(app, unnamed="unknown"), environment="dev")
    labels = {"spark.app.name": "shop", "k8s.cluster.name": "east", "team": "web"}
    assert resource.attributes.items() >= labels.items()
    resource_of.cache_clear()


def test_totals_say_whose_they_are_and_deltas_do_not() -> None:
    """Totals of two bridges are two series; deltas of all processes add up in one."""
    for window, instance in ((Window(17, 18, is_delta=False), "bridge-17"), (Window(17, 18, is_delta=True), "batch")):
        (data,) = metrics_data(counted(), window, environment="test")
        (resource,) = (each.resource for each in data.resource_metrics)
        assert resource.attributes["service.instance.id"] == instance


def counted() -> Aggregate:
    """An application with two tasks, one of which failed."""
    found = aggregator(program(metered(0), task(1, 0, seconds=3, error="no")))
    found.found([Finding("spill", "warning", "t", "a")])
    return found.aggregate()


def metrics(window: Window, aggregate: Aggregate) -> dict[str, Metric]:
    """The metrics of one application, by name."""
    (data,) = metrics_data(aggregate, window, environment="test")
    (resource,) = data.resource_metrics
    assert resource.resource.attributes["service.name"] == "shop"
    (scope,) = resource.scope_metrics
    return {metric.name: metric for metric in scope.metrics}


def test_values_are_in_the_unit_of_the_catalogue() -> None:
    """Seconds and bytes, with the bounds of the catalogue, and the exemplar in the same unit."""
    found = metrics(TOTAL, counted())
    duration = found["spark.task.duration"]
    assert isinstance(duration.data, SdkHistogram)
    assert duration.data.aggregation_temporality is AggregationTemporality.CUMULATIVE
    (point,) = duration.data.data_points
    assert (point.attributes, point.count, point.sum, point.min, point.max) == (
        {"spark.stage.group": GROUP}, 2, 3.1, 0.1, 3.0,
    )  # fmt: skip
    assert (point.start_time_unix_nano, point.time_unix_nano) == (TOTAL.started_ns, TOTAL.ended_ns)
    assert point.explicit_bounds == spark_names.TASK_DURATION.buckets
    assert {point.explicit_bounds[bucket]: count for bucket, count in enumerate(point.bucket_counts) if count} == {
        0.1: 1, 5.0: 1,
    }  # fmt: skip
    (exemplar,) = point.exemplars
    assert (exemplar.value, exemplar.time_unix_nano) == (3.0, 5_200_000_000)
    (read_bytes,) = found["spark.task.input"].data.data_points
    (run_time,) = found["spark.task.run_time"].data.data_points
    assert isinstance(found["spark.task.input"].data, Sum)
    assert found["spark.task.input"].unit == "By"
    assert (vars(read_bytes)["value"], vars(run_time)["value"]) == (2048, 2.78)


def test_each_metric_is_what_the_catalogue_says() -> None:
    """Name, unit, meaning, kind and labels."""
    found = metrics(TOTAL, counted())
    kinds: dict[str, type] = {"histogram": SdkHistogram, "counter": Sum, "gauge": Gauge}
    for metric in spark_names.METRICS:
        if metric.name in found:
            made = found[metric.name]
            assert (made.unit, made.description, type(made.data)) == (metric.unit, metric.meaning, kinds[metric.kind])
            for point in made.data.data_points:
                assert set(point.attributes or ()) == {label.name for label in metric.labels}
    missing = {metric.name for metric in spark_names.METRICS} - set(found)
    assert missing == {
        "spark.task.shuffle.write", "spark.task.spill", "spark.task.output", "spark.task.gc_time",
        "spark.stage.python_time", "spark.executors.added", "spark.executors.lost", "spark.storage.memory",
    }  # fmt: skip


def test_deltas_have_no_levels() -> None:
    """Whoever tells them has ended; all else is a delta."""
    found = metrics(dataclasses.replace(TOTAL, is_delta=True), counted())
    assert not [metric for metric in found.values() if isinstance(metric.data, Gauge)]
    temporalities = {
        metric.data.aggregation_temporality for metric in found.values() if not isinstance(metric.data, Gauge)
    }
    assert temporalities == {AggregationTemporality.DELTA}


def test_a_request_is_never_too_large() -> None:
    """All applications are exported, each in one request."""
    one = counted().applications["shop"]
    many = merged(Aggregate({f"{number}": one}) for number in range(400))
    requests = list(metrics_data(many, TOTAL, environment="test"))
    assert len(requests) > 1
    sizes = [sum(1 for _ in points(request)) for request in requests]
    assert max(sizes) < MAX_POINTS + 20
    names = [
        resource.resource.attributes["service.name"] for request in requests for resource in request.resource_metrics
    ]
    assert names == [str(number) for number in range(400)]


def points(data: MetricsData) -> Iterator[Any]:
    """All points of a request."""
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                yield from metric.data.data_points


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    """Both ways to speak OTLP."""
    found: Protocol = request.param
    return found


def test_spans_and_metrics_arrive(monkeypatch: pytest.MonkeyPatch, protocol: Protocol) -> None:
    """What a receiver gets is what the log says: ids, times, exemplars."""
    with receiver() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.endpoint(protocol))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        problems = TelemetryErrors()
        way = otlp_client(errors=problems)
        _, spans = read(LINES)
        resource = resource_of("shop", environment="test")
        assert way.send_spans(sdk_spans(spans.values(), resource))
        for data in metrics_data(counted(), TOTAL, environment="test"):
            assert way.send_metrics(data)
        way.close()
    assert list(problems) == []
    assert [(span.span_id, span.start_time_unix_nano) for span in found.spans] == [
        (each.ids.span_id.to_bytes(8), each.started * 10**6) for each in spans.values()
    ]
    assert {resource["service.name"] for resource in found.resources} == {"shop"}
    assert_exemplar_leads_to_a_stage(found)


def assert_exemplar_leads_to_a_stage(found: Receiver) -> None:
    """The stage of the same log, in the trace that a step began or in its own."""
    (duration,) = [metric for metric in found.metrics if metric.name == "spark.task.duration"]
    (point,) = duration.histogram.data_points
    (exemplar,) = point.exemplars
    assert attributes(point) == {"spark.stage.group": GROUP}
    assert (exemplar.as_double, sum(point.bucket_counts), point.count) == (3.0, 2, 2)
    assert exemplar.span_id in {span.span_id for span in found.spans if span.name.startswith("stage ")}
