"""When and on which executor each task attempt of an event log ran: what samples of stacks are joined to."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct, field

from spark_app.eventlog.parse.locations import LogPath
from spark_app.eventlog.parse.log_tailer import LogTailer

StageKey = tuple[int, int]
"""The id and the attempt of a stage."""
ENDLESS: Final = 2**62
"""The end of a task attempt that the log does not tell."""
_STARTS: Final = (b'{"Event":"SparkListenerTaskStart"', b'{"Event":"SparkListenerTaskEnd"')


class TaskRun(NamedTuple):
    """A task attempt from its launch to its end, in milliseconds since the epoch.

    `kind` is Spark's class of it, `cpu_ms` the time of its thread on a processor, as Spark measured it.
    """

    id: int
    stage: StageKey
    executor: str
    launched: int
    finished: int
    kind: str = ""
    cpu_ms: float = 0.0


class _Info(Struct):
    id: int = field(name="Task ID")
    executor: str = field(name="Executor ID")
    launched: int = field(name="Launch Time")
    finished: int = field(name="Finish Time", default=0)


class _Metrics(Struct):
    cpu_ns: int = field(name="Executor CPU Time", default=0)
    deserialize_cpu_ns: int = field(name="Executor Deserialize CPU Time", default=0)


class _Line(Struct):
    stage: int = field(name="Stage ID")
    attempt: int = field(name="Stage Attempt ID")
    info: _Info = field(name="Task Info")
    kind: str = field(name="Task Type", default="")
    metrics: _Metrics | None = field(name="Task Metrics", default=None)

    @property
    def cpu_ms(self) -> float:
        """The time of the thread of the task on a processor."""
        return (self.metrics.cpu_ns + self.metrics.deserialize_cpu_ns) / 1e6 if self.metrics else 0.0


_DECODER: Final = msgspec.json.Decoder(_Line)


def of_log(log: LogPath) -> list[TaskRun]:
    """The task attempts of a log; those that it has no end of have none.

    Raises:
        InputError: The log cannot be read.
    """
    with closing(LogTailer(log)) as tailer:
        return list(of_lines(tailer.new()))


def of_lines(lines: Iterable[bytes]) -> Iterator[TaskRun]:
    """The same of lines. An attempt that ends a second time, since its output was lost, keeps its first end."""
    runs = dict[int, TaskRun]()
    for line in _task_lines(lines):
        info, before = line.info, runs.get(line.info.id)
        if before is not None and before.finished != ENDLESS:
            continue
        key, finished = (line.stage, line.attempt), max(info.finished, info.launched) if info.finished else ENDLESS
        runs[info.id] = TaskRun(info.id, key, info.executor, info.launched, finished, line.kind, line.cpu_ms)
    return iter(runs.values())


def _task_lines(lines: Iterable[bytes]) -> Iterator[_Line]:
    for line in lines:
        if line.startswith(_STARTS):
            try:
                yield _DECODER.decode(line)
            except ValueError:
                continue  # as every reader of the log skips it, and says so
