"""Telemetry arrives at a real receiver, and a bad endpoint changes nothing else."""

import contextlib
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from spark_app.telemetry import setup
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.export import network_exporters
from spark_app.telemetry.run_identity import RunIdentity
from tests import polling
from tests.polling import poll_until
from tests.receivers import PROTOCOLS, Protocol, Receiver, attributes, dead_port, receiver, silent_port

LOG: Final = logging.getLogger("spark_app.execution.run")
CLOSE_SECONDS: Final = 3.0
PATIENCE_SECONDS: Final = 60
"""How long to wait for a good receiver on a busy machine."""
STALLS: Final = 3
"""How many ends in a row may take too long because the machine stalls."""
SECRET: Final = "s3cr3t-t0ken"
PROGRAM: Final = """
import json, logging, sys, threading, time
from pathlib import Path
from spark_app.telemetry import setup
from spark_app.telemetry.run_identity import RunIdentity
from spark_app.telemetry.setup import start

if sys.argv[2:]:
    setup.CLOSE_SECONDS = setup._FLUSH_SECONDS = float(sys.argv[2])
telemetry = start(service_version="1.2.3", environment="test", application="shop")
identity = RunIdentity("run-1", "0a1b2c3d4e5f", "etl.daily_sales", "2024-01-01", Path(sys.argv[1]), "shop")
with telemetry.run(identity) as run:
    with run.step("write bronze", kind="write", table="bronze") as step:
        logging.getLogger("spark_app.execution.run").warning("five rows")
        step.count(rows_written=5)
    run.record(rows_read=5)
began = time.monotonic()
is_taken = telemetry.close()
print(json.dumps({
    "close_seconds": time.monotonic() - began,
    "is_taken": is_taken,
    "errors": telemetry.errors,
    "holding_up": [thread.name for thread in threading.enumerate() if not thread.daemon][1:],
}))
sys.exit(7)
"""


