"""Reads event logs line by line, while they grow or all at once."""

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol

from spark_app.errors import InputError
from spark_app.eventlog.model.application import Application, Ended
from spark_app.eventlog.model.failed_parts import place_of
from spark_app.eventlog.model.releases import release
from spark_app.eventlog.parse import events
from spark_app.eventlog.parse.events import Event
from spark_app.eventlog.parse.locations import LogPath
from spark_app.eventlog.parse.log_files import newest_first
from spark_app.eventlog.parse.log_tailer import FOLDER, LogTailer, ReadErrors, application_of, parts
from spark_app.eventlog.parse.repair import repaired
from spark_app.eventlog.parse.repeated import RepeatedEvents
from spark_app.formatting import duration, quantity

OLDEST: Final = (3, 5)
NEWEST: Final = (4, 3)
"""The versions of Spark whose logs the tests replay."""
MAX_HEAD: Final = 1000
"""Lines at the beginning of a log in which its application starts; Spark writes fewer than ten."""
_HEAD: Final = tuple(name.encode() for name in (events.LOG_START, events.ENVIRONMENT_UPDATE, events.APPLICATION_START))
_STARTS: Final = (events.LogStart, events.ApplicationStart)

MAX_PATHS: Final = 5
"""Kinds of values that a remark names."""
Listen = Callable[[Event, Ended | None], object]


class Listener(Protocol):
    """A second consumer of the one decoding of a log; it raises nothing."""

    def take(self, event: Event, ended: Ended | None) -> None:
        """Takes an event, and what ended with it, after the application took it."""

    def end(self) -> None:
        """Takes the end of the log."""


MakeListener = Callable[[LogPath, Application], Listener | None]


class Reader:
    """A log, and the application by its lines so far.

    Attributes:
        tailer: The source of the lines; its consumer closes it.
        app: The application; until a line has its id, the id is that in the name of the log.
        events: The number of lines with an event.
        unreadable_lines: The number of lines that could not be parsed.
        read_errors: What else was not read of the log, or could not be processed.
        listen: Takes each event, and what ended with it, after the application took it.
    """

    def __init__(self, log: LogPath, *, listen: Listen | None = None) -> None:
        """Starts at the first line.

        Args:
            log: The file, or the folder of rolled files.
            listen: Takes each event, and what ended with it, after the application took it.

        Raises:
            InputError: The compression codec is not supported; the message names the setting.
        """
        self.tailer = LogTailer(log)
        self.app = Application(application_of(log.name))
        self.events = self.unreadable_lines = 0
        self.read_errors = self.tailer.read_errors
        self.listen = listen
        self._repeated, self._is_over = RepeatedEvents(), False

    def take(self, line: bytes) -> None:
        """Takes one line; raises nothing. An event that the log has twice counts once, wherever it stands."""
        try:
            event = events.event(line)
        except ValueError:
            try:
                event = self._repaired(line)
            except ValueError:
                self.unreadable_lines += 1
                return
        self.events += 1
        if event is None:
            return
        if type(event) in _STARTS and self.app.has_begun:
            self._is_over = True
        if self._is_over:
            self.read_errors.later_events += 1
        elif self._repeated.has(event, line):
            self.read_errors.repeated_events += 1
        else:
            self._take(event)

    def _repaired(self, line: bytes) -> Event | None:
        """The event of a line that cannot be read as it is."""
        positive = events.without_negative_metrics(line)
        if positive != line:
            with suppress(ValueError):
                event = events.event(positive)
                self.app.clock.has_gone_back(0)
                return event
        found = repaired(positive)
        self.read_errors.left_out.update(found.left_out)
        self.read_errors.lines_of_other_encoding += found.has_replaced_bytes
        return found.event

    def _take(self, event: Event) -> None:
        try:
            ended = self.app.apply(event)
            if self.listen is not None:
                self.listen(event, ended)
        except Exception as error:  # noqa: BLE001 - what the other lines say is still worth reading; `remarks` reports it
            self.failed(type(event).__name__, error)

    def failed(self, what: str, error: Exception) -> None:
        """Counts a bug: an exception of our own code about an event, or about the end of the log."""
        failure = f"{what}: {type(error).__name__}: {error} at {place_of(error)}"
        self.read_errors.failed_events += 1
        self.read_errors.failure = self.read_errors.failure or failure


def remarks(app: Application, read_errors: ReadErrors, unreadable_lines: int) -> Iterator[str]:
    """What a reader of numbers from a log must know about the log: a sentence for each."""
    if app.spark_version is not None and not is_known(app.spark_version):
        known = f"Spark {'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}"
        yield f"Spark {app.spark_version} wrote the log, not {known}: numbers may be missing or wrong."
    if read_errors.later_events:
        what = "another application, or the same one once more"
        yield f"The log contains {what}: {quantity(read_errors.later_events, 'event')} of it are left out."
    if app.clock.corrections:
        times = quantity(app.clock.corrections, "time")
        most = f" by up to {duration(app.clock.largest_ms)}" if app.clock.largest_ms else ""
        yield f"The clock of the driver was set back{most}: corrected {times}, so durations around it are not exact."
    if app.lost_stage_starts:
        stages = quantity(app.lost_stage_starts, "stage")
        yield f"The log lacks the start of {stages}: each is taken to begin with its first task."
    if read_errors.failed_events:
        failed = quantity(read_errors.failed_events, "event")
        yield f"A bug of spark-app: {failed} could not be processed, and numbers are wrong ({read_errors.failure})."
    yield from app.failed_parts.remarks
    yield from _unread(read_errors, unreadable_lines)


