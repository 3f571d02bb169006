"""`make bench-stack`: how soon the stack is ready, first rows are written and panels are filled, and its memory.

It stops the stack and starts it several times; its data stays.
"""

import os
import re
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from tests.bench import page
from tests.e2e import backends
from tests.e2e.signals import SIGNALS, Signals
from tests.e2e.stack import Stack, docker, etl, run_in
from tests.polling import poll_until

COMMAND: Final = "make bench-stack"
STARTS: Final = 3
BARE: Final = ("--env", "XDG_CACHE_HOME=/dev/shm/no-archive", "--env", "SPARK_APP_CLUSTER=/dev/shm/no-archive.conf")
BARE_CLUSTER: Final = "sed 's/-XX:SharedArchiveFile=[^ ]*//' /app/config/spark/cluster.conf >/dev/shm/no-archive.conf"
UNITS: Final = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "B": 1}
SAMPLE_SECONDS: Final = 1.0


def ready() -> list[str]:
    """Seconds from the start script to all services being healthy."""
    load, stack = os.getloadavg()[2], Stack()  # of the last 15 minutes
    stack.up()
    rounds = []
    for _ in range(STARTS):
        stack.down()
        stack.up()
        rounds.append(stack.seconds)
    seconds = f"median {statistics.median(rounds):.0f} s of {STARTS} (from {min(rounds):.0f} to {max(rounds):.0f})"
    return [
        f"From `scripts/start-full-stack.sh` to every service being healthy: {seconds}, goal 60 s.",
        f"The load of the machine was {load:.1f} before; with other programs on both cores it takes twice as long.",
        f"Left out, since their images cannot be pulled here: {', '.join(stack.left_out) or 'nothing'}.",
    ]


def first_rows() -> list[str]:
    """Seconds from run_etl.sh to its first written rows, with and without the archive of classes."""
    run_in("spark-master", "sh", "-c", BARE_CLUSTER)
    seconds: dict[str, list[float]] = {"with": [], "without": []}
    for _ in range(STARTS):
        seconds["with"].append(to_first_rows())
        seconds["without"].append(to_first_rows(*BARE))
    ratios = [a / b for a, b in zip(seconds["with"], seconds["without"], strict=True)]
    lines = ["| class-data archive | first rows s (median) | from | to |", "|---|---|---|---|"]
    for kind, rounds in seconds.items():
        lines.append(f"| {kind} | {statistics.median(rounds):.1f} | {min(rounds):.1f} | {max(rounds):.1f} |")
    return [*lines, "", f"With : without, in turn: median {statistics.median(ratios):.2f}, goal 0.5."]


def to_first_rows(*options: str) -> float:
    """Seconds until the first step that writes rows has ended."""
    start = time.monotonic()
    seconds = 0.0
    command = ["docker", "exec", *options, "spark-master", "run_etl.sh", "2024-01-01"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            if not seconds and " rows " in line:
                seconds = time.monotonic() - start
    assert process.returncode == 0
    assert seconds, "no step reports rows"
    return seconds


def memory() -> list[str]:
    """Memory of all containers, before and while the main job runs."""
    idle = sum(used().values())
    with sampled(used) as samples:
        etl("2024-01-01")
    peak = max(samples, key=lambda sample: sum(sample.values()))
    lines = ["| container | under the main job, MB |", "|---|---|"]
    lines += [f"| {name} | {size / 1e6:,.0f} |" for name, size in sorted(peak.items())]
    most = sum(peak.values()) / 1e9
    return [
        f"All containers: {idle / 1e9:.2f} GB idle, {most:.2f} GB at most under the main job (10,000 rows), goal 8 GB.",
        "",
        *lines,
    ]


def used() -> dict[str, float]:
    """Bytes of memory of each container, without the cache of files."""
    lines = docker("stats", "--no-stream", "--format", "{{.Name}} {{.MemUsage}}").splitlines()
    sizes = {}
    for line in lines:
        name, size = line.split()[:2]
        number, unit = re.fullmatch(r"([\d.]+)(\w+)", size).groups()  # type: ignore[union-attr]
        sizes[name] = float(number) * UNITS[unit]
    return sizes


@contextmanager
def sampled(look: Callable[[], dict[str, float]]) -> Iterator[list[dict[str, float]]]:
    """Samples of a measurement, taken at intervals while the block runs."""
    samples: list[dict[str, float]] = []
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(SAMPLE_SECONDS):
            samples.append(look())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield samples
    finally:
        is_over.set()
        thread.join()


def filled() -> list[str]:
    """Seconds from the end of a job until the backends of all panels have its metrics, spans and log lines."""
    seconds: list[float] = []
    for _ in range(STARTS):
        began = time.time()
        runs = etl("2024-01-01")
        ended = time.monotonic()
        poll_until(lambda: is_filled(runs, began), "all panels are filled", seconds=120)  # noqa: B023
        seconds.append(time.monotonic() - ended)
    summary = f"median {statistics.median(seconds):.1f} s of {STARTS} (from {min(seconds):.1f} to {max(seconds):.1f})"
    return [
        f"From the end of the job to its last counter, span, span metric and log line: {summary}, goal 20 s.",
        "Grafana's own refresh comes on top.",
    ]


def is_filled(runs: list[dict[str, Any]], since: float) -> bool:
    """Whether all telemetry of some runs has arrived."""
    trace_ids = {run["trace_id"] for run in runs}
    return (
        backends.grown(since) == backends.recorded(runs)
        and trace_ids <= backends.exemplars('traces_span_metrics_duration_seconds_bucket{service_name="spark-app"}')
        and all(is_stored(runs, signals) for signals in SIGNALS)
    )


def is_stored(runs: list[dict[str, Any]], signals: Signals) -> bool:
    """Whether Jaeger and Elasticsearch have the spans and log lines of one pipeline's run."""
    (trace_id,) = [run["trace_id"] for run in runs if run["pipeline"] == signals.pipeline]
    spans = backends.JAEGER.spans(trace_id)
    return len(spans) > len(signals.steps) and backends.log_services(trace_id) >= set(signals.log_services)


def main() -> None:
    """Measures everything and writes its parts of the page."""
    page.write("The stack: ready", COMMAND, ready())
    page.write("The stack: first rows", COMMAND, first_rows())
    page.write("The stack: memory", COMMAND, memory())
    page.write("The stack: panels filled", COMMAND, filled())


if __name__ == "__main__":
    main()