class Ended:
    """The result of a process that ran one run and sent its telemetry to an endpoint."""

    def __init__(self, folder: Path, endpoint: str, *, protocol: Protocol, patience: int | None = None) -> None:
        """Runs the process to its end, with the given patience or its own."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TRACE"))}
        otel = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
        otel |= {} if patience is None else {"OTEL_EXPORTER_OTLP_TIMEOUT": str(patience)}
        folder.mkdir()
        self.folder = folder
        self.process = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(folder), *([] if patience is None else [str(patience)])],
            env={**clean, **otel, "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{SECRET}"},
            check=False,
            capture_output=True,
            text=True,
            timeout=polling.patience(180),
        )
        assert (self.process.returncode, self.process.stderr) == (7, "")
        result = json.loads(self.process.stdout)
        self.close_seconds: float = result["close_seconds"]
        self.is_taken: bool = result["is_taken"]
        self.errors: list[str] = result["errors"]
        self.holding_up: list[str] = result["holding_up"]


def assert_secret_is_kept(ended: Ended) -> None:
    """Tokens in headers reach the endpoint and neither files nor terminal; what is left to send is noted."""
    files = sorted(ended.folder.iterdir())
    left = [] if ended.is_taken else ["delivery.jsonl"]
    assert [path.name for path in files] == [*left, "logs.jsonl", "metrics.jsonl", "started.jsonl", "traces.jsonl"]
    assert not [path for path in files if SECRET in path.read_text()]
    assert SECRET not in ended.process.stdout


@dataclass(frozen=True)
class Delivery:
    """Two processes, one after the other, and the receiver that they sent to."""

    collector: Receiver
    first: Ended
    second: Ended


@pytest.fixture(scope="module", params=PROTOCOLS)
def delivery(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Delivery]:
    """One delivery by each protocol of OTLP."""
    folder, protocol = tmp_path_factory.mktemp("otlp"), request.param
    with receiver() as collector:
        endpoint = collector.endpoint(protocol)
        first, second = (
            Ended(folder / name, endpoint, protocol=protocol, patience=PATIENCE_SECONDS) for name in ("first", "second")
        )
        yield Delivery(collector, first, second)


def test_traces_metrics_and_logs_arrive(delivery: Delivery) -> None:
    """All three signals arrive with the resource and the authorization header, without an error."""
    collector = delivery.collector
    for ended in (delivery.first, delivery.second):
        assert (ended.errors, ended.is_taken) == ([], True)
    step, run = collector.spans[:2]
    assert (run.name, step.name) == ("run etl.daily_sales", "step write bronze")
    assert (step.trace_id, step.parent_span_id) == (run.trace_id, run.span_id)
    assert attributes(step)["pipeline.rows.written"] == 5
    assert [log.body.string_value for log in collector.logs] == ["five rows"] * 2
    assert collector.logs[0].span_id == step.span_id
    units = {metric.name: metric.unit for metric in collector.metrics}
    assert (units["pipeline.runs"], units["pipeline.rows.read"]) == ("{run}", "{row}")
    for resource in collector.resources:
        assert (resource["service.name"], resource["service.instance.id"]) == ("spark-app", "batch")
    assert {headers["authorization"] for headers in collector.headers} == {f"Bearer {SECRET}"}


def test_the_receiver_and_the_files_have_the_same_spans(delivery: Delivery) -> None:
    """The ids are equal; the token of the headers is in no file."""
    ended = (delivery.first, delivery.second)
    content = "".join((each.folder / "traces.jsonl").read_text() for each in ended)
    for each in ended:
        assert_secret_is_kept(each)
    assert len(delivery.collector.spans) == len(content.splitlines()) == 4
    for span in delivery.collector.spans:
        assert f'"spanId":"{span.span_id.hex()}"' in content


def test_deltas_of_separate_processes_add_up(delivery: Delivery) -> None:
    """Deltas of one constant instance: two processes count 2 runs in one series, with a 0 before each.

    The sum is computed as a collector does: a delta that starts before its series, or is not newer, is dropped.
    """
    total, series_start, last, values = 0, 0, 0, []
    for metric in delivery.collector.metrics:
        assert metric.name != "pipeline.runs" or metric.sum.aggregation_temporality == 1
        for point in metric.sum.data_points if metric.name == "pipeline.runs" else ():
            if attributes(point)["pipeline.run.outcome"] == "succeeded":
                series_start = series_start or point.start_time_unix_nano
                assert point.start_time_unix_nano >= series_start
                assert point.time_unix_nano > last
                total, last = total + point.as_int, point.time_unix_nano
                values.append(point.as_int)
    assert (total, values) == (2, [0, 0, 1, 0, 0, 1])


@pytest.fixture
def normal() -> Iterator[Receiver]:
    """A good receiver."""
    with receiver() as collector:
        yield collector


def test_an_open_run_is_sent_while_it_lasts(normal: Receiver, tmp_path: Path) -> None:
    """A run of a week is seen from its first seconds on: its steps, its metrics and its log arrive before it ends."""
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": normal.endpoint("http/protobuf")}
    errors = TelemetryErrors()
    telemetry = setup.Telemetry(
        setup.resource(service_version="1", environment="test", application="shop"),
        exporters=network_exporters(variables, errors=errors),
        variables=variables,
        errors=errors,
    )
    with telemetry.run(RunIdentity("run-1", "0a1b2c3d4e5f", "streaming.orders", "", tmp_path, "shop")) as run:
        with run.step("batch 0", kind="write"):
            LOG.warning("five rows")
        run.record(rows_read=5)
        poll_until(lambda: [span.name for span in normal.spans] == ["step batch 0"], "the span of the step")
        poll_until(lambda: [log.body.string_value for log in normal.logs] == ["five rows"], "the log record")
        poll_until(lambda: rows_read(normal) == [0, 0, 5], "the rows read")
    telemetry.close()
    assert rows_read(normal) == [0, 0, 5]
    assert [span.name for span in normal.spans] == ["step batch 0", "run streaming.orders"]
    assert telemetry.errors == []


def rows_read(receiver: Receiver) -> list[int]:
    """The points of the rows read that have arrived."""
    metrics = [metric for metric in receiver.metrics if metric.name == "pipeline.rows.read"]
    return [point.as_int for metric in metrics for point in metric.sum.data_points]


@contextlib.contextmanager
def bad(kind: str, protocol: Protocol) -> Iterator[str]:
    """A bad endpoint of one kind."""
    with contextlib.ExitStack() as stack:
        if kind == "dead":
            yield f"http://127.0.0.1:{dead_port()}"
        elif kind == "silent":
            yield f"http://127.0.0.1:{stack.enter_context(silent_port())}"
        else:
            mode = stack.enter_context(receiver("refusing" if kind == "refusing" else "hanging"))
            yield mode.endpoint(protocol)


@pytest.mark.parametrize(
    ("kind", "protocol"),
    [
        ("dead", "grpc"),
        ("refusing", "http/protobuf"),
        ("hanging", "grpc"),
        ("hanging", "http/protobuf"),
        ("silent", "http/protobuf"),
    ],
)
def test_a_bad_endpoint_does_not_change_a_run(kind: str, protocol: Protocol, tmp_path: Path) -> None:
    """The exit code is the program's, the terminal stays clean, files are complete, and the end takes 3 s at most.

    The log of the run has the error, without the token of the headers. The end itself waits for 2 s at most.
    """
    with bad(kind, protocol) as endpoint:
        several = (Ended(tmp_path / str(number), endpoint, protocol=protocol) for number in range(STALLS))
        ended = next((ended for ended in several if ended.close_seconds < CLOSE_SECONDS), None)
    assert ended is not None, f"each time the end took more than {CLOSE_SECONDS} s"
    assert (ended.holding_up, ended.is_taken) == ([], False)
    assert "OTLP export timed out; the run folder has the rest, which `spark-app resend` sends" in ended.errors
    assert_secret_is_kept(ended)
    log = (ended.folder / "logs.jsonl").read_text()
    assert "five rows" in log
    assert "OTLP export timed out" in log
    assert len((ended.folder / "traces.jsonl").read_text().splitlines()) == 2


def test_a_fork_during_a_request_prints_nothing(tmp_path: Path) -> None:
    """Spark's JVM is forked, and the C core of gRPC would print a warning about open calls."""
    forking = "[subprocess.run([sys.executable, '-S', '-c', ''], preexec_fn=lambda: None) for _ in range(20)]"
    program = "import subprocess\n" + PROGRAM.replace("step.count(rows_written=5)", forking)
    with receiver("hanging") as hanging:
        otel = {"OTEL_EXPORTER_OTLP_ENDPOINT": hanging.grpc_endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
        ended = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program, str(tmp_path)],
            env={**os.environ, **otel},
            check=False,
            capture_output=True,
            text=True,
            timeout=polling.patience(180),
        )
    assert (ended.returncode, ended.stderr) == (7, "")
