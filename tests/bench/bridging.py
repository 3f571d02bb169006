"""How fast the bridge exports event logs, in how much memory, and with what delay.

From files to a real OTLP receiver; the bridge is a process of its own. BENCH_TASKS (1000000) makes it shorter for a
try.
"""

import os
import random
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from spark_app.eventlog import spans
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.parse import events
from tests.bench import decoding, eventlogs
from tests.bench.measure import ROUNDS, cpu_seconds, pinned, ratio, spread, tree_bytes
from tests.polling import poll_until
from tests.receivers import Receiver, receiver

TASKS: Final = int(os.environ.get("BENCH_TASKS", "1000000"))
PER_STAGE: Final = 1_000
SMALLER: Final = 5
"""The logs of the rounds are smaller than the large application by this factor."""
LOOK_SECONDS: Final = 0.25
JOBS: Final = 30
SMALL_JOB: Final = 20
LONGEST_SECONDS: Final = 600.0


class Bridge:
    """A running bridge; its CPU time is that of the whole process so far."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        """Waits until it follows the folder."""
        self.pid = process.pid
        self._lines: list[str] = []
        self._process = process
        threading.Thread(target=self._listen, daemon=True).start()
        poll_until(lambda: self._port() is not None or process.poll() is not None, lambda: self._lines)

    def cpu(self) -> float:
        """CPU seconds."""
        return cpu_seconds(self.pid)

    def figures(self) -> dict[str, float]:
        """Its own metrics by name, without the common prefix."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port()}/metrics") as answer:
            lines: list[str] = answer.read().decode().splitlines()
        metrics = (line.removeprefix("spark_bridge_") for line in lines if line.startswith("spark_bridge_"))
        return {name: float(value) for name, value in (metric.rsplit(" ", 1) for metric in metrics)}

    def is_done(self, logs: int) -> bool:
        """Whether so many logs are read and all their spans are sent."""
        figures = self.figures()
        return figures["logs_done"] >= logs and not figures["spans_waiting"]

    def _listen(self) -> None:
        for line in self._process.stderr or ():
            self._lines.append(line)

    def _port(self) -> str | None:
        match = re.search(r"on 127\.0\.0\.1:(\d+)", "".join(self._lines))
        return match[1] if match else None