def _unread(read_errors: ReadErrors, unreadable_lines: int) -> Iterator[str]:
    if unreadable_lines:
        yield f"Skipped {quantity(unreadable_lines, 'unreadable line')} of the log."
    if read_errors.repeated_events:
        yield f"Skipped {quantity(read_errors.repeated_events, 'event')} that the log has more than once."
    if read_errors.left_out:
        paths = ", ".join(sorted(read_errors.left_out)[:MAX_PATHS])
        more = ", ..." if len(read_errors.left_out) > MAX_PATHS else ""
        values = quantity(sum(read_errors.left_out.values()), "value")
        yield f"Left out {values} of the log that cannot be read, and are unknown: {paths}{more}."
    if read_errors.lines_of_other_encoding:
        lines = quantity(read_errors.lines_of_other_encoding, "line")
        yield f"Replaced bytes that are no UTF-8 in {lines} of the log."
    if read_errors.torn_lines:
        yield f"Skipped {quantity(read_errors.torn_lines, 'incomplete line')} of the log."
    if read_errors.lost_files:
        lost = quantity(read_errors.lost_files, "missing or broken file")
        yield f"Skipped {lost} of the log: all numbers are too low."
    if read_errors.damaged_files:
        damaged = quantity(read_errors.damaged_files, "file")
        yield f"Skipped the rest of {damaged} of the log, which cannot be unpacked: all numbers are too low."


def is_known(version: str) -> bool:
    """Whether a version of Spark is one whose logs this program knows."""
    number = release(version)
    return number is not None and OLDEST <= number <= NEWEST


@dataclass(frozen=True, slots=True)
class Reading:
    """The application of a log, and the problems while reading it.

    Attributes:
        log: Its file, or its folder of rolled files.
        app: The application.
        read_errors: Problems with its files.
        unreadable_lines: The number of lines that could not be parsed.
        is_finished: Whether Spark has closed it; an application that was killed never does.
        forgotten: How many SQL executions, and jobs without one, the application does not have any more, since it was
            followed in bounded memory.
        notes: What others say of the application, and its log does not: a sentence for each.
    """

    log: LogPath
    app: Application
    read_errors: ReadErrors
    unreadable_lines: int
    is_finished: bool
    forgotten: int = 0
    notes: tuple[str, ...] = ()

    @property
    def remarks(self) -> list[str]:
        """What a reader of numbers from the log must know about it: a sentence for each."""
        left_out = self.forgotten + self.app.left_out
        bounded = (
            "Streaming queries are shown over their whole time, other work only as far as it is recent: "
            f"{quantity(left_out, 'older SQL execution')} and their jobs are left out."
        )
        return [
            *self.notes,
            *([bounded] if left_out else []),
            *remarks(self.app, self.read_errors, self.unreadable_lines),
        ]


def read(path: LogPath, *, make_listener: MakeListener | None = None) -> Reading:
    """Reads a log, or the newest log of a folder, once and to its current end.

    Args:
        path: The log, or a folder of logs.
        make_listener: Makes a second consumer of the events, of the log and its application.

    Raises:
        InputError: There is no log, or its compression codec is not supported.
    """
    log = find_log(path)
    reader = Reader(log)
    listener = make_listener(log, reader.app) if make_listener else None
    reader.listen = listener.take if listener else None
    with closing(reader.tailer) as tailer:
        for line in tailer.new():
            reader.take(line)
    app, unreadable = reader.app, reader.unreadable_lines
    if app.started is None and not app.jobs:
        raise InputError(f"{log} {_no_log(tailer.read_errors, unreadable)}")
    if listener is not None:
        listener.end()
    return Reading(log, app, tailer.read_errors, unreadable, tailer.is_finished)


def head(log: LogPath) -> Application | None:
    """The application of a log as its first lines tell it, up to its start; None if they cannot be read."""
    app = Application(application_of(log.name))
    try:
        with closing(LogTailer(log)) as tailer:
            first = islice(tailer.new(), MAX_HEAD)
            for event in map(events.event, (line for line in first if any(name in line for name in _HEAD))):
                if event is not None:
                    app.apply(event)
                if app.started is not None:
                    break
    except (InputError, OSError, ValueError):
        return None
    return app


def _no_log(read_errors: ReadErrors, unreadable_lines: int) -> str:
    """Why a file without an application and a job was not read."""
    if read_errors.damaged_files:
        return "cannot be unpacked: it is damaged, incomplete, or neither zstd nor gzip"
    nothing = f"it has neither an application nor a job, and {quantity(unreadable_lines, 'line')} cannot be parsed"
    return f"is not a Spark event log: {nothing}"


def find_log(path: LogPath) -> LogPath:
    """The log at a path, or the newest log in a folder.

    Raises:
        InputError: There is no log.
    """
    if path.is_dir() and not path.name.startswith(FOLDER) and not parts(path):
        newest = next((log.path for log in newest_first(path) if begins_as_log(log.path)), None)
        if newest is None:
            raise InputError(f"no event log in {path}")
        return newest
    if not parts(path):
        raise InputError(f"no event log at {path}")
    return path


def begins_as_log(path: LogPath) -> bool:
    """Whether the first line is an event, or has an unsupported codec, which `Reader` reports."""
    try:
        with closing(LogTailer(path)) as tailer:
            events.event(next(tailer.new(), b""))
    except InputError:
        return True
    except ValueError:
        return False
    return True
