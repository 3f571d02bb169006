"""`make bench-stack`: how soon the stack is ready, first rows are there and panels are filled, and its memory.

Images must be here already. The stack is ended and started again; its data stays.
"""

import re
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from tests.bench import page
from tests.e2e import asked
from tests.e2e.signals import SIGNALS, Signals
from tests.e2e.stack import Stack, compose, docker, etl, run_in
from tests.polling import poll_until

COMMAND: Final = "make bench-stack"
STARTS: Final = 3
BARE: Final = ("--env", "XDG_CACHE_HOME=/dev/shm/no-archive", "--env", "SPARK_APP_CLUSTER=/dev/shm/no-archive.conf")
BARE_CLUSTER: Final = "sed 's/-XX:SharedArchiveFile=[^ ]*//' /app/config/spark/cluster.conf >/dev/shm/no-archive.conf"
UNITS: Final = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "B": 1}
SAMPLE_SECONDS: Final = 1.0
NOT_NEEDED: Final = {"kibana", "kibana-setup", "otel-collector-ready"}
"""Kibana is nobody's before a run; the other only tells Compose's `--wait` that the collector is ready."""


def ready() -> list[str]:
    """Seconds from the start script to each service being ready."""
    stack = Stack()
    stack.find_left_out()
    without = [word for name in stack.left_out if not name.endswith("-setup") for word in ("--without", name)]
    rounds = []
    for _ in range(STARTS):
        compose("down")
        said = subprocess.run(
            ["scripts/start-full-stack.sh", *without], capture_output=True, text=True, check=True
        ).stdout
        rounds.append({name: int(seconds) for name, seconds in re.findall(r"^(\S+) .*?(\d+) s\b", said, re.MULTILINE)})
    needed = [max(seconds for name, seconds in one.items() if name not in NOT_NEEDED) for one in rounds]
    table = [f"| {name} | {statistics.median(one[name] for one in rounds):.0f} |" for name in sorted(rounds[0])]
    found = f"median {statistics.median(needed):.0f} s of {STARTS} (from {min(needed)} to {max(needed)})"
    return [
        f"From `scripts/start-full-stack.sh` to everything a job needs: {found}, goal 60 s.",
        f"Left out, as their images cannot be had here: {', '.join(stack.left_out) or 'nothing'}.",
        "",
        "| service | ready after s (median) |",
        "|---|---|",
        *table,
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
    for kind, found in seconds.items():
        lines.append(f"| {kind} | {statistics.median(found):.1f} | {min(found):.1f} | {max(found):.1f} |")
    return [*lines, "", f"With : without, in turn: median {statistics.median(ratios):.2f}, goal 0.5."]


def to_first_rows(*options: str) -> float:
    """Seconds until the first step that writes rows has ended."""
    began = time.monotonic()
    found = 0.0
    command = ["docker", "exec", *options, "spark-master", "run_etl.sh", "2024-01-01"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            if not found and " rows " in line:
                found = time.monotonic() - began
    assert process.returncode == 0
    assert found, "no step has told of rows"
    return found


def memory() -> list[str]:
    """What all containers use, before and while the main job runs."""
    idle = sum(used().values())
    with sampled(used) as samples:
        etl("2024-01-01")
    peak = max(samples, key=lambda one: sum(one.values()))
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
    found = {}
    for line in lines:
        name, size = line.split()[:2]
        number, unit = re.fullmatch(r"([\d.]+)(\w+)", size).groups()  # type: ignore[union-attr]
        found[name] = float(number) * UNITS[unit]
    return found


@contextmanager
def sampled(look: Callable[[], dict[str, float]]) -> Iterator[list[dict[str, float]]]:
    """What something was, again and again, while something else went on."""
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
    """Seconds from the end of a job to all its numbers, spans and lines being where panels ask."""
    found: list[float] = []
    for _ in range(STARTS):
        began = time.time()
        runs = etl("2024-01-01")
        ended = time.monotonic()
        poll_until(lambda: is_filled(runs, began), "all panels are filled", seconds=120)  # noqa: B023
        found.append(time.monotonic() - ended)
    told = f"median {statistics.median(found):.1f} s of {STARTS} (from {min(found):.1f} to {max(found):.1f})"
    return [
        f"From the end of the job to its last counter, span, span metric and log line: {told}, goal 20 s.",
        "Grafana's own refresh comes on top.",
    ]


def is_filled(runs: list[dict[str, Any]], since: float) -> bool:
    """Whether everything of some runs has arrived."""
    ours = {run["trace_id"] for run in runs}
    return (
        asked.grown(since) == asked.recorded(runs)
        and ours <= asked.exemplars('traces_span_metrics_duration_seconds_bucket{service_name="spark-app"}')
        and all(is_stored(runs, signals) for signals in SIGNALS)
    )


def is_stored(runs: list[dict[str, Any]], signals: Signals) -> bool:
    """Whether the spans and log lines of a run of one pipeline are where they are asked for."""
    (trace_id,) = [run["trace_id"] for run in runs if run["pipeline"] == signals.pipeline]
    spans = asked.JAEGER.spans(trace_id)
    return len(spans) > len(signals.steps) and asked.log_services(trace_id) >= set(signals.log_services)


def main() -> None:
    """Measures everything and writes its parts of the page."""
    page.write("The stack: ready", COMMAND, ready())
    page.write("The stack: first rows", COMMAND, first_rows())
    page.write("The stack: memory", COMMAND, memory())
    page.write("The stack: panels filled", COMMAND, filled())


if __name__ == "__main__":
    main()
