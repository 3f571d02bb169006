"""The event log of a stream that runs for as long as one likes: a recorded micro-batch, again and again.

Ids, numbers and times are those that follow; the files are rolled as Spark's `RollingEventLogFilesWriter` does.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import zstandard

from tests.eventlogs.record_streams import of_version

VERSION: Final = "4.2.0"
APPLICATION: Final = "local-1795349640969"
INTERVAL_MS: Final = 10_000
"""The shipped trigger of most queries."""
MONTH: Final = 30 * 86_400_000 // INTERVAL_MS
"""The micro-batches of a query in a month."""
_STEPS: Final = {"query": 2, "job": 1, "stage": 3, "task": 5, "number": 1000, "batch": 1, "time": INTERVAL_MS}
"""How much each id grows from one micro-batch to the next."""
_BY_KEY: Final = {
    "executionId": "query", "rootExecutionId": "query", "Job ID": "job", "Stage ID": "stage", "Stage IDs": "stage",
    "Task ID": "task", "accumulatorId": "number", "ID": "number", "batchId": "batch",
    "spark.sql.execution.id": "query", "spark.sql.execution.root.id": "query", "streaming.sql.batchId": "batch",
}  # fmt: skip
_MARK: Final = re.compile(rb'"<(\w+) (\d+)>"|{(\w+) (\d+)}')
"""A number, whose quotes go, or a part of a text."""
_FIRST_TIME: Final = 10**12


class Stream:
    """Lines of the log of one streaming query.

    Attributes:
        head: What comes before its first micro-batch.
    """

    def __init__(self) -> None:
        """Reads the recorded log."""
        packed = of_version(VERSION).read_bytes()
        lines = zstandard.ZstdDecompressor().decompressobj().decompress(packed).splitlines()
        ends = [number for number, line in enumerate(lines) if b"QueryProgressEvent" in line]
        start = next(number for number, line in enumerate(lines) if b"SQLExecutionStart" in line)
        self.head = lines[:start]
        batch = b"".join(line + b"\n" for line in lines[ends[0] + 1 : ends[1] + 1])
        self._pieces = list(_pieces(batch))

    def batch(self, number: int) -> bytes:
        """The lines of a micro-batch, with line breaks."""
        return b"".join(piece if isinstance(piece, bytes) else _value(*piece, number=number) for piece in self._pieces)


class Roller:
    """Writes lines into the folder of a log, into a next file when the present one is full."""

    def __init__(self, folder: Path, *, file_bytes: int) -> None:
        """Creates the folder of a log that is not finished."""
        self.log = folder / f"eventlog_v2_{APPLICATION}"
        self.log.mkdir(parents=True)
        (self.log / f"appstatus_{APPLICATION}.inprogress").touch()
        self._file_bytes, self.number = file_bytes, 0
        self._roll()

    def write(self, lines: bytes) -> None:
        """Writes whole lines."""
        if self._file.tell() + len(lines) > self._file_bytes:
            self._file.close()
            self._roll()
        self._file.write(lines)
        self._file.flush()

    def finish(self) -> None:
        """Ends the log as a driver does that ends well."""
        self._file.close()
        (self.log / f"appstatus_{APPLICATION}.inprogress").rename(self.log / f"appstatus_{APPLICATION}")

    def _roll(self) -> None:
        self.number += 1
        self._file = (self.log / f"events_{self.number}_{APPLICATION}").open("wb")


def _pieces(batch: bytes) -> Iterator[bytes | tuple[str, int]]:
    """The micro-batch as texts, and kinds and values between them."""
    lines = batch.splitlines()
    marked = b"".join(msgspec.json.encode(_marked("", msgspec.json.decode(line))) + b"\n" for line in lines)
    position = 0
    for match in _MARK.finditer(marked):
        kind, value = (match[1], match[2]) if match[1] else (match[3], match[4])
        yield marked[position : match.start()]
        yield kind.decode(), int(value)
        position = match.end()
    yield marked[position:]


def _marked(key: str, value: Any) -> Any:
    """A value in which each number that grows is a mark."""
    kind = _BY_KEY.get(key)
    match value:
        case bool():
            return value
        case int() if kind or value > _FIRST_TIME:
            return f"<{kind or 'time'} {value}>"
        case str() if kind and value.isdecimal():
            return f"{{{kind} {value}}}"
        case str() if key == "timestamp":
            return f"{{iso {int(datetime.fromisoformat(value).timestamp() * 1000)}}}"
        case str():
            return re.sub(r"batch = (\d+)$", r"batch = {batch \1}", value)
        case list() if key == "accumUpdates":
            return [[f"<number {number}>", more] for number, more in value]
        case list():
            return [_marked(key, each) for each in value]
        case dict():
            return {name: _marked(name, each) for name, each in value.items()}
    return value


def _value(kind: str, base: int, *, number: int) -> bytes:
    if kind == "iso":
        instant = datetime.fromtimestamp((base + number * INTERVAL_MS) / 1000, UTC)
        return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()
    return str(base + number * _STEPS[kind]).encode()
