"""What is sent arrives at a real receiver, and an endpoint that behaves badly changes nothing but what arrives."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.receivers import PROTOCOLS, Protocol, Receiver, attributes, dead_port, receiver, silent_port

CLOSE_SECONDS: Final = 3.0
PATIENCE_SECONDS: Final = 60
"""How long a receiver as it should be is waited for: a busy machine is no bad endpoint."""
STALLS: Final = 3
"""How often in turn a machine may stand still for so long that an end takes too long."""
SECRET: Final = "s3cr3t-t0ken"
PROGRAM: Final = """
import datetime, json, logging, sys, threading, time
from pathlib import Path
from app.telemetry import setup
from app.telemetry.facts import RunFacts
from app.telemetry.setup import start

if sys.argv[2:]:
    setup.CLOSE_SECONDS = setup._FLUSH_SECONDS = float(sys.argv[2])
telemetry = start(service_version="1.2.3", environment="test", application="shop")
facts = RunFacts("run-1", "0a1b2c3d4e5f", "etl.daily_sales", datetime.date(2024, 1, 1), Path(sys.argv[1]), "shop")
with telemetry.run(facts) as run:
    with run.step("write bronze", kind="write", table="bronze") as step:
        logging.getLogger("app.runner").warning("five rows")
        step.count(rows_written=5)
    run.record(rows_read=5)
began = time.monotonic()
is_taken = telemetry.close()
print(json.dumps({
    "close_seconds": time.monotonic() - began,
    "is_taken": is_taken,
    "problems": telemetry.problems,
    "holding_up": [thread.name for thread in threading.enumerate() if not thread.daemon][1:],
}))
sys.exit(7)
"""


class Ended:
    """What a process left behind that ran one run and sent it somewhere."""

    def __init__(self, folder: Path, endpoint: str, *, protocol: Protocol, patience: int | None = None) -> None:
        """Runs it to its end, with more patience than it has by itself if need be."""
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
            timeout=180,
        )
        assert (self.process.returncode, self.process.stderr) == (7, "")
        told = json.loads(self.process.stdout)
        self.close_seconds: float = told["close_seconds"]
        self.is_taken: bool = told["is_taken"]
        self.problems: list[str] = told["problems"]
        self.holding_up: list[str] = told["holding_up"]


def assert_secret_is_kept(ended: Ended) -> None:
    """Headers hold tokens: they go to the endpoint and nowhere else."""
    files = sorted(ended.folder.iterdir())
    assert [path.name for path in files] == ["logs.jsonl", "metrics.jsonl", "started.jsonl", "traces.jsonl"]
    assert not [path for path in files if SECRET in path.read_text()]
    assert SECRET not in ended.process.stdout


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    """Both ways to speak OTLP."""
    found: Protocol = request.param
    return found


@pytest.fixture
def normal() -> Iterator[Receiver]:
    """A receiver as it should be."""
    with receiver() as found:
        yield found


def test_traces_metrics_and_logs_arrive(normal: Receiver, protocol: Protocol, tmp_path: Path) -> None:
    """All three signals, with the resource, the header that authorizes them, and nothing that went wrong."""
    ended = Ended(tmp_path / "run", normal.endpoint(protocol), protocol=protocol, patience=PATIENCE_SECONDS)
    assert (ended.problems, ended.is_taken) == ([], True)
    run, step = sorted(normal.spans, key=lambda span: span.name)
    assert (run.name, step.name) == ("run etl.daily_sales", "step write bronze")
    assert (step.trace_id, step.parent_span_id) == (run.trace_id, run.span_id)
    assert attributes(step)["pipeline.rows.written"] == 5
    (log,) = normal.logs
    assert (log.body.string_value, log.span_id) == ("five rows", step.span_id)
    units = {metric.name: metric.unit for metric in normal.metrics}
    assert (units["pipeline.runs"], units["pipeline.rows.read"]) == ("{run}", "{row}")
    for resource in normal.resources:
        assert resource["service.name"] == "spark-app"
        assert resource["service.instance.id"] == "batch"
    assert {headers["authorization"] for headers in normal.headers} == {f"Bearer {SECRET}"}


def test_what_arrives_is_what_the_files_say(normal: Receiver, protocol: Protocol, tmp_path: Path) -> None:
    """The same spans, by their ids, are at the backend and in the run's folder; the token of the headers is not."""
    ended = Ended(tmp_path / "run", normal.endpoint(protocol), protocol=protocol, patience=PATIENCE_SECONDS)
    content = (ended.folder / "traces.jsonl").read_text()
    assert_secret_is_kept(ended)
    assert len(normal.spans) == 2
    for span in normal.spans:
        assert f'"spanId":"{span.span_id.hex()}"' in content


