"""Replaces old files of a rolled event log by one compact file: the log of a stream does not grow for ever.

Layout and names are those of Spark's `EventLogFileCompactor`, which only works in a History Server and drops what an
ended job has logged: `events_<n>_<app>.compact` stands for all files up to n. It has the application, its environment,
its executors, the streaming queries that run, and the jobs, stages and SQL executions that have not ended. One line of
the bridge's own event holds the sum of all others; Spark's readers skip an event that they do not know.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import Final

import msgspec

from spark_app.eventlog.bridge.event_processor import EventProcessor
from spark_app.eventlog.bridge.eviction import Eviction
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.model import stream_history
from spark_app.eventlog.model.application import Ended
from spark_app.eventlog.parse import events
from spark_app.eventlog.parse.events import Event
from spark_app.eventlog.parse.log_tailer import COMPACT, LogFile, lines_of, parts
from spark_app.eventlog.reader import Reader

TEMPORARY: Final = ".compact.tmp"
"""What a killed process leaves in the folder of a log; the next compaction replaces it."""
_HEAD: Final = frozenset({events.LOG_START, "SparkListenerResourceProfileAdded", events.ENVIRONMENT_UPDATE})
_ANY: Final = msgspec.json.Decoder()


def compact(log: Path, *, limit: int, read: int, thresholds: Thresholds) -> bool:
    """Replaces the oldest files of a log that is larger than a limit, so that half of the limit remains.

    Args:
        log: The folder of rolled files, on this machine.
        limit: Bytes.
        read: The number of the file that is read now: the ones before are read to their ends.
        thresholds: Thresholds of the diagnoses, whose findings are counted.

    Returns:
        Whether files were replaced.

    Raises:
        OSError: A file cannot be read or written; the log is as it was.
    """
    old = _old(parts(log), limit, read)
    if not old:
        return False
    rolled = Path(str(old[-1].path))
    compacted = rolled.with_name(rolled.name.removesuffix(COMPACT) + COMPACT)
    temporary = log / TEMPORARY
    with temporary.open("wb") as file:
        file.writelines(line + b"\n" for line in _compacted(log, old, thresholds))
        file.flush()
        os.fsync(file.fileno())
    shutil.copymode(rolled, temporary)
    temporary.replace(compacted)
    for part in old:
        Path(str(part.path)).unlink(missing_ok=True)
    return True


def _old(files: list[LogFile], limit: int, read: int) -> list[LogFile]:
    """The files to replace, oldest first: none below the limit, and none if it would be a compact file alone."""
    sizes = [Path(str(part.path)).stat().st_size for part in files]
    rest, old = sum(sizes), list[LogFile]()
    if rest <= limit:
        return []
    for part, size in zip(files[:-1], sizes, strict=False):
        if rest <= limit // 2 or part.number >= read:
            break
        old.append(part)
        rest -= size
    return old if any(not part.path.name.endswith(COMPACT) for part in old) else []


def _compacted(log: Path, files: list[LogFile], thresholds: Thresholds) -> Iterator[bytes]:
    """The lines of the compact file of some files: the application, its queries, what is left out, and what is open."""
    summary = _Summary(log, thresholds)
    for line in _lines(files):
        summary.reader.take(line)
    lines: dict[_Rank, list[bytes]] = {rank: [] for rank in _Rank}
    lines[_Rank.SUMMARY].append(summary.line())
    for line in _lines(files):
        rank = summary.rank(line)
        if rank is not None:
            lines[rank].append(line)
    for rank in _Rank:
        yield from lines[rank]


def _lines(files: Iterable[LogFile]) -> Iterator[bytes]:
    for part in files:
        yield from lines_of(part)


class _Rank(IntEnum):
    """The order of lines in a compact file."""

    HEAD = 1
    START = 2
    STREAMS = 3
    SUMMARY = 4
    OPEN = 5


class _Summary:
    """What the files say in all: read once, as an exporter reads a log, and asked for each line afterwards."""

    def __init__(self, log: Path, thresholds: Thresholds) -> None:
        self.reader = Reader(log, listen=self._take)
        self._app = self.reader.app
        self._processor = EventProcessor(self._app, on_span=lambda _, __: None, thresholds=thresholds)
        self._eviction = Eviction(self._app)
        self._left_out = 0

    def _take(self, event: Event, ended: Ended | None) -> None:
        self._processor.take(event, ended)
        self._left_out += isinstance(event, events.SqlEnd)
        if ended is not None:
            self._eviction.after(ended)

    def line(self) -> bytes:
        """The line that stands for what is left out."""
        app = self._app
        numbers, streams = self._processor.aggregator.aggregate(), stream_history.encoded(app.streams.queries)
        left_out = app.left_out + self._left_out
        return msgspec.json.encode(events.Compacted(app.last, left_out, numbers.encoded(), streams))

    def rank(self, line: bytes) -> _Rank | None:
        """Where a line stands; None for one that is left out."""
        name = events.name_of(line)
        if name in _HEAD:
            return _Rank.HEAD
        if name == events.APPLICATION_START:
            return _Rank.START
        if name in (events.EXECUTOR_ADDED, "SparkListenerBlockManagerAdded"):
            return _Rank.HEAD if self._is_executor_present(line) else None
        try:
            return self._rank_of(events.event(line))
        except ValueError:
            return None

    def _rank_of(self, event: Event | None) -> _Rank | None:
        match event:
            case events.QueryStarted():
                run = self._app.streams.run_of(event.run)
                return _Rank.STREAMS if run is not None else None
            case events.JobStart():
                return _Rank.OPEN if self._is_job_open(event.id) else None
            case events.StageSubmitted():
                return _Rank.OPEN if self._is_stage_open(event.info.id, event.info.attempt) else None
            case events.SqlStart() | events.SqlPlanChanged() | events.DriverNumbers():
                return _Rank.OPEN if self._is_query_open(event.id) else None
        return None

    def _is_executor_present(self, line: bytes) -> bool:
        fields = _ANY.decode(line)
        number = fields.get("Executor ID") or fields.get("Block Manager ID", {}).get("Executor ID")
        executor = self._app.executors.get(number)
        return executor is None or executor.removed is None

    def _is_job_open(self, number: int) -> bool:
        job = self._app.jobs.get(number)
        return job is not None and job.completed is None

    def _is_stage_open(self, number: int, attempt: int) -> bool:
        stage = self._app.stages.get((number, attempt))
        return stage is not None and stage.info.completed is None

    def _is_query_open(self, number: int) -> bool:
        query = self._app.queries.get(number)
        return query is not None and query.ended is None
