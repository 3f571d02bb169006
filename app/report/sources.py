"""What a person means by a run or an event log: which log is read, and which run of ours it is about."""

from dataclasses import dataclass
from pathlib import Path

from app.errors import InputError
from app.eventlog.follow import FOLDER, parts
from app.eventlog.logs import Log, newest_first
from app.eventlog.reading import find_log
from app.folders import local
from app.records import RECORD
from app.report import runs
from app.report.runs import RunInfo
from app.settings import Settings
from app.telemetry.files import STARTED


@dataclass(frozen=True, slots=True)
class Source:
    """A log, and the run whose part of it is meant; all of it where there is none."""

    log: Path
    run: RunInfo | None


def source(name: str, settings: Settings) -> Source:
    """Finds what is meant: the id of a run, its folder, a log, a folder of logs, or the id of an application.

    Raises:
        InputError: There is nothing of this name, or the log of the run is gone; says where it was looked for.
    """
    path = Path(name)
    for folder in (path, settings.runs_path / name):
        if any((folder / file).is_file() for file in (RECORD, STARTED)):
            run = runs.of(folder.resolve())
            return Source(_log_of(run, settings), run)
    for log in (path, settings.events_path / name, settings.events_path / f"{FOLDER}{name}"):
        if log.exists():
            return Source(find_log(log), None)
    raise InputError(f"there is neither a run {name!r} in {settings.runs_path} nor an event log at {path.absolute()}")


def _log_of(run: RunInfo, settings: Settings) -> Path:
    told = run.record.event_log if run.record else None
    if told is None:
        return _log_with(run, settings.events_path)
    places = [local(told), settings.events_path / told.rpartition("/")[2]]
    found = next((place for place in places if place is not None and parts(place)), None)
    if found is None:
        raise InputError(f"the event log of {run.folder.name} is not at {told}: it was deleted, or lies elsewhere")
    return found


def _log_with(run: RunInfo, events: Path) -> Path:
    """The log that holds the trace of a run that was killed before it could say where its log is."""
    trace, found = (run.trace_id or "").encode(), list[Log]()
    if events.is_dir() and trace:
        found = newest_first(events)
    for log in found:
        if any(trace in part.path.read_bytes() for part in parts(log.path)):
            return log.path
    raise InputError(f"{run.folder.name} was killed, and no event log in {events} tells of it")
