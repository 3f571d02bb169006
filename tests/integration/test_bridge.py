"""The bridge as a process of its own, killed whenever, before a real receiver that is not always there."""

import os
import random
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from spark_app.eventlog.bridge.histograms import PER_UNIT
from spark_app.eventlog.bridge.log_processor import LogProcessor
from spark_app.eventlog.bridge.metrics import merged
from spark_app.eventlog.parse.log_files import logs_in
from spark_app.runs import liveness
from spark_app.telemetry.delivery import DELIVERY
from tests.polling import poll_until
from tests.receivers import Protocol, Receiver, attributes, receiver
from tests.unit.eventlog.log import Line, ended, job, job_ended, query, query_ended, stage, started, task
from tests.unit.eventlog.logs import OPTIONS, program, text, write
from tests.unit.telemetry.memory import leave_metrics, process

JOBS: Final = 300
TASKS: Final = 12
LEVELS: Final = ("spark.tasks.active", "spark.executors.active", "spark.cores.active")
Series = tuple[str, tuple[tuple[str, Any], ...]]


def application(number: int) -> Iterator[Line]:
    """An application of many jobs, each of a query and a stage."""
    yield started() | {"App ID": f"app-{number}"}
    for each in range(JOBS):
        yield query(each)
        yield job(each, [each], time=2000, **{"spark.sql.execution.id": str(each)})
        yield stage(each)
        yield from (
            task(each * TASKS + index, each, seconds=index + 1, error="no" if index == each else None)
            for index in range(TASKS)
        )
        yield stage(each, end=2900)
        yield job_ended(each)
        yield query_ended(each)
    yield ended()


