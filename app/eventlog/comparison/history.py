"""Where the records of applications lie: a folder of theirs for each name, a file of JSON for each application."""

import hashlib
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from app.errors import InputError
from app.eventlog import events
from app.eventlog.comparison import summary as summaries
from app.eventlog.comparison.compare import Comparison, compare
from app.eventlog.comparison.record import VERSION, Summary
from app.eventlog.follow import IN_PROGRESS, Follower
from app.eventlog.logs import newest_first
from app.eventlog.reading import read
from app.folders import put

_START: Final = b"SparkListenerApplicationStart"
KEPT: Final = 100
"""How many records of one name are kept; older records are deleted."""
COMPARED: Final = 5
"""How many good records a new application is compared with. Ours: a week's working days."""


def beside_last_good(folder: Path, now: Summary) -> Comparison | None:
    """Compares an application with the last good records of its name; None where no such record is kept."""
    earlier = last_good(folder, now)
    return compare(earlier, now) if earlier else None


def keep(folder: Path, summary: Summary) -> Path:
    """Writes the record of an application, whole or not at all; returns its file.

    Raises:
        OSError: It cannot be written.
    """
    own = _folder(folder, summary.application)
    file = own / f"{summary.started:013}-{_plain(summary.id)}.json"
    put(file, msgspec.json.encode(summary) + b"\n")
    for old in sorted(own.glob("*.json"))[:-KEPT]:
        old.unlink(missing_ok=True)
    return file


def load(file: Path) -> Summary:
    """The record in a file.

    Raises:
        InputError: The file holds no record, or a record of another version.
    """
    try:
        found = msgspec.json.decode(file.read_bytes(), type=Summary)
    except (OSError, ValueError) as error:
        raise InputError(f"{file} is no record of an application: {error}") from error
    if found.version != VERSION:
        raise InputError(f"{file} is a record of version {found.version}; this program reads version {VERSION}")
    return found


def last_good(folder: Path, now: Summary) -> list[Summary]:
    """Records of the last `COMPARED` applications of the same name that began earlier and ended well, newest first."""
    found: list[Summary] = []
    for summary in _newest_first(_folder(folder, now.application)):
        if is_earlier_and_good(summary, now):
            found.append(summary)
        if len(found) == COMPARED:
            break
    return found


def is_earlier_and_good(summary: Summary, now: Summary) -> bool:
    """Whether an earlier application may serve as a baseline of `now`: it had the same work and ended well."""
    is_same = (summary.application, summary.workload) == (now.application, now.workload)
    is_good = summary.outcome == "succeeded" and summary.id != now.id
    return is_same and is_good and summary.started < now.started


def good_beside(log: Path, now: Summary) -> list[Summary]:
    """The same from the event logs beside the log of an application; of another's log only the name is read."""
    own, found = log.name.removesuffix(IN_PROGRESS), list[Summary]()
    for other in newest_first(log.parent):
        if other.key != own and _name_of(other.path) == now.application:
            summary = summaries.of(read(other.path))
            found += [summary] if is_earlier_and_good(summary, now) else []
        if len(found) == COMPARED:
            break
    return found


def _name_of(log: Path) -> str | None:
    """The name of the application of a log; None where it cannot be read."""
    try:
        with closing(Follower(log)) as follower:
            told = (event for line in follower.new() if _START in line and (event := events.event(line)))
            return next((event.name for event in told if isinstance(event, events.ApplicationStart)), None)
    except (InputError, OSError, ValueError):
        return None


def _newest_first(folder: Path) -> Iterator[Summary]:
    """The records that can be read; a broken record, or one of another version, is skipped."""
    for file in sorted(folder.glob("*.json"), reverse=True):
        try:
            yield load(file)
        except InputError:
            continue


def _folder(folder: Path, application: str) -> Path:
    """The folder of a name: the name made safe and cut, and its hash, since names may hold anything."""
    return folder / f"{_plain(application)[:60]}-{hashlib.sha256(application.encode()).hexdigest()[:8]}"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "unnamed"
