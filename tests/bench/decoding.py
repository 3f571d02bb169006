"""How fast lines of an event log become events, beside `json.loads` of the same lines in the same process.

All run in turn and are compared by CPU time of one core. BENCH_EVENTS (60000) makes it shorter for a try.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Final

import zstandard

from spark_app.eventlog.parse import events
from tests.bench.measure import ROUNDS, ratio, spread
from tests.eventlogs import golden, walking

EVENTS: Final = int(os.environ.get("BENCH_EVENTS", "60000"))
VERSION: Final = "4.2.0"
_TASK: Final = b'{"Event":"SparkListenerTask'
_FLUSH: Final = 200
"""Lines in one zstd frame: Spark ends a frame with each flush."""


def decoding(scratch: Path) -> list[str]:
    """Events per second on a log that repeats the tasks of a recorded one."""
    plain, packed = log(scratch)
    turns = [(per_second(decoded, plain), per_second(decoded, packed), loaded_per_second(plain)) for _ in range(ROUNDS)]
    rates, zstd, baselines = ([turn[index] for turn in turns] for index in range(3))
    return [
        "| what | events/s of one core | goal |",
        "|---|---|---|",
        f"| a plain log, decoded | {spread(rates)} | >= 200,000 |",
        f"| a zstd log, decoded | {spread(zstd)} | >= 100,000 |",
        f"| the plain log, `json.loads` | {spread(baselines)} | |",
        f"| plain, decoded : `json.loads` | {ratio(rates, baselines)} | |",
        "",
        f"{EVENTS:,} lines of a recorded log of Spark {VERSION}, {plain.stat().st_size / EVENTS:,.0f} bytes on average",
        f"each, from file to events; {ROUNDS} rounds in turn, in CPU time.",
    ]


def log(folder: Path) -> tuple[Path, Path]:
    """A plain log, and the same log as Spark compresses it."""
    recorded = list(walking.lines(golden.log(VERSION, "zstd", folder)))
    tasks = [line for line in recorded if line.startswith(_TASK)]
    lines = [*recorded, *islice(cycle(tasks), EVENTS)][:EVENTS]
    plain, packed = folder / "app-1", folder / "app-1.zstd"
    plain.write_bytes(b"".join(line + b"\n" for line in lines))
    zstd = zstandard.ZstdCompressor(level=1)
    frames = (lines[start : start + _FLUSH] for start in range(0, EVENTS, _FLUSH))
    packed.write_bytes(b"".join(zstd.compress(b"".join(line + b"\n" for line in frame)) for frame in frames))
    return plain, packed


def decoded(path: Path) -> Iterator[object]:
    """Each line of a log as an event."""
    return map(events.event, walking.lines(path))


def loaded(path: Path) -> Iterator[object]:
    """Each line of a plain log as `json.loads` decodes it."""
    with path.open("rb") as file:
        yield from map(json.loads, file)


def loaded_per_second(plain: Path) -> float:
    """The rate of `json.loads` on this machine now."""
    return per_second(loaded, plain)


def per_second(work: Callable[[Path], Iterator[object]], path: Path) -> float:
    """Events per second of CPU time.

    Raises:
        RuntimeError: Not every line became an event.
    """
    start = time.process_time()
    count = sum(1 for _ in work(path))
    seconds = time.process_time() - start
    if count != EVENTS:
        raise RuntimeError(f"{path} gave {count} events, not {EVENTS}")
    return EVENTS / seconds
