"""Files of a Spark event log as lines: one file or rolled ones, plain or zstd, finished or still growing.

Layout and names are those of Spark's `EventLogFileWriters`: a file `<app>[.<codec>][.inprogress]`, or a folder
`eventlog_v2_<app>` with `events_<n>_<app>[.<codec>]`, of which a `.compact` one stands for all before it.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import zstandard

from app.errors import InputError

CHUNK_BYTES: Final = 256 * 1024
FOLDER: Final = "eventlog_v2_"
IN_PROGRESS: Final = ".inprogress"
_ROLLED: Final = re.compile(r"events_(\d+)_.+?(\.compact)?")
_CODECS: Final = (".lz4", ".lzf", ".snappy")


@dataclass(frozen=True, order=True, slots=True)
class Part:
    """One file of a log; a single file is number 0."""

    number: int
    path: Path


@dataclass(slots=True)
class Troubles:
    """What could not be read of a log.

    Attributes:
        torn_lines: Lines that ended with their file and not with a line break.
        lost_files: Rolled files that were gone before they were read, or shrank, or are no zstd in their midst.
    """

    torn_lines: int = 0
    lost_files: int = 0


class Follower:
    """The lines of one log, each once, as they are written."""

    def __init__(self, log: Path) -> None:
        """Nothing is read yet.

        Raises:
            InputError: The log is compressed in a way that is not read here; says what to set.
        """
        codec = next((codec for codec in _CODECS if any(codec in part.path.suffixes for part in parts(log))), None)
        if codec:
            raise InputError(f"{log} is compressed with {codec[1:]}: set spark.eventLog.compression.codec to zstd")
        self.log = log
        self.troubles = Troubles()
        self._tail: _Tail | None = None
        self._number = -1

    def new(self) -> Iterator[bytes]:
        """The lines that are whole by now and were not given before, without their breaks."""
        while True:
            if self._tail is not None:
                yield from self._tail.lines(self.troubles)
            following = self._following()
            if following is None:
                return
            if self._tail is not None:
                self._tail.close(self.troubles)
            self._open(following)

    @property
    def is_finished(self) -> bool:
        """Whether the application has closed its log; one that was killed never does."""
        if self.log.is_dir():
            return any(not path.name.endswith(IN_PROGRESS) for path in self.log.glob("appstatus_*"))
        return not self.log.name.endswith(IN_PROGRESS)

    @property
    def unread_bytes(self) -> int:
        """Bytes on disk that were not read yet."""
        read = self._tail.position if self._tail else 0
        sizes = [_size(part.path) for part in parts(self.log) if part.number >= self._number]
        return max(0, sum(sizes) - read)

    def close(self) -> None:
        """Ends the reading."""
        if self._tail is not None:
            self._tail.close(self.troubles)
            self._tail = None

    def _following(self) -> Part | None:
        return next((part for part in parts(self.log) if part.number > self._number), None)

    def _open(self, part: Part) -> None:
        if self._number > 0 and part.number > self._number + 1:
            self.troubles.lost_files += part.number - self._number - 1
        self._number = part.number
        try:
            self._tail = _Tail(part.path)
        except OSError:
            self._tail = None
            self.troubles.lost_files += 1


def parts(log: Path) -> list[Part]:
    """The files of a log in the order in which they are read; none where it is gone."""
    if not log.name.startswith(FOLDER):
        there = log if log.exists() else log.with_name(log.name.removesuffix(IN_PROGRESS))
        return [Part(0, there)] if there.exists() else []
    try:
        found = [(path, _ROLLED.match(path.name)) for path in log.iterdir()]
    except OSError:
        return []
    rolled = [(int(name[1]), path.name.endswith(".compact"), path) for path, name in found if name]
    compact = max((number for number, is_compact, _ in rolled if is_compact), default=0)
    kept = [Part(number, path) for number, is_compact, path in rolled if number > compact or is_compact]
    return sorted(part for part in kept if part.number >= compact)


class _Tail:
    """What is new in one file, which may be renamed or deleted meanwhile."""

    def __init__(self, path: Path) -> None:
        self.position = 0
        self._file: BinaryIO = path.open("rb", buffering=0)
        is_zstd = ".zstd" in path.suffixes or ".zst" in path.suffixes
        self._unzip = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True) if is_zstd else None
        self._rest: list[bytes] = []

    def lines(self, troubles: Troubles) -> Iterator[bytes]:
        """The lines that are whole by now."""
        if os.fstat(self._file.fileno()).st_size < self.position:
            self._give_up(troubles)
        while chunk := self._file.read(CHUNK_BYTES):
            self.position += len(chunk)
            try:
                text = self._unzip.decompress(chunk) if self._unzip else chunk
            except zstandard.ZstdError:
                self._give_up(troubles)
                return
            first, *more = text.split(b"\n")
            self._rest.append(first)
            if more:
                yield b"".join(self._rest)
                self._rest = [more.pop()]
                yield from more

    def close(self, troubles: Troubles) -> None:
        """Counts what ends without a line break."""
        troubles.torn_lines += any(self._rest)
        self._file.close()

    def _give_up(self, troubles: Troubles) -> None:
        """Nothing of what follows can be told from what was read; the rest of the file is left alone."""
        troubles.lost_files += 1
        self.position = self._file.seek(0, 2)
        self._rest = []


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
