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
COMPACT: Final = ".compact"
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
        lost_files: Rolled files that were gone before they were read, or shrank, or could not be unpacked.
    """

    torn_lines: int = 0
    lost_files: int = 0


class Follower:
    """Gives the lines of one log, each once, as they are written."""

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
        """The lines that are complete by now and were not given before, without their line breaks."""
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
        return any(not part.path.name.endswith(IN_PROGRESS) for part in parts(self.log))

    @property
    def unread_bytes(self) -> int:
        """Bytes on disk that were not read yet, without those of lost files."""
        later = sum(_size(part.path) for part in parts(self.log) if part.number > self._number)
        return later + (self._tail.unread_bytes if self._tail else 0)

    def close(self) -> None:
        """Ends the reading."""
        if self._tail is not None:
            self._tail.close(self.troubles)
            self._tail = None

    def _following(self) -> Part | None:
        """The next file. A compact file is skipped if some of the files that it replaces were read already."""
        later = [part for part in parts(self.log) if part.number > self._number]
        if later and self._number > 0 and later[0].path.name.endswith(COMPACT):
            self.troubles.lost_files += later[0].number - self._number
            self._number = later.pop(0).number
        return later[0] if later else None

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
        return [Part(0, there)] if there.is_file() else []
    try:
        found = [(path, _ROLLED.match(path.name)) for path in log.iterdir()]
    except OSError:
        return []
    rolled = [(int(name[1]), path.name.endswith(COMPACT), path) for path, name in found if name]
    compact = max((number for number, is_compact, _ in rolled if is_compact), default=0)
    kept = [Part(number, path) for number, is_compact, path in rolled if number > compact or is_compact]
    return sorted(part for part in kept if part.number >= compact)


def application_of(log: str) -> str:
    """The id of an application by the name of its log; it may have the attempt at its end."""
    return log.removeprefix(FOLDER).partition(".")[0]


class _Tail:
    """Reads what is appended to one file, which may be renamed or deleted meanwhile."""

    def __init__(self, path: Path) -> None:
        self._position = 0
        self._file: BinaryIO = path.open("rb", buffering=0)
        is_zstd = ".zstd" in path.suffixes or ".zst" in path.suffixes
        self._unzip = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True) if is_zstd else None
        self._rest: list[bytes] = []
        self.is_lost = False

    def lines(self, troubles: Troubles) -> Iterator[bytes]:
        """The lines that are complete by now; none once the file has shrunk, or cannot be read or unpacked."""
        try:
            if not self.is_lost:
                yield from self._new()
        except (OSError, zstandard.ZstdError):
            self.is_lost = True
            self._rest = []
            troubles.lost_files += 1

    @property
    def unread_bytes(self) -> int:
        """Bytes on disk that were not read yet."""
        return 0 if self.is_lost else max(0, self._size() - self._position)

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _new(self) -> Iterator[bytes]:
        if self._size() < self._position:
            raise OSError(f"{self._file.name} has shrunk: nothing of it can be told from what was read")
        while chunk := self._file.read(CHUNK_BYTES):
            self._position += len(chunk)
            text = self._unzip.decompress(chunk) if self._unzip else chunk
            first, *more = text.split(b"\n")
            self._rest.append(first)
            if more:
                yield b"".join(self._rest)
                self._rest = [more.pop()]
                yield from more

    def close(self, troubles: Troubles) -> None:
        """Closes the file, and counts a last line without a line break."""
        troubles.torn_lines += any(self._rest)
        self._file.close()


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