def test_runs_of_separate_processes_add_up(normal: Receiver, protocol: Protocol, tmp_path: Path) -> None:
    """Deltas of one constant instance: two processes count 2 runs in one series, which starts with a 0.

    The sum is made as a collector makes it: a delta that starts before the series does, or is not newer, is dropped.
    """
    for number in range(2):
        Ended(tmp_path / f"run-{number}", normal.endpoint(protocol), protocol=protocol, patience=PATIENCE_SECONDS)
    assert {resource["service.instance.id"] for resource in normal.resources} == {"batch"}
    total, series_start, last, first = 0, 0, 0, []
    for metric in normal.metrics:
        assert metric.name != "pipeline.runs" or metric.sum.aggregation_temporality == 1
        for point in metric.sum.data_points if metric.name == "pipeline.runs" else ():
            if attributes(point)["pipeline.run.outcome"] == "succeeded":
                series_start = series_start or point.start_time_unix_nano
                assert point.start_time_unix_nano >= series_start
                assert point.time_unix_nano > last
                total, last = total + point.as_int, point.time_unix_nano
                first.append(point.as_int)
    assert (total, first) == (2, [0, 1, 0, 1])


@contextlib.contextmanager
def bad(kind: str, protocol: Protocol) -> Iterator[str]:
    """An endpoint that behaves badly in one way."""
    with contextlib.ExitStack() as stack:
        if kind == "dead":
            yield f"http://127.0.0.1:{dead_port()}"
        elif kind == "silent":
            yield f"http://127.0.0.1:{stack.enter_context(silent_port())}"
        else:
            mode = stack.enter_context(receiver("refusing" if kind == "refusing" else "hanging"))
            yield mode.endpoint(protocol)


@pytest.mark.parametrize("kind", ["dead", "refusing", "hanging", "silent"])
def test_a_bad_endpoint_changes_nothing(kind: str, protocol: Protocol, tmp_path: Path) -> None:
    """The exit code is the program's own, the terminal stays clean, files are whole, and the end comes within 3 s.

    What goes wrong is in the log of the run, without the token of the headers.

    The 3 seconds are a promise to whoever runs a job. They are far more than the end needs, which waits 2 s at most.
    """
    with bad(kind, protocol) as endpoint:
        several = (Ended(tmp_path / str(number), endpoint, protocol=protocol) for number in range(STALLS))
        ended = next((ended for ended in several if ended.close_seconds < CLOSE_SECONDS), None)
    assert ended is not None, f"each time the end took more than {CLOSE_SECONDS} s"
    assert (ended.holding_up, ended.is_taken) == ([], False)
    assert "the endpoint did not take all telemetry in time; the files of the run have it" in ended.problems
    assert_secret_is_kept(ended)
    log = (ended.folder / "logs.jsonl").read_text()
    assert "five rows" in log
    assert "the endpoint did not take all telemetry in time" in log
    assert len((ended.folder / "traces.jsonl").read_text().splitlines()) == 2


def test_a_process_started_meanwhile_says_nothing(tmp_path: Path) -> None:
    """Spark's JVM is forked, and gRPC's C core would tell the terminal if a call is open then."""
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
            timeout=180,
        )
    assert (ended.returncode, ended.stderr) == (7, "")
