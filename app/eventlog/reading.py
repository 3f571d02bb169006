"""Event logs, read line by line: by whoever follows one while it grows, and by whoever wants all of it at once."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.errors import InputError
from app.eventlog import events
from app.eventlog.application import Application
from app.eventlog.events import Event
from app.eventlog.follow import FOLDER, Follower, Troubles, application_of, parts
from app.eventlog.logs import newest_first

UNREADABLE: Final = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What a line may lead to that is no event, or one that no Spark wrote: the line is counted, and reading goes on."""


class Reader:
    """A log, and what is known from its lines so far.

    Attributes:
        follower: Gives the lines; whoever reads them closes it.
        app: What is known of the application; its id is that in the name of the log until a line tells it.
        events: How many lines held an event.
        unreadable_lines: How many held none, or a broken one.
    """

    def __init__(self, log: Path, *, take: Callable[[Event], object] | None = None) -> None:
        """Nothing is read yet; `take` gets each event in place of `Application.take`.

        Raises:
            InputError: The log is compressed in a way that is not read here; says what to set.
        """
        self.follower = Follower(log)
        self.app = Application(application_of(log.name))
        self.events = self.unreadable_lines = 0
        self._take_event = take or self.app.take

    def take(self, line: bytes) -> None:
        """Takes one line, whatever it holds."""
        try:
            event = events.event(line)
            if event is not None:
                self._take_event(event)
            self.events += 1
        except UNREADABLE:
            self.unreadable_lines += 1


@dataclass(frozen=True, slots=True)
class Reading:
    """What a log says, and what of it could not be read.

    Attributes:
        log: Its file, or its folder of rolled files.
        app: What is known of the application.
        troubles: Of its files.
        unreadable_lines: How many lines are no events.
        is_finished: Whether Spark has closed it; an application that was killed never does.
    """

    log: Path
    app: Application
    troubles: Troubles
    unreadable_lines: int
    is_finished: bool


def read(path: Path) -> Reading:
    """Reads a log, or the newest one of a folder of logs, from its beginning to where it ends now.

    Raises:
        InputError: There is none, or it is compressed in a way that is not read here.
    """
    log = find_log(path)
    reader = Reader(log)
    with closing(reader.follower) as follower:
        for line in follower.new():
            reader.take(line)
    app, unreadable = reader.app, reader.unreadable_lines
    if app.started is None and not app.jobs:
        raise InputError(f"{log} is no Spark event log: {unreadable} lines that are no events, and no application")
    return Reading(log, app, follower.troubles, unreadable, follower.is_finished)


def find_log(path: Path) -> Path:
    """The log that a path means: itself, or the log in it that was written last.

    Raises:
        InputError: There is none.
    """
    if path.is_dir() and not path.name.startswith(FOLDER):
        found = next((log.path for log in newest_first(path) if _begins_as_log(log.path)), None)
        if found is None:
            raise InputError(f"no event log in {path}")
        return found
    if not parts(path):
        raise InputError(f"no event log at {path}")
    return path


def _begins_as_log(path: Path) -> bool:
    """Whether the first line is an event, or cannot be unpacked here, which `Reader` explains."""
    try:
        with closing(Follower(path)) as follower:
            events.event(next(follower.new(), b""))
    except InputError:
        return True
    except ValueError:
        return False
    return True