class Running:
    """A bridge at work."""

    def __init__(self, process: "subprocess.Popen[str]", errors: Path) -> None:
        """It has been started."""
        self.process, self._errors = process, errors

    @property
    def stderr(self) -> str:
        """What it said on the terminal."""
        return self._errors.read_text(encoding="utf-8")

    def wait(self) -> None:
        """Waits until it follows."""
        poll_until(lambda: "following" in self.stderr or self.process.poll() is not None, lambda: self.stderr)

    def figure(self, name: str) -> float:
        """A figure that it tells of itself."""
        port = re.search(r"on 127\.0\.0\.1:(\d+)", self.stderr)
        assert port, self.stderr
        with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/metrics") as answer:
            found = re.search(rf"^spark_bridge_{re.escape(name)} (\S+)$", answer.read().decode(), re.MULTILINE)
        assert found, name
        return float(found[1])

    def ends(self) -> int:
        """The exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def bridge(
    folder: Path, endpoint: str, *options: str, protocol: Protocol = "http/protobuf", patience: int = 60
) -> Iterator[Running]:
    """A bridge that follows a folder, at home beside it; it does not outlive the block.

    A request that is not taken within the seconds of its patience is sent again, though it may have been taken.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    otel = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_METRIC_EXPORT_INTERVAL": "100"}
    otel |= {"OTEL_EXPORTER_OTLP_TIMEOUT": str(patience), "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
    home = {"SPARK_APP_HOME": str(folder.parent)}
    log = folder.with_name(f"stderr-{random.randrange(10**9)}")
    state = str(folder.with_name("state"))
    command = [
        sys.executable,
        "-m",
        "spark_app",
        "bridge",
        str(folder),
        "--state",
        state,
        "--metrics-port",
        "0",
        *options,
    ]
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(command, env=clean | otel | home, stdout=errors, stderr=errors, text=True)
        try:
            yield Running(process, log)
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder of logs."""
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


@pytest.fixture
def collector() -> Iterator[Receiver]:
    """A receiver as it should be."""
    with receiver() as found:
        yield found


def undisturbed(folder: Path) -> tuple[set[bytes], dict[Series, int]]:
    """The ids of all spans, and the totals, of one reading of each log."""
    spans, totals = list[bytes](), []
    for log in logs_in(folder).values():
        followed = LogProcessor(
            log,
            on_span=lambda _, span: spans.append(span.ids.span_id.to_bytes(8)),
            is_crowded=lambda: False,
            thresholds=OPTIONS.thresholds,
            was_counted=False,
        )
        while followed.is_behind:
            followed.read(60)
        followed.end()
        totals.append(followed.aggregator.aggregate())
    found: dict[Series, int] = {}
    (numbers,) = merged(totals).applications.values()
    for name, group in numbers.groups.items():
        labels = (("spark.stage.group", name),)
        found |= {(metric, labels): sum(histogram.counts) for metric, histogram in group.histograms.items()}
        found |= {(metric, labels): count for metric, count in group.counts.items()}
    assert len(spans) == len(set(spans))
    return set(spans), found


def points(metric: Metric) -> Iterator[tuple[int, Series, int]]:
    """When and what each series of a metric has counted."""
    for point in metric.histogram.data_points:
        yield point.time_unix_nano, (metric.name, tuple(sorted(attributes(point).items()))), point.count
    for number in metric.sum.data_points:
        is_int = number.WhichOneof("value") == "as_int"
        value = number.as_int if is_int else round(number.as_double * PER_UNIT[metric.name])
        yield number.time_unix_nano, (metric.name, tuple(sorted(attributes(number).items()))), value


def test_a_kill_at_any_moment_changes_neither_the_spans_nor_the_totals(folder: Path, collector: Receiver) -> None:
    """The set of span ids and the totals are those of one undisturbed reading; no series is ever less than before."""
    (folder / "app-1").write_text(text(*application(1)))
    (folder / "app-2.inprogress").write_text(text(*list(application(2))[:-30]))
    lines = list(application(3))
    growing, whole = folder / "app-3.inprogress", threading.Event()

    def write() -> None:
        with growing.open("w", encoding="utf-8") as file:
            for number in range(0, len(lines), 25):
                file.write(text(*lines[number : number + 25]))
                file.flush()
                whole.wait(0.05)
        growing.rename(folder / "app-3")
        whole.set()

    def is_time(enough: int) -> bool:
        return whole.is_set() or len(collector.spans) >= enough

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    for _ in range(4):
        with bridge(folder, collector.http_endpoint) as running:
            running.wait()
            enough = len(collector.spans) + random.randrange(1500)
            poll_until(partial(is_time, enough), lambda: running.stderr)
            running.process.send_signal(signal.SIGKILL)
    writer.join()
    with bridge(folder, collector.http_endpoint, "--dead-after", "8") as running:
        running.wait()
        poll_until(lambda: running.figure("logs_done") == 3, lambda: running.stderr)
        assert running.ends() == 0
    spans, totals = undisturbed(folder)
    assert {span.span_id for span in collector.spans} == spans
    latest: dict[Series, int] = {}
    # By their time: of a bridge that was killed, a request may arrive after the first one of the next.
    for _, series, count in sorted(point for metric in collector.metrics for point in points(metric)):
        assert count >= latest.get(series, 0), series
        latest[series] = count
    assert totals.items() <= latest.items()


def test_a_collector_that_comes_late_misses_nothing(folder: Path) -> None:
    """Reading goes on meanwhile; what could not be sent is sent, and a bridge that is asked to end does so in order."""
    with receiver("refusing") as late:
        write(folder / "app-1", program(TASKS))
        with bridge(folder, late.grpc_endpoint, protocol="grpc", patience=3) as running:
            running.wait()
            poll_until(lambda: running.figure("events_total") == len(program(TASKS)), lambda: running.stderr)
            poll_until(lambda: running.figure('export_failures_total{signal="traces"}') > 0, lambda: running.stderr)
            late.mode = "normal"
            poll_until(lambda: running.figure("logs_done") == 1, lambda: running.stderr)
            assert running.figure("spans_dropped_total") == 0
            assert running.ends() == 0
            assert "the collector accepts spans again" in running.stderr
        assert {span.span_id for span in late.spans} == undisturbed(folder)[0]


def test_an_end_does_not_wait_for_a_collector_that_hangs(folder: Path) -> None:
    """Exit code 0; what was not taken is for the next bridge, and it is the same."""
    write(folder / "app-1", program(TASKS))
    with receiver("hanging") as hanging, bridge(folder, hanging.http_endpoint, patience=1) as running:
        running.wait()
        poll_until(lambda: running.figure("spans_waiting") > 0, lambda: running.stderr)
        assert running.ends() == 0
    with receiver() as normal, bridge(folder, normal.http_endpoint) as running:
        running.wait()
        poll_until(lambda: running.figure("logs_done") == 1, lambda: running.stderr)
        assert running.ends() == 0
        assert {span.span_id for span in normal.spans} == undisturbed(folder)[0]


KILLED: Final = """
from spark_app.runs import liveness, run_record
with liveness.hold_liveness_lock(identity.folder, note=print), telemetry.run(identity) as run:
    with run.step("read", kind="read") as step:
        print(step.traceparent)
    with run.step("publish", kind="publish") as step:
        print(step.traceparent, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_run(runs: Path) -> list[str]:
    """Leaves the folder of a run whose process was killed; gives the places of its steps."""
    (runs / "killed").mkdir(parents=True)
    died = process(KILLED, runs / "killed")
    assert died.returncode == -signal.SIGKILL
    return died.stdout.split()


def test_a_killed_run_is_told_without_a_next_one(folder: Path) -> None:
    """Once a collector takes it: marked killed, counted, with all that Spark did for it below it; no living run is."""
    runs = folder.with_name("runs")
    places, living = killed_run(runs), runs / "living"
    living.mkdir()
    jobs = [job(number, [number], traceparent=place) for number, place in enumerate(places)]
    write(folder / "app-1", [started(), *jobs, *(job_ended(number) for number, _ in enumerate(places)), ended()])
    with (
        liveness.hold_liveness_lock(living, note=pytest.fail),
        receiver("refusing") as late,
        bridge(folder, late.http_endpoint, patience=3) as running,
    ):
        running.wait()
        poll_until(lambda: "cannot complete the record of killed: " in running.stderr, lambda: running.stderr)
        late.mode = "normal"
        poll_until(lambda: not (runs / "killed" / "running").exists(), lambda: running.stderr)
        poll_until(lambda: running.figure("logs_done") == 1, lambda: running.stderr)
        assert (living / "running").exists()
    spans = {span.name: span for span in late.spans}
    assert {name for name, span in spans.items() if span.status.message == "killed"} == {
        "run etl.daily_sales",
        "step publish",
    }
    ids = {span.span_id for span in late.spans} | {b""}
    assert [span.name for span in late.spans if span.parent_span_id not in ids] == []
    counted = [point for metric in late.metrics if metric.name == "pipeline.runs" for point in metric.sum.data_points]
    assert [(attributes(point)["pipeline.run.outcome"], point.as_int) for point in counted] == [
        ("killed", 0),
        ("killed", 1),
    ]


def test_what_a_run_could_not_send_is_sent_by_the_bridge(folder: Path) -> None:
    """Once, and said."""
    runs = folder.with_name("runs")
    runs.mkdir()
    leave_metrics(runs)
    with receiver() as collector, bridge(folder, collector.http_endpoint) as running:
        running.wait()
        poll_until(lambda: not (runs / "run-1" / DELIVERY).exists(), lambda: running.stderr)
        poll_until(lambda: "run-1: sent 0 spans, 2 collections of metrics" in running.stderr, lambda: running.stderr)
    read = [metric for metric in collector.metrics if metric.name == "pipeline.rows.read"]
    assert [point.as_int for metric in read for point in metric.sum.data_points] == [0, 0, 5]
