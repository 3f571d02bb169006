"""The collector of the pinned image, with the stack's configuration and other addresses."""

import gzip
import json
import re
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.export import Exporters
from spark_app.telemetry.instruments import Measurements
from spark_app.telemetry.otlp_client import OtlpClient
from spark_app.telemetry.stored_records import logs_of
from spark_app.vocabulary import names
from tests.polling import patience, poll_until
from tests.receivers import Receiver, attributes, receiver

CONFIG: Final = Path(__file__).resolve().parents[2] / "config" / "otel" / "collector.yaml"
NAMESPACE: Final = "k8s.namespace.name"
LINE: Final[dict[str, Any]] = {
    "timeUnixNano": "1766000000000000000",
    "observedTimeUnixNano": "1766000000000000000",
    "body": {"stringValue": "a line"},
}


class Collector:
    """A running collector.

    Attributes:
        otlp, grpc: Where it takes OTLP over HTTP and over gRPC.
        metrics: Where it serves its own metrics.
    """

    def __init__(self, ports: dict[str, int], process: subprocess.Popen[bytes]) -> None:
        """A process that listens at some ports."""
        self._process = process
        self.otlp = f"http://127.0.0.1:{ports['4318']}"
        self.grpc = f"http://127.0.0.1:{ports['4317']}"
        self.metrics = f"http://127.0.0.1:{ports['8888']}/metrics"

    def client(self) -> OtlpClient:
        """Sends to it."""
        exporters = Exporters(
            OTLPSpanExporter(f"{self.otlp}/v1/traces"),
            OTLPMetricExporter(f"{self.otlp}/v1/metrics"),
            OTLPLogExporter(f"{self.otlp}/v1/logs"),
        )
        return OtlpClient(exporters, errors=TelemetryErrors())

    def end(self) -> None:
        """Ends it as `docker compose stop` does: it waits for the answers of the back ends."""
        self._process.terminate()
        self._process.wait(timeout=patience(30))

    def own_metrics(self, name: str) -> list[str]:
        """The series of one of its own metrics."""
        with urllib.request.urlopen(self.metrics, timeout=5) as answer:
            return [line for line in answer.read().decode().splitlines() if line.startswith(f"{name}{{")]


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


@contextmanager
def collector(
    folder: Path, *options: str, traces: str, metrics: str, logs: str = "http://127.0.0.1:9"
) -> Iterator[Collector]:
    """A collector that keeps its state in a folder and sends to some addresses; it is killed in the end.

    What a back end has taken, but not yet confirmed, is sent a second time by the next collector: see `end`.
    """
    given = ("4317", "4318", "13133", "8888")
    ports = dict(zip(given, free_ports(len(given)), strict=True))
    text = CONFIG.read_text(encoding="utf-8")
    for old, new in {
        "/var/lib/otelcol": str(folder),
        "/var/log/spark": str(folder),
        "jaeger:4317": traces.removeprefix("http://"),
        "http://prometheus:9090/api/v1/otlp": metrics,
        "http://elasticsearch:9200": logs,
        'host: "0.0.0.0", port: 8888': f'host: "127.0.0.1", port: {ports["8888"]}',
        "flush_timeout: 2s, min_size: 1000": "flush_timeout: 100ms, min_size: 1",
        **{f"0.0.0.0:{old}": f"127.0.0.1:{new}" for old, new in ports.items()},
    }.items():
        assert old in text or old == "0.0.0.0:8888", old
        text = text.replace(old, new)
    (folder / "collector.yaml").write_text(text, encoding="utf-8")
    command = ["otelcol-contrib", f"--config={folder / 'collector.yaml'}", *options]
    with (folder / "log").open("a") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            poll_until(lambda: is_open(ports["4318"]), lambda: (folder / "log").read_text(encoding="utf-8")[-2000:])
            yield Collector(ports, process)
        finally:
            process.kill()


