"""The samples of the last seconds of processes that run, read from files that grow.

Each look takes what was written since the last one, and at most `MOST_BYTES` of a file: who begins to look at a command
that has run for hours catches up over several looks. Samples of before the window are dropped, their stacks unread.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from spark_app.stack_samples import python_stacks
from spark_app.stack_samples.captured import REPOSITORY, Captured
from spark_app.stack_samples.flight_recordings import (
    CHECKPOINT,
    HEADER,
    JVM,
    SAMPLES,
    Chunk,
    Recording,
    Value,
    number_at,
)
from spark_app.stack_samples.python_stacks import PythonProcess

MOST_BYTES: Final = 1 << 20
"""Of a file at one look: some tenth of a second."""
STATE: Final = 64
"""Where in its header a chunk says which version of the header it is."""
WRITING: Final = 255
UNREADABLE: Final = (OSError, ValueError, LookupError, TypeError, struct.error, RecursionError)
"""What reading raises of a file that is gone, or is not what it should be."""


class GrowingFiles:
    """The files of the processes of a command.

    Attributes:
        is_behind: Whether the last look has left something to the next one.
    """

    def __init__(self, repository: Path, python: Path) -> None:
        """Reads nothing yet.

        Args:
            repository: The folder of the recordings of JVMs that run.
            python: The folder of the files of Python processes.
        """
        self._repository, self._python = repository, python
        self._chunks: dict[Path, GrowingChunk] = {}
        self._recordings: dict[int, Recording] = {}
        self._processes: dict[Path, GrowingProcess] = {}
        self.is_behind = False

    def since(self, begin_ms: int) -> Captured:
        """What processes have written of the time from `begin_ms` on, as far as it is read."""
        self._chunks = dict(self._newest_chunks())
        files = self._python.glob(f"*{python_stacks.SUFFIX}")
        self._processes = {file: self._processes.get(file) or GrowingProcess(file) for file in files}
        self.is_behind = False
        growing: list[GrowingChunk | GrowingProcess] = [*self._chunks.values(), *self._processes.values()]
        for each in growing:
            with suppress(*UNREADABLE):
                self.is_behind |= each.read(begin_ms)
        found = Captured(java={pid: self._recordings[pid] for pid in map(_jvm, self._chunks)})
        windows = (each.window() for each in self._processes.values())
        found.python = [process for process in windows if process is not None]
        return found

    def _newest_chunks(self) -> Iterator[tuple[Path, "GrowingChunk"]]:
        """The chunk that each JVM writes now; one that it has ended since the last look is not read to its end."""
        for folder in self._repository.glob("*/"):
            file = max(folder.glob("*.jfr"), default=None)
            if file is not None and REPOSITORY.search(folder.name):
                recording = self._recordings.setdefault(_jvm(file), Recording())
                yield file, self._chunks.get(file) or GrowingChunk(file, recording)


def _jvm(chunk: Path) -> int:
    """The process that writes a chunk."""
    return int(chunk.parent.name.rpartition("_")[2])


class GrowingChunk(Chunk):
    """A chunk of a recording while the JVM writes it: it is whole up to the size in its header, once a second."""

    def __init__(self, file: Path, recording: Recording) -> None:
        """Reads nothing yet; samples are added to what is known of the JVM."""
        self._file, self._recording = file, recording
        self._content, self._next, self._metadata = b"", HEADER.size, 0
        self._unresolved: list[tuple[str, Value]] = []

    def read(self, begin_ms: int) -> bool:  # type: ignore[override]
        """Takes what is new of the time from `begin_ms` on; returns whether there is more.

        Raises:
            OSError, ValueError, LookupError, struct.error: It cannot be read.
        """
        samples = self._recording.samples
        samples[:] = [each for each in samples if each.at_ms >= begin_ms]
        with self._file.open("rb") as file:
            header = file.read(HEADER.size)
            if len(header) < HEADER.size or header[STATE] == WRITING:
                return False
            size, _, metadata = HEADER.unpack(header)[3:6]
            if not metadata:
                return False  # the JVM has not written yet
            content = header + file.read(size - HEADER.size)
            file.seek(0)
            if file.read(HEADER.size) != header or len(content) < size:
                return False  # the JVM has written meanwhile
        if metadata != self._metadata:
            pools = getattr(self, "_pools", {})
            super().__init__(content, 0)
            self._metadata, self._pools = metadata, pools
        self._content = content
        self._readers.clear()  # they have the content of before
        is_whole = self._take(begin_ms)
        self._content = b""
        return not is_whole

    def _take(self, begin_ms: int) -> bool:
        """Reads events up to the end, or until enough is read; returns whether it was the end."""
        wanted = {number: each.name for number, each in self._classes.items() if each.name in (*SAMPLES, JVM)}
        limit = self._next + MOST_BYTES
        while self._next < min(len(self._content), limit):
            size, after = number_at(self._content, self._next)
            kind, after = number_at(self._content, after)
            if not size:
                break
            if kind == CHECKPOINT:
                self._read_checkpoint(self._next)
            elif kind in wanted:
                self._unresolved.append((wanted[kind], self.value(kind, after)[0]))
            self._next += size
        is_whole = self._next >= len(self._content)
        later, self._unresolved = self._unresolved, []
        for event, value in later:
            if event != JVM and self._at(value) < begin_ms * 1_000_000:
                continue
            try:
                self._add(event, value, self._recording)
            except LookupError:
                self._unresolved.append((event, value))  # the values that it shares are still to come
        return is_whole


class GrowingProcess:
    """The file of a Python process while it is written."""

    def __init__(self, file: Path) -> None:
        """Reads nothing yet."""
        self._file, self._next = file, 0
        self._process: PythonProcess | None = None

    def read(self, begin_ms: int) -> bool:
        """Takes what is new of the time from `begin_ms` on; returns whether there is more.

        Raises:
            OSError, ValueError, LookupError, TypeError: It cannot be read.
        """
        process = self._process
        if process is not None:
            process.samples[:] = [each for each in process.samples if each.at_ms >= begin_ms]
        if process is not None and self._file.stat().st_size == self._next:
            return False
        with self._file.open("rb") as file:
            file.seek(self._next)
            content = file.read(MOST_BYTES)
        whole = content[: content.rfind(b"\n") + 1]
        self._next += len(whole)
        for line in whole.splitlines():
            self._process = python_stacks.with_line(self._process, line)
        if self._process is not None:
            samples = self._process.samples
            samples[:] = [each for each in samples if each.at_ms >= begin_ms]
        return len(content) == MOST_BYTES

    def window(self) -> PythonProcess | None:
        """The process with the samples of the window, and of its frames and stacks those of them."""
        if self._process is None:
            return None
        process, frames, stacks = self._process, dict[int, int](), dict[int, int]()
        for sample in process.samples:
            stacks.setdefault(sample.stack, len(stacks))
        for stack in stacks:
            for frame in process.stacks[stack]:
                frames.setdefault(frame, len(frames))
        return replace(
            process,
            frames=[process.frames[frame] for frame in frames],
            stacks=[[frames[frame] for frame in process.stacks[stack]] for stack in stacks],
            samples=[replace(sample, stack=stacks[sample.stack]) for sample in process.samples],
        )
