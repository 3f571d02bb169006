"""The event logs of an observed command, and a line about each Spark launch without one."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from spark_app.errors import InputError
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.failed_parts import failure_of, remark
from spark_app.eventlog.model.host_load import HostLoad
from spark_app.eventlog.parse.log_files import EventLog, logs_in
from spark_app.eventlog.parse.log_tailer import LogTailer
from spark_app.eventlog.reader import Listener, Reading, head, read
from spark_app.formatting import quantity
from spark_app.local_files import local_path
from spark_app.observe import annotations
from spark_app.observe.event_log_injection import LAUNCH, ConnectSession, EventLogInjection, Launch, options_of
from spark_app.observe.processes import PROCESSES, has_context, launches_alive
from spark_app.observe.program_names import can_type, name_of

if TYPE_CHECKING:
    from spark_app.eventlog.bridge.one_shot import IsWanted, LogExport

SETTLE_SECONDS: Final = 20.0
PAUSE_SECONDS: Final = 0.1
ENABLED: Final = "spark.eventLog.enabled"
DIR: Final = "spark.eventLog.dir"
USUAL_DIR: Final = str(Path("/", "tmp", "spark-events"))
"""Spark's default of `spark.eventLog.dir`."""
TICK_SECONDS: Final = 1.0
"""How far the clock of a file system may be behind: Linux updates it every few milliseconds, others rarely."""
SUBMITTED: Final = "spark.app.submitTime"
"""When a process of Spark started, in milliseconds since the epoch."""
REMOTE: Final = "SPARK_REMOTE"
MAX_SESSIONS: Final = 5
"""Sessions of Spark Connect that are listed, the first ones."""
CONNECT: Final = "sc://"
"""The scheme of a Spark Connect server; `local` starts one in the program's own JVM, which is observed."""


@dataclass(frozen=True, slots=True)
class ObservedApplications:
    """The Spark applications of a command.

    Attributes:
        readings: Their event logs by start; each application knows whether it still runs, and its exit code.
        unseen: A line per launch without an event log, and per application without the samples that were asked for:
            which, and why.
    """

    readings: list[Reading]
    unseen: list[str]


