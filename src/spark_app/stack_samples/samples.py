"""The samples of the stacks of an application's processes, in one file beside its event log.

The file holds one `StackSamples` as JSON, compressed by zstd. Frames hold names and lines, no values.
"""

from pathlib import Path
from typing import Final, Literal, overload

import msgspec
import zstandard
from msgspec import Struct

from spark_app.eventlog.parse.locations import LogPath
from spark_app.local_files import write_atomic

SUFFIX: Final = ".stacks.zst"
Language = Literal["java", "python"]
Role = Literal["driver", "executor", "python_driver", "python_worker"]
State = Literal["running", "native", "waiting", "locked"]
"""`running` on a processor; `native` in a native method, as reading a socket is; `waiting` in a call that waits;
`locked` at a lock that another thread has."""


class Frame(Struct, frozen=True, array_like=True):
    """A function; `file` is shortened (no folder of a user or machine), `line` 0 if unknown.

    `is_own` marks functions of the user's program, whose file is below the folder of the program.
    """

    language: Language
    function: str
    file: str
    line: int
    is_own: bool = False


class Process(Struct, frozen=True):
    """A process that was sampled.

    Attributes:
        role: What it is of the application.
        executor: The id of its executor in the event log, `driver` in local mode; None for the Python of the driver.
        host: The name of its host.
        pid: Its id there.
        interval_ms: The time between two samples of a thread that was set.
        started_ms, ended_ms: When its samples begin and end, in milliseconds since the epoch.
        is_of_cpu: Whether a sample of a JVM is of the time on a processor; else it is one of threads that seem to run,
            of which Java misses many.
        is_cut: Whether its file was full, so that the last samples are missing.
    """

    role: Role
    executor: str | None
    host: str
    pid: int
    interval_ms: float
    started_ms: int
    ended_ms: int
    is_of_cpu: bool = False
    is_cut: bool = False


class Sample(Struct, frozen=True, array_like=True):
    """One sample of a thread.

    Attributes:
        at_ms: When, in milliseconds since the epoch.
        process: The index of its process.
        thread: The id of the thread, the same for all samples of it in the process.
        stack: The index of its stack.
        state: What the thread did.
        task: The id of the task that the process knew it was of; None where the event log has to tell.
        weight: How many samples of a full sampler it stands for.
    """

    at_ms: int
    process: int
    thread: int
    stack: int
    state: State = "running"
    task: int | None = None
    weight: float = 1.0


class Span(Struct, frozen=True, array_like=True):
    """A time in which a thread of a pool of a JVM ran tasks without a pause; `ended_ms` is None if it went on."""

    process: int
    thread: int
    began_ms: float
    ended_ms: float | None


class StackSamples(Struct):
    """All samples of an application; `stacks` are indices of frames, the outermost first.

    `spans` are of threads that ran tasks of Spark.
    """

    processes: list[Process]
    frames: list[Frame]
    stacks: list[list[int]]
    samples: list[Sample]
    spans: list[Span] = []


@overload
def file_of(log: Path) -> Path: ...
@overload
def file_of(log: LogPath) -> LogPath: ...
def file_of(log: LogPath) -> LogPath:
    """The file of the samples of the application with an event log; hidden, or a History Server took it for a log."""
    return log.with_name(f".{log.name.removesuffix('.zst')}{SUFFIX}")


def write(samples: StackSamples, file: LogPath) -> None:
    """Writes the samples, in one step.

    Raises:
        OSError: The file cannot be written.
        InputError: The storage of the file refuses, or does not answer.
    """
    content = zstandard.ZstdCompressor(level=9).compress(msgspec.json.encode(samples))
    if isinstance(file, Path):
        write_atomic(file, content)
    else:
        file.write_bytes(content)


def read(file: LogPath) -> StackSamples:
    """Reads the samples.

    Raises:
        OSError: The file cannot be read.
        InputError: The storage of the file refuses, or does not answer.
        ValueError: It has other content.
    """
    try:
        content = zstandard.ZstdDecompressor().decompressobj().decompress(file.read_bytes())
    except zstandard.ZstdError as error:
        raise ValueError(f"{file} has no stack samples: {error}") from error
    return msgspec.json.decode(content, type=StackSamples)
