"""Processes one event log for a bridge: reads it in slices, makes spans and totals, and evicts what has ended."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from spark_app.errors import InputError
from spark_app.eventlog.bridge.event_processor import EventProcessor, OnSpan
from spark_app.eventlog.bridge.eviction import Eviction
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.labels import NO_LABELS, LabelSources
from spark_app.eventlog.model.application import Ended
from spark_app.eventlog.parse.events import Event
from spark_app.eventlog.parse.log_files import EventLog
from spark_app.eventlog.reader import Reader, remarks
from spark_app.formatting import duration, quantity

FIRST_LINES: Final = 10
"""A file is not an event log if none of this many first lines is an event."""
_STRIDE: Final = 64


@dataclass(slots=True)
class ReadCounts:
    """What a bridge has read of one log, or of many; `self_metrics` serves each count as a metric.

    Attributes:
        events, unreadable_lines: Lines with an event, and lines that could not be parsed.
        failed_events: Events that a bug of the bridge kept from being processed.
        lost_files: Rolled files that were deleted or damaged before the bridge read them.
        tasks_suppressed: Ordinary tasks, which are counted and get no span.
        spans_suppressed: Spans of traces that are not sampled.
    """

    events: int = 0
    unreadable_lines: int = 0
    failed_events: int = 0
    lost_files: int = 0
    tasks_suppressed: int = 0
    spans_suppressed: int = 0

    def add(self, counts: "ReadCounts") -> None:
        """Adds the counts of another log."""
        self.events += counts.events
        self.unreadable_lines += counts.unreadable_lines
        self.failed_events += counts.failed_events
        self.lost_files += counts.lost_files
        self.tasks_suppressed += counts.tasks_suppressed
        self.spans_suppressed += counts.spans_suppressed


class LogProcessor:
    """An event log and the model of its application.

    Attributes:
        log: The log at its current path.
        aggregator: The totals so far.
        is_behind: Whether the last slice left lines to read.
        has_caught_up: Whether the bridge has once read the log to its end.
        recency: The last known write, in seconds since the epoch: the bridge reads the newest log first.
        current_at: When the bridge last read the log to its end, or first saw it; monotonic seconds.
        grown_at: When the bridge last saw the log grow, in seconds since the epoch.
    """

    def __init__(
        self,
        log: EventLog,
        *,
        on_span: OnSpan,
        is_crowded: Callable[[], bool],
        thresholds: Thresholds,
        was_counted: bool,
        labels: LabelSources = NO_LABELS,
    ) -> None:
        """Opens the log, and reads nothing yet.

        Args:
            log: The log.
            on_span: Takes the name of the application, with its labels, and a span.
            is_crowded: Whether reading must stop for a moment.
            thresholds: Thresholds of the diagnoses.
            was_counted: Whether an earlier bridge has exported totals of this log.
            labels: Where the labels of applications are.

        Raises:
            InputError: The compression codec is not supported; the message names the setting.
        """
        self.log = log
        self._reader = Reader(log.path, listen=self._take)
        self.app = self._reader.app
        self._processor = EventProcessor(self.app, on_span=on_span, thresholds=thresholds, labels=labels)
        self.aggregator = self._processor.aggregator
        self.is_behind, self.has_caught_up = True, False
        self.current_at = time.monotonic()
        self.recency = self.grown_at = log.modified() or time.time()  # a folder may still be empty
        self._eviction = Eviction(self.app)
        self._lines: Iterator[bytes] | None = None
        self._is_crowded, self._was_counted = is_crowded, was_counted

    def read(self, seconds: float) -> None:
        """Reads new lines, for at most this time.

        Raises:
            OSError: A file of the log cannot be read.
            InputError: The storage of the log refuses, or does not answer; the next call goes on at the same line.
        """
        try:
            self._read(seconds)
        except InputError:
            self._lines = None
            raise

    def _read(self, seconds: float) -> None:
        reader, was_current, until = self._reader, not self.is_behind, time.monotonic() + seconds
        before = reader.events
        self._lines = reader.tailer.new() if self._lines is None else self._lines
        for number, line in enumerate(self._lines):
            reader.take(line)
            if not number % _STRIDE and (time.monotonic() > until or self._is_crowded()):
                self.is_behind = True
                break
        else:
            self._lines, self.is_behind, self.has_caught_up = None, False, True
            self.current_at, self.recency = time.monotonic(), time.time()
        if was_current and reader.events > before:
            self.grown_at = time.time()

    def end(self) -> None:
        """Sends the spans of everything that is still open, marked incomplete, and closes the log."""
        self.close()
        try:
            self._processor.end()
        except Exception as error:  # noqa: BLE001 - one log must not end the bridge, which says so
            self._reader.failed("the end", error)

    def close(self) -> None:
        """Closes the files of the log."""
        self._lines = None
        self._reader.tailer.close()

    @property
    def is_finished(self) -> bool:
        """Whether the application has closed its log."""
        self._reader.tailer.log = self.log.path
        return self._reader.tailer.is_finished

    @property
    def counts(self) -> ReadCounts:
        """The counts of the log so far."""
        reader, read_errors = self._reader, self._reader.read_errors
        lost = read_errors.lost_files + read_errors.damaged_files
        suppressed = self._processor.tasks_suppressed, self._processor.spans_suppressed
        return ReadCounts(reader.events, reader.unreadable_lines, read_errors.failed_events, lost, *suppressed)

    @property
    def failure(self) -> str | None:
        """The first bug that kept an event from being processed."""
        return self._reader.read_errors.failure

    @property
    def remarks(self) -> list[str]:
        """What is said of the log at its end: a sentence for each."""
        return list(remarks(self.app, self._reader.read_errors, self._reader.unreadable_lines))

    @property
    def may_be_counted(self) -> bool:
        """Whether its totals may be exported: they must not be lower than those that an earlier bridge exported."""
        return self.has_caught_up or not self._was_counted

    @property
    def is_no_event_log(self) -> bool:
        """Whether the first lines of the file show that it is not an event log."""
        return not self.log.is_folder and not self._reader.events and self._reader.unreadable_lines >= FIRST_LINES

    @property
    def unread_bytes(self) -> int:
        """Bytes on disk that the bridge has not read yet."""
        return self._reader.tailer.unread_bytes

    @property
    def title(self) -> str:
        """The name and the id of the application, if known."""
        return f"{self.app.name or 'an application'} ({self.app.id})"

    @property
    def summary(self) -> str:
        """The jobs, the tasks and the duration of the application, for a message."""
        took = "" if self.app.began is None else f", {duration(self.app.last - self.app.began)}"
        return f"{quantity(self._processor.jobs, 'job')}, {quantity(self._processor.tasks, 'task')}{took}"

    def _take(self, event: Event, ended: Ended | None) -> None:
        self._processor.take(event, ended)
        if ended is not None:
            self._eviction.after(ended)
