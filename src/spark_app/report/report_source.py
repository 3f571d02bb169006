"""The event log, and the spark-app run, that the argument of a command names."""

from dataclasses import dataclass, replace
from pathlib import Path

from spark_app.errors import InputError
from spark_app.eventlog.parse.locations import LogPath, is_remote, log_path
from spark_app.eventlog.parse.log_files import newest_first
from spark_app.eventlog.parse.log_tailer import FOLDER, parts
from spark_app.eventlog.reader import Reading, find_log
from spark_app.eventlog.reader import read as read_log
from spark_app.local_files import local_path
from spark_app.report import clusters, run_info, run_store
from spark_app.report.clusters import ClusterApplication
from spark_app.report.run_info import RunInfo
from spark_app.runs.run_record import RECORD
from spark_app.settings import Settings
from spark_app.telemetry.run_files import STARTED


@dataclass(frozen=True, slots=True)
class ReportSource:
    """An event log, and what is meant by it.

    Attributes:
        log: The log.
        run: The run in it that is meant; None for the whole application.
        on_cluster: What the cluster knows of the application; None where none was asked.
    """

    log: LogPath
    run: RunInfo | None
    on_cluster: ClusterApplication | None = None


def source(name: str, settings: Settings) -> ReportSource:
    """Resolves the id or the folder of a run, an event log, a folder of event logs, or the id of an application.

    An event log, a folder of them, or an application of a History Server or on Kubernetes may be named by a URL.

    Raises:
        InputError: Nothing has this name, or the event log of the run is missing; the message says where it was sought.
        MachineError: The driver for a URL, or the annex for its scheme, is not installed.
    """
    if (application := clusters.application(name)) is not None:
        return ReportSource(application.log, None, application)
    if "://" in name:
        return ReportSource(find_log(log_path(name)), None)
    path = Path(name)
    for folder in (path, settings.runs_path / name):
        if any((folder / file).is_file() for file in (RECORD, STARTED)):
            run = run_info.read(folder.resolve())
            return ReportSource(_log_of(run, settings), run)
    store = run_store.configured_store(settings) if run_store.RUN_ID.fullmatch(name) else None
    fetched = store.fetch_run(name) if store else None
    if fetched is not None:
        run = run_info.read(fetched)
        return ReportSource(_log_of(run, settings), run)
    for log in (path, settings.events_path / name, settings.events_path / f"{FOLDER}{name}"):
        if log.exists():
            return ReportSource(find_log(log), None)
    in_store = f" or {store.location}" if store else ""
    raise InputError(f"no run {name!r} in {settings.runs_path}{in_store}, and no event log at {path.absolute()}")


def read(selected: ReportSource) -> Reading:
    """The event log, as read, with what a cluster knows of the end of its driver.

    Raises:
        InputError: There is no log, or its compression codec is not supported.
    """
    reading, known = read_log(selected.log), selected.on_cluster
    if known is None:
        return reading
    reading.app.process_exit_code, reading.app.is_alive = known.exit_code, known.is_running
    return replace(reading, notes=known.notes)


def _log_of(run: RunInfo, settings: Settings) -> LogPath:
    location = run.record.event_log if run.record else None
    if location is None:
        return _log_with(run, settings.events_path)
    candidates: list[LogPath | None] = [local_path(location), settings.events_path / location.rpartition("/")[2]]
    log = next((path for path in candidates if path is not None and parts(path)), None)
    if log is None and is_remote(location):
        log = find_log(log_path(location))
    if log is None:
        raise InputError(f"the event log of {run.folder.name} is not at {location}: it was deleted or moved")
    return log


def _log_with(run: RunInfo, events: Path) -> LogPath:
    """The log that contains the trace id of a run that was killed before it recorded where its log is."""
    trace = (run.trace_id or "").encode()
    for log in newest_first(events) if events.is_dir() and trace else ():
        if any(isinstance(part.path, Path) and trace in part.path.read_bytes() for part in parts(log.path)):
            return log.path
    raise InputError(f"{run.folder.name} was killed, and no event log in {events} has its trace")
