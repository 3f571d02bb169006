"""A whole event log, read once from its beginning to where it ends now."""

from dataclasses import dataclass
from pathlib import Path

from app.errors import InputError
from app.eventlog import events
from app.eventlog.application import Application
from app.eventlog.follow import FOLDER, Follower, Troubles, application_of, parts


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
    """Reads a log, or the newest one of a folder of logs.

    Raises:
        InputError: There is none, or it is compressed in a way that is not read here.
    """
    log = find_log(path)
    follower, app, unreadable = Follower(log), Application(), 0
    app.id = application_of(log.name)  # until it says so itself
    for line in follower.new():
        try:
            event = events.event(line)
        except ValueError:
            unreadable += 1
            continue
        if event is not None:
            app.take(event)
    follower.close()
    if app.started is None and not app.jobs:
        raise InputError(f"{log} is no Spark event log: {unreadable} lines that are no events, and no application")
    return Reading(log, app, follower.troubles, unreadable, follower.is_finished)


def find_log(path: Path) -> Path:
    """The log that a path means: itself, or the newest log in it.

    Raises:
        InputError: There is none.
    """
    if path.is_dir() and not path.name.startswith(FOLDER):
        found = [child for child in path.iterdir() if not child.name.startswith(".") and parts(child)]
        if not found:
            raise InputError(f"no event log in {path}")
        return max(found, key=lambda child: child.stat().st_mtime)
    if not parts(path):
        raise InputError(f"no event log at {path}")
    return path
