"""What samples of stacks cost a job: `spark-app observe --profile`, at two rates, beside `observe` without it.

BENCH_SAMPLED (of each kind, 64 tasks) makes it shorter for a try, BENCH_SAMPLED_KINDS and BENCH_SAMPLED_HERTZ choose.
"""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from spark_app.observe.event_log_injection import EventLogInjection
from spark_app.observe.stack_capture import StackCapture
from tests.bench.measure import pinned, ratio, run, side_by_side, spread

TASKS: Final = int(os.environ.get("BENCH_SAMPLED", "64"))
KINDS: Final = os.environ.get("BENCH_SAMPLED_KINDS", "ordinary python").split()
HERTZ: Final = [float(each) for each in os.environ.get("BENCH_SAMPLED_HERTZ", "19 99").split()]
GOAL: Final = "<= 1.01"


@dataclass(frozen=True)
class SampledCost:
    """CPU and wall seconds of the work of a job, CPU seconds of the threads that sample, memory, and files in bytes."""

    wall: float
    cpu: float
    sampling: float
    processes: int
    peak_bytes: int
    files: int


def sampling(scratch: Path) -> list[str]:
    """The ratios of each kind of job at each rate."""
    rows, memory = [], []
    for kind in KINDS:
        for hertz in HERTZ:
            name = f"{kind}, {hertz:g} Hz"
            on, off = side_by_side(name, partial(cost, scratch, kind, hertz), partial(cost, scratch, kind, None))
            cpu = ratio([each.cpu for each in on], [each.cpu for each in off])
            wall = ratio([each.wall for each in on], [each.wall for each in off])
            own = spread([100 * each.sampling / each.cpu for each in on], ".2f")
            rows.append(f"| {kind} | {hertz:g} | {cpu} | {GOAL} | {wall} | {own} |")
            more = [(a.peak_bytes - b.peak_bytes) / 2**20 / a.processes for a, b in zip(on, off, strict=True)]
            files = spread([each.files / 2**20 for each in on], ".2f")
            memory.append(f"| {kind} | {hertz:g} | {spread(more, '.0f')} | {files} |")
    return [
        "| job | Hz | CPU, sampled : not | goal | time | threads that sample, % of its CPU |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
        "| job | Hz | more memory, MiB for each process | files, MiB |",
        "|---|---|---|---|",
        *memory,
        "",
        "Both sides at the same time, each on a core of its own, cores swapped each round; the work of a warm session.",
    ]


def cost(scratch: Path, kind: str, hertz: float | None, *, core: int) -> SampledCost:
    """Runs a job on one core, with samples at a rate, or without."""
    with TemporaryDirectory(dir=scratch) as folder:
        logs = Path(folder, "logs")
        logs.mkdir()
        stacks = Path(folder, "stacks")
        capture = StackCapture(stacks, hertz) if hertz else None
        environment: Mapping[str, str] = EventLogInjection(logs, Path(folder), profile=capture).variables(os.environ)
        command = [*pinned(core), sys.executable, "-m", "tests.bench.sampled_job", kind, str(TASKS)]
        measured = run(command, environment)
        files = sum(file.stat().st_size for file in stacks.rglob("*") if file.is_file())
    print(f"  {kind} {hertz}: {measured.last_line}", flush=True)
    return SampledCost(**json.loads(measured.last_line), peak_bytes=measured.peak_bytes, files=files)