class LaunchWatcher:
    """Watches the Spark launches of a command, and finds their event logs after its end.

    Attributes:
        jvms: Those that ran at the last look.
    """

    def __init__(self, injection: EventLogInjection) -> None:
        """Remembers the event logs that exist before the command starts."""
        self._injection = injection
        self._before = {log.key: log.inode for log in logs_in(injection.events).values()}
        self._began = time.time() - TICK_SECONDS
        self._with_context: set[str] = set()
        self.jvms: list[Path] = []
        self._started: dict[str, int | None] = {}

    def look(self) -> None:
        """Records which JVMs run, and which launches have a SparkContext."""
        alive = launches_alive(self._injection.token)
        self.jvms = [process for processes in alive.values() for process in processes]
        for launch, processes in alive.items():
            if launch not in self._with_context and any(map(has_context, processes)):
                self._with_context.add(launch)

    def newest_log(self) -> Path | None:
        """The event log of the application of the command that started last; None before any has."""
        logs = [log for log in self._logs(self._injection.launches()) if self._is_of_command(log)]
        newest = max(logs, key=lambda log: self._started.get(log.key) or 0, default=None)
        return newest.path if newest is not None and isinstance(newest.path, Path) else None

    def _is_of_command(self, log: EventLog) -> bool:
        """Whether the command started the application of a log, which its first lines tell, and when."""
        if log.key not in self._started:
            app = head(log.path)
            if app is None or app.started is None:
                return False  # its first lines are still to come
            is_own = app.properties.get(LAUNCH, "").startswith(self._injection.token)
            self._started[log.key] = app.started if is_own else None
        return self._started[log.key] is not None

    def seen(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        *,
        code: int | None = None,
        export: "LogExport | None" = None,
    ) -> ObservedApplications:
        """The applications of the command after it ended; those that have finished are exported while they are read.

        Args:
            command: The program and its arguments.
            variables: Its environment.
            code: Its exit code.
            export: Exports applications.
        """
        self._settle()
        launches = self._injection.launches()
        running = frozenset(launches_alive(self._injection.token))
        readings, problems = self._readings(launches, running, code, export, command)
        logged = {reading.app.properties.get(LAUNCH) for reading in readings}
        unlogged = [launch for launch in launches if launch.id not in logged and not launch.is_query]
        unseen = [self._unseen(launch) for launch in unlogged]
        remote = self._remote_sessions(readings)
        if not launches and not remote:
            unseen = [_without_spark(command, variables)]
        unseen += remote
        return ObservedApplications(readings, problems + unseen + self._write_stacks(readings))

    def annotate(self, readings: Sequence[Reading], load: HostLoad | None) -> None:
        """Adds the load of this machine, and what the programs have logged, to applications and their logs."""
        for reading in readings:
            reading.app.host_load = load
        for launch in {reading.app.properties.get(LAUNCH, "") for reading in readings}:
            records = annotations.records(self._injection.python_log(launch))
            sessions = [reading for reading in readings if reading.app.properties.get(LAUNCH, "") == launch]
            # A program may have one session after another; what it logs before the first belongs to that.
            starts = [0, *(reading.app.started or 0 for reading in sessions[1:]), sys.maxsize]
            for reading, (start, end) in zip(sessions, pairwise(starts), strict=True):
                own = [record for record in records if start <= record.time < end]
                annotations.annotate(reading, own, self._injection.events)

    def _write_stacks(self, readings: Sequence[Reading]) -> list[str]:
        """Writes the samples of stacks beside the logs, if asked for; returns a line for each that is missing."""
        if self._injection.profile is None:
            return []
        deadline = time.monotonic() + SETTLE_SECONDS
        while launches_alive(self._injection.token) and time.monotonic() < deadline:  # a JVM writes them when it ends
            time.sleep(PAUSE_SECONDS)
        by_launch: dict[str, list[Reading]] = {}
        for reading in readings:
            by_launch.setdefault(reading.app.properties.get(LAUNCH, ""), []).append(reading)
        try:
            return self._injection.profile.write(by_launch)
        except (OSError, ValueError, LookupError) as error:
            return [f"the samples of stacks cannot be read: {type(error).__name__}: {error}"]

    def _remote_sessions(self, readings: Sequence[Reading]) -> list[str]:
        """A line for each session of Spark Connect on another server than that of an application of the command."""
        known = {key.id for reading in readings for key in reading.app.connect.sessions}
        sessions = [each for each in self._injection.connect_sessions() if each.session not in known]
        more = len(sessions) - MAX_SESSIONS
        return [*map(_remote, sessions[:MAX_SESSIONS]), *([f"{quantity(more, 'more session')}"] if more > 0 else [])]

    def _unseen(self, launch: Launch) -> str:
        error = annotations.last_error(self._injection.python_log(launch.id))
        return _unseen(launch, had_context=launch.id in self._with_context, error=error)

    def _settle(self) -> None:
        """Waits until JVMs have closed their logs: they may outlive the command by seconds."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while launches_alive(self._injection.token) and not self._is_closed() and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)

    def _readings(
        self,
        launches: Sequence[Launch],
        running: frozenset[str],
        code: int | None,
        export: "LogExport | None",
        command: Sequence[str],
    ) -> tuple[list[Reading], list[str]]:
        readings, problems, logs = [], [], list(self._logs(launches))
        for log in logs:
            is_wanted = partial(self._is_exported, log, running)
            known = code if len(logs) == 1 else None
            try:
                listen = partial(_listener, command=command, code=known, export=export, is_wanted=is_wanted)
                reading = read(log.path, make_listener=listen)
            except (InputError, OSError) as error:
                problems.append(str(error))
                continue
            except Exception as error:  # noqa: BLE001 - other applications have their reports
                problems.append(remark(f"reader of {log.path}", failure_of(error)))
                continue
            if reading.app.properties.get(LAUNCH, "").startswith(self._injection.token):
                readings.append(reading)
                problems += _remarks(reading)
        readings.sort(key=lambda reading: reading.app.started or 0)
        _note_ends([reading.app for reading in readings], running, code)
        return readings, problems

    def _is_exported(self, log: EventLog, running: frozenset[str], app: Application) -> bool:
        """Whether the command started an application, and the application has finished."""
        launch = app.properties.get(LAUNCH, "")
        return launch.startswith(self._injection.token) and (launch not in running or _is_finished(log))

    def _logs(self, launches: Sequence[Launch]) -> Iterator[EventLog]:
        """Candidate logs: new ones in the injected folder, and in the folders that launches configure."""
        yield from self._new()
        for folder in {local for launch in launches if (local := _own_folder(launch)) is not None}:
            if folder != self._injection.events and folder.is_dir():
                yield from (log for log in logs_in(folder).values() if log.modified() >= self._began)

    def _new(self) -> list[EventLog]:
        """Logs created since the command started; an older one may have lost its `.inprogress` suffix meanwhile."""
        return [log for log in logs_in(self._injection.events).values() if self._before.get(log.key) != log.inode]

    def _is_closed(self) -> bool:
        logs = list(self._logs(self._injection.launches()))
        return bool(logs) and all(map(_is_finished, logs))


def _is_finished(log: EventLog) -> bool:
    try:
        return LogTailer(log.path).is_finished
    except InputError:  # do not wait for a log that cannot be read
        return True


def _listener(
    log: Path,
    app: Application,
    *,
    command: Sequence[str],
    code: int | None,
    export: "LogExport | None",
    is_wanted: "IsWanted",
) -> Listener | None:
    """Notes the program, and the exit code of the only application, before spans are created; the listener for them."""
    app.program, app.can_type, app.process_exit_code = name_of(command), can_type(command), code
    return export.listener(log, app, is_wanted=is_wanted) if export else None


def _note_ends(apps: Sequence[Application], running: frozenset[str], code: int | None) -> None:
    """Notes which applications still run, and the exit code of the command with the application that it belongs to.

    That is the only one, or the last one if its process started after the applications of all other processes had
    ended; of others the exit code is not known.
    """
    for app in apps:
        app.is_alive = app.properties.get(LAUNCH) in running if PROCESSES.is_dir() else None
        app.process_exit_code = None
    if not apps:
        return
    *earlier, last = apps
    has_ended = last.ended is not None or not last.is_alive
    if has_ended and not any(_overlaps(app, last) for app in earlier):
        last.process_exit_code = code


def _overlaps(app: Application, last: Application) -> bool:
    """Whether an application had not ended when another session began, or the process of another one."""
    is_same = app.properties.get(LAUNCH) == last.properties.get(LAUNCH)
    submitted = last.properties.get(SUBMITTED, "")
    began = int(submitted) if submitted.isdecimal() and not is_same else last.started or 0
    return (app.last if app.ended is None else app.ended) > began


def _remarks(reading: Reading) -> Iterator[str]:
    yield from (f"{reading.log}: {remark}" for remark in reading.remarks)


def _own_folder(launch: Launch) -> Path | None:
    """The local folder that a launch configures for its event log."""
    properties = launch.properties()
    location = properties.get(DIR, USUAL_DIR if ENABLED in properties else "")
    return local_path(location) if location else None


def _unseen(launch: Launch, *, had_context: bool, error: str | None = None) -> str:
    """Why a launch has no event log; `error` is the last one of its driver."""
    properties = launch.properties()
    name = properties.get("spark.app.name", "a Spark application")
    server = _server([dict(options_of(launch.arguments)).get("--remote"), properties.get("spark.remote")])
    location = properties.get(DIR, "")
    if launch.is_cluster:
        why = "deploy mode is cluster: its driver and its event log are on another machine"
    elif server:
        why = _connect(server)
    elif properties.get(ENABLED, "true").lower() == "false":
        why = f"it disables its event log ({ENABLED}=false)"
    elif local_path(location) is None:
        why = f"its {DIR} is {_address(location)}: copy the log to this machine for `spark-app report`"
    elif ENABLED in properties or DIR in properties:
        why = f"it sets {ENABLED} or {DIR}, and {_own_folder(launch) or 'that folder'} has no event log of it"
    elif error is not None:
        why = f"Spark did not start: {error}"
    elif had_context:
        why = "its session wrote no event log to the folder of spark-app: its code sets spark.eventLog.*"
    else:
        why = "Spark started without a session, or did not start (it says why above), or its code sets spark.eventLog.*"
    return f"{name}: {why}"


def _without_spark(command: Sequence[str], variables: Mapping[str, str]) -> str:
    """Why no launch was seen."""
    remotes = [value for option, value in options_of(command) if option == "--remote"]
    server = _server([*remotes, variables.get(REMOTE)])
    if server:
        return _connect(server)
    return "no Spark was started on this machine (Spark Connect and Java without Spark's scripts cannot be observed)"


def _server(candidates: Sequence[str | None]) -> str | None:
    """The first Spark Connect server among some addresses."""
    return next((server for server in candidates if server and server.startswith(CONNECT)), None)


def _connect(server: str) -> str:
    return f"Spark Connect: the application and its event log are on the server {_address(server)}"


def _remote(session: ConnectSession) -> str:
    """What helps to see a session of a server."""
    user = f" of {session.user}" if session.user else ""
    return (
        f"Spark Connect: session {session.session}{user} is in the event log of the server {CONNECT}{session.server}: "
        "`spark-app report` on that log shows its operations"
    )


def _address(address: str) -> str:
    """An address without credentials and parameters."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path.partition(';')[0]}" if parts.scheme else parts.path