def is_open(port: int) -> bool:
    """Whether something listens."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def send_spans(to: Collector, *spans: str, service: str, application: str, namespace: str = "") -> None:
    """Spans of a program."""
    resource = Resource({names.SERVICE_NAME.name: service, names.APPLICATION.name: application})
    resource = resource.merge(Resource({NAMESPACE: namespace} if namespace else {}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{to.otlp}/v1/traces")))
    for name in spans:
        provider.get_tracer("test").start_span(name).end()


def has_waiting(to: Collector) -> bool:
    """Whether a queue of the collector holds something."""
    return any(not line.endswith(" 0") for line in to.own_metrics("otelcol_exporter_queue_size"))


def test_queues_survive_a_kill_of_the_collector(tmp_path: Path) -> None:
    """What a back end did not take is sent by the next collector."""
    with collector(tmp_path, traces="http://127.0.0.1:9", metrics="http://127.0.0.1:9") as first:
        send_spans(first, "run etl.daily_sales", service="spark-app", application="etl")
        measurements = Measurements(Resource.get_empty())
        measurements.record(names.READ, 5, {names.PIPELINE: "etl.daily_sales"})
        data = measurements.collect()
        assert data is not None
        assert first.client().send_metrics(data)
        poll_until(lambda: has_waiting(first), "something in a queue")
    with receiver() as back_end:
        with collector(tmp_path, traces=back_end.grpc_endpoint, metrics=back_end.http_endpoint):
            poll_until(lambda: {"run etl.daily_sales"} == names_of(back_end), lambda: names_of(back_end))
            poll_until(lambda: bool(read_counts(back_end)), "the metric")
        assert read_counts(back_end) == [0, 5]


def names_of(back_end: Receiver) -> set[str]:
    """The names of the spans that arrived."""
    return {span.name for span in back_end.spans}


def has_counts(back_end: Receiver, number: int) -> bool:
    """Whether so many values of the rows read arrived."""
    return len(read_counts(back_end)) == number


def read_counts(back_end: Receiver) -> list[int]:
    """The values of the rows read: the base and the count."""
    points = [
        point for metric in back_end.metrics if metric.name == names.READ.name for point in metric.sum.data_points
    ]
    return [point.as_int for point in points]


def test_growth_is_between_two_neighbouring_samples(tmp_path: Path) -> None:
    """The collector sums the deltas of runs; before each growth it sends the sum of before, also after a restart."""
    with receiver() as back_end:
        for rows in (5, 7):
            with collector(tmp_path, traces=back_end.grpc_endpoint, metrics=back_end.http_endpoint) as running:
                for _ in range(2):
                    measurements = Measurements(Resource.get_empty())
                    measurements.record(names.READ, rows, {names.PIPELINE: "x"})
                    measurements.record(names.RUN_DURATION, 2.0, {names.PIPELINE: "x", names.OUTCOME: "failed"})
                    data = measurements.collect()
                    assert data is not None
                    expected = len(read_counts(back_end)) + 2
                    assert running.client().send_metrics(data)
                    poll_until(partial(has_counts, back_end, expected), "both samples")
                running.end()
        assert read_counts(back_end) == [0, 5, 5, 10, 0, 7, 7, 14]
        found = [metric for metric in back_end.metrics if metric.name == names.RUN_DURATION.name]
        assert [point.count for metric in found for point in metric.histogram.data_points] == [0, 1, 1, 2, 0, 1, 1, 2]


def test_span_metrics_of_all_applications_are_one_for_each_kind_of_span(tmp_path: Path) -> None:
    """Runs and steps keep their names; traces keep all of theirs."""
    with receiver() as back_end:
        with collector(tmp_path, traces=back_end.grpc_endpoint, metrics=back_end.http_endpoint) as running:
            send_spans(running, "run etl.daily_sales", "step read", service="spark-app", application="etl")
            for shop in ("shop 1", "shop 2"):
                send_spans(running, "stage save at job.py:7", "application x", service=shop, application=shop)
            poll_until(lambda: len(calls(back_end)) == 4, lambda: calls(back_end), seconds=60)
        assert calls(back_end) == {
            ("spark-app", "run etl.daily_sales"), ("spark-app", "step read"),
            ("spark-applications", "stage"), ("spark-applications", "application"),
        }  # fmt: skip
        assert "stage save at job.py:7" in names_of(back_end)


def test_span_metrics_of_two_namespaces_are_apart(tmp_path: Path) -> None:
    """And those of all applications of one have no name of an application, which would be that of the first."""
    with receiver() as back_end:
        with collector(tmp_path, traces=back_end.grpc_endpoint, metrics=back_end.http_endpoint) as running:
            for namespace in ("jobs", "more"):
                send_spans(running, "stage x", service="shop", application="shop", namespace=namespace)
            poll_until(lambda: len(counted_of(back_end)) == 2, lambda: back_end.resources, seconds=60)
        assert {each[NAMESPACE] for each in counted_of(back_end)} == {"jobs", "more"}
        assert not any(names.APPLICATION.name in each for each in counted_of(back_end))


def counted_of(back_end: Receiver) -> list[dict[str, str]]:
    """The resources of the metrics of spans of Spark's applications, each once."""
    found = [each for each in back_end.resources if each.get("service.name") == "spark-applications"]
    return [each for number, each in enumerate(found) if each not in found[:number]]


