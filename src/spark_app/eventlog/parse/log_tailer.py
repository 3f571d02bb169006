"""Files of a Spark event log as lines: one file or rolled ones, plain, zstd or gzip, finished or still growing.

Layout and names are those of Spark's `EventLogFileWriters`: a file `<app>[.<codec>][.inprogress]`, or a folder
`eventlog_v2_<app>` with `events_<n>_<app>[.<codec>]`, of which a `.compact` one stands for all before it. Databricks
delivers a folder for each application, with `eventlog-<date>--<time>.gz` for what is over and `eventlog` for the rest.
"""

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import zstandard

from spark_app.errors import InputError
from spark_app.eventlog.parse.locations import LogPath, open_bytes, state

CHUNK_BYTES: Final = 256 * 1024
PIECE_BYTES: Final = 8 * 1024
"""Of a packed file, how much is unpacked at once."""
FOREIGN_BYTES: Final = 4 * 1024 * 1024
"""What is longer, has no line break and does not begin as an event is no log, such as a core dump."""
FOLDER: Final = "eventlog_v2_"
IN_PROGRESS: Final = ".inprogress"
COMPACT: Final = ".compact"
_ROLLED: Final = re.compile(r"events_(\d+)_.+?(\.compact)?")
_OF_DATABRICKS: Final = re.compile(r"eventlog(-\d{4}-\d\d-\d\d--\d\d-\d\d)?(\.gz)?")
_STATUS: Final = "appstatus_"
_GZIP: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
"""Tells zlib to expect the header of gzip."""
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
"""How zstd begins. A History Server packs compact files as its own settings say, and names them as the files before."""
_EVENT: Final = b'{"Event"'
_CODECS: Final = (".lz4", ".lzf", ".snappy")


@dataclass(frozen=True, order=True, slots=True)
class LogFile:
    """One file of a log; a single file is number 0."""

    number: int
    path: LogPath


@dataclass(slots=True)
class ReadErrors:
    """What was not read of a log, or could not be processed.

    Attributes:
        torn_lines: Lines that ended with their file, in their midst.
        lost_files: Rolled files that were gone before they were read, or could not be opened, or shrank.
        damaged_files: Files that could not be unpacked to their end.
        repeated_events: Events that the log has once more.
        left_out: Values that cannot be read, by their path in the event, and how many.
        lines_of_other_encoding: Lines with bytes that are no UTF-8.
        later_events: Events after a second start of an application.
        failed_events: Events that a bug of this program kept from being processed.
        failure: The first of these bugs.
    """

    torn_lines: int = 0
    lost_files: int = 0
    damaged_files: int = 0
    repeated_events: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    lines_of_other_encoding: int = 0
    later_events: int = 0
    failed_events: int = 0
    failure: str | None = None


