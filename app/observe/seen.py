"""What an observed command has left to read, and one line on each start of Spark that left nothing."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from app.errors import InputError
from app.eventlog.follow import Follower
from app.eventlog.logs import Log, logs_in
from app.eventlog.reading import Reading, read
from app.folders import local
from app.observe.launches import LAUNCH, Launch, Switch, options_of
from app.observe.processes import has_context, launches_alive

SETTLE_SECONDS: Final = 20.0
PAUSE_SECONDS: Final = 0.1
ENABLED: Final = "spark.eventLog.enabled"
DIR: Final = "spark.eventLog.dir"
USUAL_DIR: Final = str(Path("/", "tmp", "spark-events"))
"""Where Spark puts event logs by default: `spark.eventLog.dir`."""
TICK_SECONDS: Final = 1.0
"""How far the clock of a file system may be behind ours: Linux sets it some hundred times a second, others rarely."""
REMOTE: Final = "SPARK_REMOTE"
CONNECT: Final = "sc://"
"""How the address of a Spark Connect server begins; `local` is one in the program's own JVM, which is seen."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a command's applications.

    Attributes:
        readings: Their event logs, in the order in which they started.
        running: The launches whose JVM was still there at the end.
        unseen: What could not be seen, and why: a line each.
    """

    readings: list[Reading]
    running: frozenset[str]
    unseen: list[str]

    def is_running(self, reading: Reading) -> bool:
        """Whether an application goes on without the command that started it."""
        return not reading.is_finished and reading.app.properties.get(LAUNCH) in self.running


class Watch:
    """Looks at what a command does with Spark while it runs, and after."""

    def __init__(self, switch: Switch) -> None:
        """Nothing has happened yet."""
        self._switch = switch
        self._before = {log.key: log.inode for log in logs_in(switch.events).values()}
        self._began = time.time() - TICK_SECONDS
        self._with_context: set[str] = set()

    def look(self) -> None:
        """Notes which launches have a SparkContext now."""
        for launch, processes in launches_alive(self._switch.token).items():
            if launch not in self._with_context and any(map(has_context, processes)):
                self._with_context.add(launch)

    def seen(self, command: Sequence[str], variables: Mapping[str, str]) -> Seen:
        """All that there is to read once the command has ended."""
        self._settle()
        launches = self._switch.launches()
        readings, troubles = self._readings(launches)
        told = {reading.app.properties.get(LAUNCH) for reading in readings}
        silent = [launch for launch in launches if launch.id not in told and not launch.is_question]
        unseen = [_unseen(launch, had_context=launch.id in self._with_context) for launch in silent]
        if not launches:
            unseen = [_without_spark(command, variables)]
        return Seen(readings, frozenset(launches_alive(self._switch.token)), troubles + unseen)

    def _settle(self) -> None:
        """Waits a while for JVMs that are closing their logs: they outlive the program that started them a little."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while launches_alive(self._switch.token) and not self._is_closed() and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)

    def _readings(self, launches: Sequence[Launch]) -> tuple[list[Reading], list[str]]:
        found, troubles = [], []
        for log in self._logs(launches):
            try:
                reading = read(log.path)
            except (InputError, OSError) as error:
                troubles.append(str(error))
                continue
            if reading.app.properties.get(LAUNCH, "").startswith(self._switch.token):
                found.append(reading)
                troubles += _unreadable(reading)
        return sorted(found, key=lambda reading: reading.app.started or 0), troubles

    def _logs(self, launches: Sequence[Launch]) -> Iterator[Log]:
        """Logs that may be of this command: new ones in our folder, and in those that its launches name."""
        yield from self._new()
        for folder in {local for launch in launches if (local := _own_folder(launch)) is not None}:
            if folder != self._switch.events and folder.is_dir():
                yield from (log for log in logs_in(folder).values() if log.modified() >= self._began)

    def _new(self) -> list[Log]:
        """Logs that began with the command; one that was there before may meanwhile have lost its `.inprogress`."""
        return [log for log in logs_in(self._switch.events).values() if self._before.get(log.key) != log.inode]

    def _is_closed(self) -> bool:
        logs = list(self._logs(self._switch.launches()))
        return bool(logs) and all(map(_is_finished, logs))


def _is_finished(log: Log) -> bool:
    try:
        return Follower(log.path).is_finished
    except InputError:  # nobody waits for what cannot be read
        return True


def _unreadable(reading: Reading) -> Iterator[str]:
    if reading.unreadable_lines:
        lines = "line" if reading.unreadable_lines == 1 else "lines"
        yield f"{reading.log}: {reading.unreadable_lines:,} unreadable {lines}"


def _own_folder(launch: Launch) -> Path | None:
    """The folder on this machine that a launch says its event log goes to."""
    stated = launch.stated()
    place = stated.get(DIR, USUAL_DIR if ENABLED in stated else "")
    return local(place) if place else None


def _unseen(launch: Launch, *, had_context: bool) -> str:
    """Why nothing can be said of a launch."""
    stated = launch.stated()
    name = stated.get("spark.app.name", "a Spark application")
    server = _server([dict(options_of(launch.arguments)).get("--remote"), stated.get("spark.remote")])
    place = stated.get(DIR, "")
    if launch.is_cluster:
        why = "deploy mode cluster: its driver runs elsewhere, and its event log is written there"
    elif server:
        why = _connect(server)
    elif stated.get(ENABLED, "true").lower() == "false":
        why = f"it switches its event log off itself ({ENABLED}=false)"
    elif local(place) is None:
        why = f"its own {DIR} is {_address(place)}, which is not read from here: copy the log for `spark-app report`"
    elif ENABLED in stated or DIR in stated:
        why = f"it sets {ENABLED} or {DIR} itself, and there is no log of it in {_own_folder(launch) or 'any folder'}"
    elif had_context:
        why = "its session wrote no event log to our folder: its code sets spark.eventLog.* itself"
    else:
        why = "Spark started, but no session was seen: it made none, or its code sets spark.eventLog.* itself"
    return f"{name}: {why}"


def _without_spark(command: Sequence[str], variables: Mapping[str, str]) -> str:
    """Why there is no launch at all."""
    named = [value for option, value in options_of(command) if option == "--remote"]
    server = _server([*named, variables.get(REMOTE)])
    if server:
        return _connect(server)
    return "no Spark was started on this machine (nothing is seen of Spark Connect, or of Java without Spark's scripts)"


def _server(named: Sequence[str | None]) -> str | None:
    """The Spark Connect server that a program speaks to."""
    return next((server for server in named if server and server.startswith(CONNECT)), None)


def _connect(server: str) -> str:
    return f"Spark Connect: the application runs in the server {_address(server)}, and its event log is there"


def _address(address: str) -> str:
    """An address without the password or the token that may be in it."""
    place = urlsplit(address)
    host = place.netloc.rpartition("@")[2]
    return f"{place.scheme}://{host}{place.path.partition(';')[0]}" if place.scheme else place.path
