"""How long a report of a large event log takes, and in how much memory.

BENCH_GIGABYTES (18) makes it shorter for a try.
"""

import os
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

import zstandard

from tests.bench import eventlogs
from tests.bench.measure import run

GIGABYTES: Final = float(os.environ.get("BENCH_GIGABYTES", "18"))
PER_STAGE: Final = 1_000
GIGABYTE: Final = 1_000_000_000


def large_log(folder: Path) -> list[str]:
    """Wall time, CPU time and memory of one report of one log, packed with zstd as Spark does by default."""
    log = folder / "large" / "app-1.zstd"
    log.parent.mkdir()
    written, tasks = write_packed(log, GIGABYTES * GIGABYTE)
    began, load = time.monotonic(), os.getloadavg()[0]
    command = [sys.executable, "-m", "spark_app", "report", str(log), "--output", str(folder / "large.html")]
    measured = run(command, {"SPARK_APP_HOME": str(folder / "home")})
    packed, minutes = log.stat().st_size, (time.monotonic() - began) / 60
    log.unlink()
    memory, rate = measured.peak_bytes / 2**20, 2 * tasks / measured.cpu
    return [
        "| wall s | CPU s | memory MiB | events per s of CPU |",
        "|---|---|---|---|",
        f"| {measured.wall:,.0f} | {measured.cpu:,.0f} | {memory:,.0f} | {rate:,.0f} |",
        "",
        f"`spark-app report` on a log of {written / GIGABYTE:.1f} GB ({packed / GIGABYTE:.2f} GB on disk) with",
        f"{tasks:,} tasks in stages of {PER_STAGE:,}; goal: 180 s on an idle machine. The load of the machine was",
        f"{load:.0f} when it began and {os.getloadavg()[0]:.0f} after {minutes:.1f} minutes.",
    ]


def write_packed(log: Path, size: float) -> tuple[int, int]:
    """Writes a finished log of about so many bytes, each query in a frame; the bytes before packing, and the tasks."""
    parts, packed, written, tasks = eventlogs.recorded(log.parent, log.stem), zstandard.ZstdCompressor(level=1), 0, 0
    with log.open("wb") as file:
        for lines in _frames(parts):
            text = b"".join(line + b"\n" for line in lines)
            file.write(packed.compress(text))
            written += len(text)
            if written >= size:
                break
            tasks += PER_STAGE
        file.write(packed.compress(parts.tail + b"\n"))
    return written, tasks


def _frames(parts: eventlogs.Recorded) -> Iterator[list[bytes]]:
    yield list(parts.head)
    for number in count():
        yield list(eventlogs.query(parts, number, PER_STAGE))