@contextmanager
def following(folder: Path, collector: Receiver, *, core: int | None = None) -> Iterator[Bridge]:
    """A bridge that follows a folder; it does not outlive the block."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    otel = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.grpc_endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    state = ["--state", str(folder.with_name(f"{folder.name}-state")), "--metrics-port", "0"]
    command = [*pinned(core), sys.executable, "-m", "spark_app", "bridge", str(folder), *state]
    with subprocess.Popen(command, env=clean | otel, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield Bridge(process)
        finally:
            process.terminate()
            process.wait()


@dataclass(frozen=True)
class Sample:
    """The state of a bridge at a moment, in seconds since it got a log."""

    at: float
    cpu: float
    events: float
    bytes: int


@dataclass(frozen=True)
class Bridged:
    """What it took to read one log.

    Attributes:
        samples: From before the log exists until all spans are sent.
        spans: How many the receiver has.
        tasks: Of the log.
    """

    samples: tuple[Sample, ...]
    spans: int
    tasks: int

    @property
    def events_per_second(self) -> float:
        """Per second of wall time, from the first event read to the last span sent."""
        first, last = next(sample for sample in self.samples if sample.events), self.samples[-1]
        return (last.events - first.events) / (last.at - first.at)

    @property
    def events_per_cpu_second(self) -> float:
        """Per CPU second of the bridge, including the threads that send."""
        return self.samples[-1].events / self.cpu

    @property
    def cpu(self) -> float:
        """CPU seconds, without those of its start."""
        return self.samples[-1].cpu - self.samples[0].cpu

    def bytes_after(self, share: float) -> int:
        """The most memory until a share of the events was read."""
        limit = share * self.samples[-1].events
        return max(sample.bytes for sample in self.samples if sample.events <= limit)


def bridge(scratch: Path) -> list[str]:
    """Rate, memory and delay of the bridge."""
    many = bridged(scratch, "large", TASKS)
    small, plain = TASKS // SMALLER, decoding.log(scratch)[0]
    baselines, runs = [], []
    for turn in range(ROUNDS):
        baselines.append(decoding.loaded_per_second(plain))
        runs.append(bridged(scratch, f"round-{turn}", small))
    rates = [each.events_per_cpu_second for each in runs]
    return [
        "| application | events/s | events/s of its CPU time | goal | CPU s per 1,000 tasks |",
        "|---|---|---|---|---|",
        _rates(small, runs),
        _rates(TASKS, [many]),
        "",
        f"From a plain log of Spark {eventlogs.VERSION} in a followed folder to the last of {runs[-1].spans:,} and",
        f"{many.spans:,} spans at a receiver over gRPC on this machine. In CPU time, against `json.loads` of such",
        f"lines in the same round: {ratio(rates, baselines)}.",
        "",
        "| memory of the bridge, at most, until so much is read | MB |",
        "|---|---|",
        *(f"| {share:.0%} of {TASKS:,} tasks | {many.bytes_after(share) / 1e6:,.0f} |" for share in (0, 0.1, 0.5, 1)),
        "",
        "Goal: below 200 MB, and flat.",
        "",
        *_delays(scratch),
    ]


def bridged(scratch: Path, name: str, tasks: int) -> Bridged:
    """Lets a bridge read one log."""
    folder, log = scratch / name, scratch / f"{name}-log"
    folder.mkdir()
    eventlogs.write_log(log, tasks, per_stage=PER_STAGE)
    with receiver() as collector, following(folder, collector) as bridge:
        samples = [Sample(0.0, bridge.cpu(), 0, tree_bytes(bridge.pid))]
        began = time.monotonic()
        log.rename(folder / "app-1")
        samples += _samples(bridge, began)
    (folder / "app-1").unlink()
    print(f"  {tasks:,} tasks: {samples[-1]}", flush=True)
    return Bridged(tuple(samples), len(collector.spans), tasks)


def _samples(bridge: Bridge, began: float) -> Iterator[Sample]:
    """The state of a bridge at intervals, until it is done."""
    pause, is_done = threading.Event(), False
    while not is_done:
        pause.wait(LOOK_SECONDS)
        figures = bridge.figures()
        is_done = bool(figures["logs_done"]) and not figures["spans_waiting"]
        yield Sample(time.monotonic() - began, bridge.cpu(), figures["events_total"], tree_bytes(bridge.pid))


def _rates(tasks: int, runs: list[Bridged]) -> str:
    per_task = [1000 * run.cpu / run.tasks for run in runs]
    walls, cpus = [run.events_per_second for run in runs], [run.events_per_cpu_second for run in runs]
    return f"| {tasks:,} tasks | {spread(walls)} | {spread(cpus)} | >= 100,000 | {spread(per_task, '.3f')} |"


def _delays(scratch: Path) -> list[str]:
    """How soon the spans of a job arrive."""
    lines = ["| seconds from a job's last event on disk to its last span at the receiver | goal |", "|---|---|"]
    for name, backlog in (("nothing else to read", 0), (f"while an application of {TASKS:,} tasks is read", TASKS)):
        seconds = delays(scratch / f"backlog-{backlog}", backlog=backlog)
        lines.append(f"| {name}: {spread(seconds, '.2f')}, {len(seconds)} jobs | <= 2 |")
    return lines


def delays(scratch: Path, *, backlog: int) -> list[float]:
    """Seconds for each of some jobs of a running application, beside one with so many tasks that is read meanwhile."""
    folder, seconds, app = scratch / "logs", [], Application("app-1")
    folder.mkdir(parents=True)
    if backlog:
        eventlogs.write_log(folder / "app-1", backlog, per_stage=PER_STAGE)
    parts = eventlogs.recorded(scratch, "app-2")
    with (folder / "app-2.inprogress").open("wb") as file, receiver() as collector:
        ids_of(app, write(file, parts.head))
        with following(folder, collector) as bridge:
            for number in range(JOBS):
                threading.Event().wait(random.uniform(0, 0.5))
                if backlog and bridge.is_done(1):
                    break
                ids = ids_of(app, write(file, list(eventlogs.query(parts, number, SMALL_JOB))))
                written = time.monotonic()
                poll_until(lambda: ids <= {span.span_id for span in collector.spans}, "its spans")  # noqa: B023
                seconds.append(time.monotonic() - written)
    return seconds


def write(file: BinaryIO, lines: Sequence[bytes]) -> Sequence[bytes]:
    """Appends lines to a file and flushes them."""
    file.writelines(line + b"\n" for line in lines)
    file.flush()
    return lines


def ids_of(app: Application, lines: Sequence[bytes]) -> set[bytes]:
    """The ids of the spans that further lines of an application end."""
    ended_parts = (app.apply(event) for line in lines if (event := events.event(line)) is not None)
    ended_spans = [spans.of_ended(app, ended) for ended in ended_parts if ended is not None]
    return {span.ids.span_id.to_bytes(8) for each in ended_spans for span in each}