class LogTailer:
    """Gives the lines of one log, each once, as they are written."""

    def __init__(self, log: LogPath) -> None:
        """Nothing is read yet.

        Raises:
            InputError: The compression codec is not supported; the message names the setting.
        """
        codec = next((codec for codec in _CODECS if any(codec in part.path.suffixes for part in parts(log))), None)
        if codec:
            raise InputError(
                f"{log} is compressed with {codec[1:]}, which spark-app does not read: set "
                "spark.eventLog.compression.codec to zstd and run the application again"
            )
        self.log = log
        self.read_errors = ReadErrors()
        self._tail: _Tail | None = None
        self._number = -1

    def new(self) -> Iterator[bytes]:
        """The lines that are complete by now and were not given before, without their line breaks.

        The last line of a file needs no line break if it is complete JSON and Spark writes no more to the file.
        """
        while True:
            is_finished = self.is_finished  # before the reading, which then reaches the end of the log
            if self._tail is not None:
                yield from self._tail.lines(self.read_errors)
            following = self._following()
            if following is None and is_finished == self.is_finished:
                if is_finished and self._tail is not None:
                    yield from self._tail.last(self.read_errors)
                return
            if following is not None:
                if self._tail is not None:
                    yield from self._tail.last(self.read_errors)
                    self._tail.close(self.read_errors)
                self._open(following)

    @property
    def is_finished(self) -> bool:
        """Whether the application has closed its log; one that was killed never does."""
        return is_finished(self.log)

    @property
    def number(self) -> int:
        """The number of the file that is read now; -1 before the first."""
        return self._number

    @property
    def unread_bytes(self) -> int:
        """Bytes on disk that were not read yet, without those of lost files."""
        later = sum(state(part.path).size for part in parts(self.log) if part.number > self._number)
        return later + (self._tail.unread_bytes if self._tail else 0)

    def close(self) -> None:
        """Ends the reading."""
        if self._tail is not None:
            self._tail.close(self.read_errors)
            self._tail = None

    def _following(self) -> LogFile | None:
        """The next file. A compact file is skipped if some of the files that it replaces were read already."""
        later = [part for part in parts(self.log) if part.number > self._number]
        if later and self._number > 0 and later[0].path.name.endswith(COMPACT):
            self.read_errors.lost_files += later[0].number - self._number
            self._number = later.pop(0).number
        return later[0] if later else None

    def _open(self, part: LogFile) -> None:
        if self._number > 0 and part.number > self._number + 1:
            self.read_errors.lost_files += part.number - self._number - 1
        self._number = part.number
        try:
            self._tail = _Tail(part.path)
        except OSError:
            self._tail = None
            self.read_errors.lost_files += 1


def is_finished(log: LogPath) -> bool:
    """Whether an application has closed its log, by the names of its files, also where they cannot be read."""
    if log.name.startswith(FOLDER) and log.is_dir():
        names = [path.name for path in _inside(log)]
        return any(name.startswith(_STATUS) and not name.endswith(IN_PROGRESS) for name in names)
    return any(not part.path.name.endswith(IN_PROGRESS) for part in parts(log))


def parts(log: LogPath) -> list[LogFile]:
    """The files of a log in the order in which they are read; none where it is gone."""
    if not log.name.startswith(FOLDER):
        there = log if log.exists() else log.with_name(log.name.removesuffix(IN_PROGRESS))
        if there.is_file():
            return [LogFile(0, there)]
        return _delivered(log) if log.is_dir() else []
    matches = [(path, _ROLLED.match(path.name)) for path in _inside(log)]
    rolled = [(int(name[1]), path.name.endswith(COMPACT), path) for path, name in matches if name]
    compact = max((number for number, is_compact, _ in rolled if is_compact), default=0)
    kept = [LogFile(number, path) for number, is_compact, path in rolled if number > compact or is_compact]
    return sorted(part for part in kept if part.number >= compact)


def _delivered(folder: LogPath) -> list[LogFile]:
    """The files of a folder of Databricks in the order of their times; `eventlog`, which is not over, is the last."""
    files = [path for path in _inside(folder) if _OF_DATABRICKS.fullmatch(path.name)]
    files.sort(key=lambda path: (not path.name.startswith("eventlog-"), path.name))
    return [LogFile(number, path) for number, path in enumerate(files)]


