"""How fast lines of an event log become events, beside `json.loads` of the same lines in the same process.

`python -m tests.bench.decoding` prints it. Both sides take turns; what is compared is CPU time of one core.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Final

import zstandard

from app.eventlog import events
from tests.eventlogs import golden, walking

EVENTS: Final = 60_000
ROUNDS: Final = 7
VERSION: Final = "4.2.0"
_TASK: Final = b'{"Event":"SparkListenerTask'
_FLUSH: Final = 200
"""Lines that are in one zstd frame: Spark ends a frame with each flush."""


@dataclass(frozen=True)
class Decoding:
    """Events per second of CPU time of one core; one number per round, in the order of the rounds."""

    plain: tuple[float, ...]
    zstd: tuple[float, ...]
    json: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """How many times faster than `json.loads` a plain log is decoded."""
        return tuple(ours / theirs for ours, theirs in zip(self.plain, self.json, strict=True))


def decoding(folder: Path, *, count: int = EVENTS, rounds: int = ROUNDS) -> Decoding:
    """Measures, on a log that is made in a folder: all of a recorded one, and its tasks again and again."""
    plain, packed = log(folder, count)
    told = [
        (per_second(count, decoded, plain), per_second(count, decoded, packed), per_second(count, loaded, plain))
        for _ in range(rounds)
    ]
    return Decoding(*(tuple(side) for side in zip(*told, strict=True)))


def log(folder: Path, count: int) -> tuple[Path, Path]:
    """A plain log with some events, and the same as Spark would pack it."""
    recorded = list(walking.lines(golden.log(VERSION, "zstd", folder)))
    tasks = [line for line in recorded if line.startswith(_TASK)]
    lines = [*recorded, *islice(cycle(tasks), count)][:count]
    plain, packed = folder / "app-1", folder / "app-1.zstd"
    plain.write_bytes(b"".join(line + b"\n" for line in lines))
    zstd = zstandard.ZstdCompressor(level=1)
    frames = (lines[start : start + _FLUSH] for start in range(0, count, _FLUSH))
    packed.write_bytes(b"".join(zstd.compress(b"".join(line + b"\n" for line in frame)) for frame in frames))
    return plain, packed


def decoded(path: Path) -> Iterator[object]:
    """Each line of a log as an event."""
    return map(events.event, walking.lines(path))


def loaded(path: Path) -> Iterator[object]:
    """Each line of a plain log as whatever `json` makes of it."""
    with path.open("rb") as file:
        yield from map(json.loads, file)


def per_second(count: int, work: Callable[[Path], Iterator[object]], path: Path) -> float:
    """Events per second of CPU time."""
    began = time.process_time()
    done = sum(1 for _ in work(path))
    spent = time.process_time() - began
    if done != count:
        raise RuntimeError(f"{path} gave {done} events, not {count}")
    return count / spent


def line(name: str, figures: tuple[float, ...]) -> str:
    """The median of some figures, with the least and the most."""
    return f"{name:24} {statistics.median(figures):12,.1f}  ({min(figures):,.1f} to {max(figures):,.1f})\n"


def main() -> None:
    """Prints what is measured."""
    with tempfile.TemporaryDirectory() as folder:
        found = decoding(Path(folder))
    sys.stdout.write(line("plain, events/s", found.plain) + line("zstd, events/s", found.zstd))
    sys.stdout.write(line("json.loads, events/s", found.json) + line("plain : json.loads", found.ratios))


if __name__ == "__main__":
    main()
