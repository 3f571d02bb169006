"""The bridge as a process of its own, killed whenever, before a real receiver that is not always there."""

import os
import random
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
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

    def wait_as_standby(self) -> None:
        """Waits until it waits for another one."""
        poll_until(lambda: "takes over" in self.stderr, lambda: self.stderr)
        assert "following" not in self.stderr

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
    folder: Path,
    endpoint: str,
    *options: str,
    protocol: Protocol = "http/protobuf",
    patience: int = 60,
    variables: Mapping[str, str] = MappingProxyType({}),
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
        process = subprocess.Popen(
            command, env=clean | otel | home | dict(variables), stdout=errors, stderr=errors, text=True
        )
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


class Growing:
    """A log that is written meanwhile."""

    def __init__(self, log: Path, lines: list[Line]) -> None:
        """Starts to write."""
        self._log, self._lines, self.is_whole = log, lines, threading.Event()
        threading.Thread(target=self._write, daemon=True).start()

    def _write(self) -> None:
        growing = self._log.with_name(f"{self._log.name}.inprogress")
        with growing.open("w", encoding="utf-8") as file:
            for number in range(0, len(self._lines), 25):
                file.write(text(*self._lines[number : number + 25]))
                file.flush()
                self.is_whole.wait(0.05)
        growing.rename(self._log)
        self.is_whole.set()


def written(folder: Path) -> Growing:
    """A log that has ended, one that will not go on, and one that grows."""
    (folder / "app-1").write_text(text(*application(1)))
    (folder / "app-2.inprogress").write_text(text(*list(application(2))[:-30]))
    return Growing(folder / "app-3", list(application(3)))


def wait_for_more_spans(growing: Growing, collector: Receiver, running: Running) -> None:
    """Waits until some more spans have arrived, or the log is whole."""
    enough = len(collector.spans) + random.randrange(1500)
    poll_until(lambda: growing.is_whole.is_set() or len(collector.spans) >= enough, lambda: running.stderr)


def assert_undisturbed(folder: Path, collector: Receiver) -> None:
    """The set of span ids and the totals are those of one undisturbed reading; no series is ever less than before."""
    spans, totals = undisturbed(folder)
    assert {span.span_id for span in collector.spans} == spans
    latest: dict[Series, int] = {}
    # By their time: of a bridge that was killed, a request may arrive after the first one of the next.
    for _, series, count in sorted(point for metric in collector.metrics for point in points(metric)):
        assert count >= latest.get(series, 0), series
        latest[series] = count
    assert totals.items() <= latest.items()


def test_a_kill_at_any_moment_changes_neither_the_spans_nor_the_totals(folder: Path, collector: Receiver) -> None:
    """The next bridge goes on where the last one was."""
    growing = written(folder)
    for _ in range(4):
        with bridge(folder, collector.http_endpoint) as running:
            running.wait()
            wait_for_more_spans(growing, collector, running)
            running.process.send_signal(signal.SIGKILL)
    growing.is_whole.wait()
    with bridge(folder, collector.http_endpoint, "--dead-after", "8") as running:
        running.wait()
        poll_until(lambda: running.figure("logs_done") == 3, lambda: running.stderr)
        assert running.ends() == 0
    assert_undisturbed(folder, collector)


def test_a_bridge_that_waits_takes_over_when_the_other_is_killed(folder: Path, collector: Receiver) -> None:
    """One of two works at a time, at whichever moment it is killed; one that waits ends at once."""
    options, growing = ("--standby", "--dead-after", "8"), written(folder)
    with ExitStack() as bridges:
        working = bridges.enter_context(bridge(folder, collector.http_endpoint, *options))
        working.wait()
        for _ in range(3):
            waiting = bridges.enter_context(bridge(folder, collector.http_endpoint, *options))
            waiting.wait_as_standby()
            wait_for_more_spans(growing, collector, working)
            working.process.send_signal(signal.SIGKILL)
            waiting.wait()
            working = waiting
        growing.is_whole.wait()
        poll_until(lambda: working.figure("logs_done") == 3, lambda: working.stderr)
        last = bridges.enter_context(bridge(folder, collector.http_endpoint, *options))
        last.wait_as_standby()
        assert (last.ends(), working.ends()) == (0, 0)
        assert "following" not in last.stderr
    assert_undisturbed(folder, collector)


def test_a_folder_has_one_bridge(folder: Path, collector: Receiver, tmp_path: Path) -> None:
    """A second one with a checkpoint of its own would export everything twice: it says so and ends, standby or not."""
    with bridge(folder, collector.http_endpoint) as first:
        first.wait()
        for options in ([], ["--standby"]):
            with bridge(folder, collector.http_endpoint, "--state", str(tmp_path / "other"), *options) as second:
                assert second.process.wait(60) == 2
                assert f"another bridge follows {folder} with another checkpoint" in second.stderr
        assert first.ends() == 0
    with bridge(folder, collector.http_endpoint, "--state", str(tmp_path / "other")) as next_:
        next_.wait()
        assert next_.ends() == 0


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