def calls(back_end: Receiver) -> set[tuple[str, str]]:
    """The services and the names of the spans that were counted."""
    metrics = [metric for metric in back_end.metrics if metric.name == "traces.span.metrics.calls"]
    points = [attributes(point) for metric in metrics for point in metric.sum.data_points]
    return {(point["service.name"], point["span.name"]) for point in points}


def test_refused_log_lines_are_counted_by_the_name_that_the_alert_reads(tmp_path: Path) -> None:
    """With the outcome and the type of the error as labels."""
    rules = (CONFIG.parents[2] / "prometheus" / "rules" / "telemetry.yml").read_text(encoding="utf-8")
    (name,) = set(re.findall(r"otelcol_elasticsearch_\w+", rules))
    with elasticsearch(partial(refused, "document_parsing_exception")) as address:
        off = "http://127.0.0.1:9"
        with collector(tmp_path, traces=off, metrics=off, logs=address) as running:
            content = {"resourceLogs": [{"scopeLogs": [{"logRecords": [LINE]}]}]}
            assert running.client().send_logs(list(logs_of(json.dumps(content).encode())))
            poll_until(
                lambda: bool(running.own_metrics(name)), lambda: (tmp_path / "log").read_text(encoding="utf-8")[-3000:]
            )
            (series,) = running.own_metrics(name)
    assert 'error_type="document_parsing_exception"' in series
    assert 'outcome="failed_client"' in series
    assert series.endswith(" 1")


def test_could_not_find_appclient_is_no_error_of_a_driver_that_ends(tmp_path: Path) -> None:
    """The master had one more message for it. Other messages that a driver cannot take are errors."""
    taken: list[str] = []
    exceptions = ("Could not find AppClient.", "Could not find CoarseGrainedScheduler.", None)
    (tmp_path / "driver-host-1.jsonl").write_text(
        "".join(f"{refused_message(each)}\n" for each in exceptions), encoding="utf-8"
    )
    with elasticsearch(partial(took, taken)) as address:
        off = "http://127.0.0.1:9"
        with collector(tmp_path, traces=off, metrics=off, logs=address):
            poll_until(lambda: len(taken) >= 2, lambda: (tmp_path / "log").read_text(encoding="utf-8")[-3000:])
    found = [json.loads(line)["attributes"].get("exception", {}).get("msg") for line in taken]
    assert found == ["Could not find CoarseGrainedScheduler.", None]


def refused_message(exception: str | None) -> str:
    """A line of a driver about a message that it could not take, as Spark's layout writes it."""
    line: dict[str, Any] = {
        "ts": "2026-01-01T00:00:00.000Z",
        "level": "ERROR",
        "msg": "Error while invoking RpcHandler#receive() for one-way message from spark-master/172.18.0.8:7077.",
        "logger": "TransportRequestHandler",
    }
    if exception is not None:
        line["exception"] = {"class": "org.apache.spark.SparkException", "msg": exception, "stacktrace": []}
    return json.dumps(line)


def took(taken: list[str], request: bytes) -> dict[str, Any]:
    """The answer to a bulk request whose documents were taken."""
    documents = request.decode().splitlines()[1::2]
    taken += documents
    return {"took": 1, "errors": False, "items": [{"create": {"_index": "logs", "status": 201}} for _ in documents]}


def refused(kind: str, _: bytes) -> dict[str, Any]:
    """The answer to a bulk request of one line whose document was refused."""
    error = {"type": kind, "reason": "[1:2] failed to parse field"}
    return {"took": 1, "errors": True, "items": [{"create": {"_index": "logs", "status": 400, "error": error}}]}


@contextmanager
def elasticsearch(answer: Callable[[bytes], dict[str, Any]]) -> Iterator[str]:
    """A server with an answer to each bulk request."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.reply(answer(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body))

        def do_GET(self) -> None:
            self.reply({"version": {"number": "9.2.0"}})

        def reply(self, content: dict[str, Any]) -> None:
            body = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("X-Elastic-Product", "Elasticsearch")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
