"""How fast lines of an event log become events, beside `json.loads` of the same lines in the same process.

All take turns; what is compared is CPU time of one core. BENCH_EVENTS (60000) makes it shorter for a try.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Final

import zstandard

from app.eventlog import events
from tests.bench.measure import ROUNDS, ratio, spread
from tests.eventlogs import golden, walking

EVENTS: Final = int(os.environ.get("BENCH_EVENTS", "60000"))
VERSION: Final = "4.2.0"
_TASK: Final = b'{"Event":"SparkListenerTask'
_FLUSH: Final = 200
"""Lines that are in one zstd frame: Spark ends a frame with each flush."""


def decoding(scratch: Path) -> list[str]:
    """Events per second, on a log that is made in a folder: all of a recorded one, and its tasks again and again."""
    plain, packed = log(scratch)
    turns = [(per_second(decoded, plain), per_second(decoded, packed), loaded_per_second(plain)) for _ in range(ROUNDS)]
    ours, zstd, theirs = ([turn[place] for turn in turns] for place in range(3))
    return [
        "| what | events/s of one core | goal |",
        "|---|---|---|",
        f"| a plain log, decoded | {spread(ours)} | >= 200,000 |",
        f"| a zstd log, decoded | {spread(zstd)} | >= 100,000 |",
        f"| the plain log, `json.loads` | {spread(theirs)} | |",
        f"| plain, decoded : `json.loads` | {ratio(ours, theirs)} | |",
        "",
        f"{EVENTS:,} lines of a recorded log of Spark {VERSION}, {plain.stat().st_size / EVENTS:,.0f} bytes on average",
        f"each, from file to events; {ROUNDS} rounds in turn, in CPU time.",
    ]


def log(folder: Path) -> tuple[Path, Path]:
    """A plain log with some events, and the same as Spark would pack it."""
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
    """Each line of a plain log as whatever `json` makes of it."""
    with path.open("rb") as file:
        yield from map(json.loads, file)


def loaded_per_second(plain: Path) -> float:
    """What `json.loads` does on this machine now."""
    return per_second(loaded, plain)


def per_second(work: Callable[[Path], Iterator[object]], path: Path) -> float:
    """Events per second of CPU time.

    Raises:
        RuntimeError: Not every line became an event.
    """
    began = time.process_time()
    done = sum(1 for _ in work(path))
    spent = time.process_time() - began
    if done != EVENTS:
        raise RuntimeError(f"{path} gave {done} events, not {EVENTS}")
    return EVENTS / spent
