"""One event log as a bridge follows it: read in slices, turned into spans and totals, what has ended forgotten."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from app.amounts import duration
from app.eventlog import python_functions, spans
from app.eventlog.application import Ended
from app.eventlog.bridge.forgetting import Forgetting
from app.eventlog.bridge.meter import Meter
from app.eventlog.diagnoses import diagnose
from app.eventlog.diagnoses.thresholds import Thresholds
from app.eventlog.events import Event
from app.eventlog.findings import Finding
from app.eventlog.logs import Log
from app.eventlog.model import Job, Query, StageAttempt
from app.eventlog.reading import Reader
from app.eventlog.spans import SparkSpan
from app.telemetry.spark_names import APPLICATION_SPAN

GLANCE: Final = 10
"""A file is no event log if so many of its first lines are no events."""
_STRIDE: Final = 64

Tell = Callable[[str, SparkSpan], None]


@dataclass(slots=True)
class Counts:
    """What was read of a log, or of many; `selfmetrics` exports each under the same name.

    Attributes:
        events, unreadable_lines: Lines that held an event, and lines that held none or a broken one.
        lost_files: Files that were gone or broken before they were read.
        tasks_suppressed: Tasks that ended well and at once, and were not among the slowest: counted, but no spans.
        spans_suppressed: Spans that are not sent, as their trace is not recorded (W3C's flag says so).
    """

    events: int = 0
    unreadable_lines: int = 0
    lost_files: int = 0
    tasks_suppressed: int = 0
    spans_suppressed: int = 0

    def add(self, other: "Counts") -> None:
        """Adds what was read of another."""
        self.events += other.events
        self.unreadable_lines += other.unreadable_lines
        self.lost_files += other.lost_files
        self.tasks_suppressed += other.tasks_suppressed
        self.spans_suppressed += other.spans_suppressed


class Followed:
    """A log with what is known of its application.

    Attributes:
        log: Where it is now.
        meter: The totals so far.
        is_behind: Whether the last slice left something to read.
        has_caught_up: Whether the log was read to its end once.
        recency: When it was last known to be written, in seconds since the epoch: the newest log is read first.
        current_at: When it was last read to its end, or first seen; monotonic seconds.
        grown_at: When it was last seen to grow, in seconds since the epoch.
        tasks, jobs: How many have ended.
    """

    def __init__(
        self,
        log: Log,
        *,
        tell: Tell,
        is_crowded: Callable[[], bool],
        thresholds: Thresholds,
        was_counted: bool,
    ) -> None:
        """Nothing is read yet.

        Args:
            log: Where it is.
            tell: Takes the name of the application and a span.
            is_crowded: Whether reading must stop for a moment.
            thresholds: Of the diagnoses.
            was_counted: Whether an earlier bridge has exported totals of this log.

        Raises:
            InputError: The log is compressed in a way that is not read here; says what to set.
        """
        self.log = log
        self._reader = Reader(log.path, take=self._take)
        self.app = self._reader.app
        self.meter = Meter(self.app)
        self.tasks = self.jobs = 0
        self._tasks_suppressed = self._spans_suppressed = 0
        self.is_behind, self.has_caught_up = True, False
        self.current_at = time.monotonic()
        self.recency = self.grown_at = log.modified() or time.time()  # a folder may still be empty
        self._forgetting = Forgetting(self.app)
        self._lines: Iterator[bytes] | None = None
        self._tell, self._is_crowded, self._thresholds = tell, is_crowded, thresholds
        self._was_counted = was_counted

    def read(self, seconds: float) -> None:
        """Reads what is new, for a time at most."""
        reader, was_current, until = self._reader, not self.is_behind, time.monotonic() + seconds
        before = reader.events
        self._lines = reader.follower.new() if self._lines is None else self._lines
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
        """The log is over: spans of what is still open are sent, marked incomplete."""
        self.close()
        self.meter.stop()
        found = tuple(diagnose.of_application(self.app, self._thresholds))
        self.meter.found(found)
        of_python = python_functions.of_the_end(self.app, self.log.path.parent)
        for span in chain(spans.of_the_end(self.app), of_python):
            is_application = span.kind is APPLICATION_SPAN
            self._send(replace(span, findings=found) if is_application else span)

    def close(self) -> None:
        """Ends the reading."""
        self._lines = None
        self._reader.follower.close()

    @property
    def is_finished(self) -> bool:
        """Whether the application has closed its log."""
        self._reader.follower.log = self.log.path
        return self._reader.follower.is_finished

    @property
    def counts(self) -> Counts:
        """What was read of it so far."""
        reader = self._reader
        lost = reader.follower.troubles.lost_files
        return Counts(reader.events, reader.unreadable_lines, lost, self._tasks_suppressed, self._spans_suppressed)

    @property
    def may_be_counted(self) -> bool:
        """Whether its totals may be exported: they are never lower than those that were exported earlier."""
        return self.has_caught_up or not self._was_counted

    @property
    def is_no_event_log(self) -> bool:
        """Whether the file is no event log at all, as far as its first lines show."""
        return not self.log.is_folder and not self._reader.events and self._reader.unreadable_lines >= GLANCE

    @property
    def unread_bytes(self) -> int:
        """Bytes on disk that were not read yet."""
        return self._reader.follower.unread_bytes

    @property
    def title(self) -> str:
        """The name and the id of the application, as far as they are known."""
        return f"{self.app.name or 'an application'} ({self.app.id})"

    @property
    def told(self) -> str:
        """What the application did, in a few words."""
        took = "" if self.app.began is None else f", {duration(self.app.last - self.app.began)}"
        unreadable = self._reader.unreadable_lines
        broken = f", {unreadable:,} unreadable lines" if unreadable else ""
        return f"{self.jobs:,} jobs, {self.tasks:,} tasks{took}{broken}"

    def _take(self, event: Event) -> None:
        ended = self.app.take(event)
        self.meter.take(event)
        if ended is not None:
            self._ended(ended)

    def _ended(self, ended: Ended) -> None:
        found = tuple(self._findings(ended))
        self.meter.found(found)
        of_python = python_functions.of_ended(self.app, ended, self.log.path.parent)
        for number, span in enumerate(chain(spans.of_ended(self.app, ended), of_python)):
            self._send(replace(span, findings=found) if found and not number else span)
        self.jobs += isinstance(ended, Job)
        if isinstance(ended, StageAttempt):
            self.tasks += len(ended.durations_ms)
            self._tasks_suppressed += len(ended.durations_ms) - len(ended.kept) - len(ended.slowest)
        self._forgetting.after(ended)

    def _findings(self, ended: Ended) -> list[Finding]:
        match ended:
            case StageAttempt():
                return diagnose.of_stage(self.app, ended, self._thresholds)
            case Query():
                return diagnose.of_query(self.app, ended, self._thresholds)
        return []

    def _send(self, span: SparkSpan) -> None:
        if span.place.is_sampled:
            self._tell(self.app.name or "unknown", span)
        else:
            self._spans_suppressed += 1