def _inside(folder: LogPath) -> list[LogPath]:
    """What is in a folder; nothing where it is gone."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def lines_of(part: LogFile) -> Iterator[bytes]:
    """The lines of a file to which no more is written.

    Raises:
        OSError: It cannot be opened.
    """
    read_errors, tail = ReadErrors(), _Tail(part.path)
    yield from tail.lines(read_errors)
    yield from tail.last(read_errors)
    tail.close(read_errors)


def application_of(log: str) -> str:
    """The id of an application by the name of its log; it may have the attempt at its end."""
    return log.removeprefix(FOLDER).partition(".")[0]


class _Tail:
    """Reads what is appended to one file, which may be renamed or deleted while it is read."""

    def __init__(self, path: LogPath) -> None:
        self._path, self._position = path, 0
        self._file = open_bytes(path, complete=path.name.removesuffix(IN_PROGRESS))
        is_zstd = ".zstd" in path.suffixes or ".zst" in path.suffixes
        self._unpacker = _Unpacker(_zstd_frames()) if is_zstd else None
        self._rest: list[bytes] = []
        self._rest_bytes, self._begin = 0, b""
        self.is_lost = False

    def lines(self, read_errors: ReadErrors) -> Iterator[bytes]:
        """The lines that are complete by now; none once the file has shrunk, or cannot be read or unpacked."""
        try:
            if not self.is_lost:
                yield from self._new()
        except (OSError, zstandard.ZstdError, zlib.error, _NoEventError) as error:
            self.is_lost = True
            self._rest = []
            read_errors.lost_files += isinstance(error, OSError)
            read_errors.damaged_files += not isinstance(error, OSError)

    def last(self, read_errors: ReadErrors) -> Iterator[bytes]:
        """The last line, if it lacks only its line break; of a file to which no more is written."""
        if self._unpacker is not None and self._unpacker.is_amid_frame and not self.is_lost:
            self.is_lost, self._rest = True, []
            read_errors.damaged_files += 1
        rest = b"".join(self._rest)
        if _is_json(rest):
            self._rest = []
            yield rest

    @property
    def unread_bytes(self) -> int:
        """Bytes on disk that were not read yet."""
        return 0 if self.is_lost else max(0, self._file.size() - self._position)

    def _new(self) -> Iterator[bytes]:
        if self._file.size() < self._position:
            raise OSError(f"{self._path} has shrunk: it was truncated or replaced")
        while chunk := self._file.read(CHUNK_BYTES):
            if not self._position and chunk.startswith(_ZSTD):
                self._unpacker = _Unpacker(_zstd_frames())
            elif not self._position and chunk.startswith(_GZIP):  # a web server may have unpacked a `.gz` on the way
                self._unpacker = _Unpacker(lambda: zlib.decompressobj(_GZIP_WINDOW))
            self._position += len(chunk)
            for text in self._unpacker.unpacked(chunk) if self._unpacker else (chunk,):
                first, *more = text.split(b"\n")
                self._keep(first)
                if more:
                    yield b"".join(self._rest)
                    self._rest, self._rest_bytes, self._begin = [], 0, b""
                    self._keep(more.pop())
                    yield from more

    def _keep(self, text: bytes) -> None:
        """Keeps a part of a line until its end is read.

        Raises:
            _NoEventError: It is too long for what is no event.
        """
        self._rest.append(text)
        self._rest_bytes += len(text)
        self._begin += text[: len(_EVENT) - len(self._begin)]
        if self._rest_bytes > FOREIGN_BYTES and self._begin != _EVENT:
            raise _NoEventError(f"{self._path} has {self._rest_bytes} bytes without a line break that are no event")

    def close(self, read_errors: ReadErrors) -> None:
        """Closes the file, and counts a last line without a line break."""
        read_errors.torn_lines += any(self._rest)
        self._file.close()


class _NoEventError(ValueError):
    """A file has a long part that is no line of a log."""


class _Unpacker:
    """Unpacks piece by piece, so that what stands before a damage is read; Spark ends a frame of zstd with each flush.

    A gzip file may have several members, which are frames here.
    """

    def __init__(self, new_frame: Callable[[], Any]) -> None:
        self._new_frame = new_frame
        self._frame = new_frame()
        self.is_amid_frame = False

    def unpacked(self, chunk: bytes) -> Iterator[bytes]:
        for start in range(0, len(chunk), PIECE_BYTES):
            piece = chunk[start : start + PIECE_BYTES]
            while piece:
                self.is_amid_frame = True
                yield self._frame.decompress(piece)
                piece = b""
                if self._frame.eof:
                    piece = self._frame.unused_data
                    self._frame, self.is_amid_frame = self._new_frame(), False


def _zstd_frames() -> Callable[[], Any]:
    return zstandard.ZstdDecompressor().decompressobj


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return False
    return True
