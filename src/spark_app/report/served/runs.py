"""All runs that this machine knows, by the stored run profiles and the run records: a row each, the newest first."""

import datetime
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from spark_app.eventlog.comparison.profile import VERSION
from spark_app.eventlog.cost import HOUR_MS, CoreHours
from spark_app.eventlog.parse.log_tailer import application_of
from spark_app.runs import liveness
from spark_app.runs.run_record import RECORD

GOOD: Final = ("succeeded", "ended")
BAD: Final = ("failed", "killed", "rejected", "missing_input")


def mood(outcome: str) -> str:
    """How an outcome is coloured."""
    return "bad" if outcome in BAD else "good" if outcome in GOOD else "unsure"


class _Profile(msgspec.Struct):
    """What the list shows of a run profile; the rest of the file is not decoded."""

    version: int
    application: str
    id: str
    outcome: str
    started: float
    duration_ms: float
    core_ms: float
    workload: str = ""
    gib_ms: float | None = None
    users: dict[str, float] = {}

    @property
    def spent(self) -> CoreHours:
        """What its executors took."""
        return CoreHours(self.core_ms / HOUR_MS, None if self.gib_ms is None else self.gib_ms / HOUR_MS)

    @property
    def by_user(self) -> dict[str, CoreHours]:
        """The part of each user, with as much memory for each core."""
        return {user: self.spent.on(1, milliseconds) for user, milliseconds in self.users.items()}


class _Record(msgspec.Struct):
    """What the list shows of a run record."""

    run_id: str
    pipeline: str
    outcome: str
    started_at: datetime.datetime
    seconds: float
    slice: str = ""
    application_id: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A row of the list.

    Attributes:
        name: The pipeline of a spark-app run, else the name of the application.
        about: The slice of the run, or the workload of the application.
        id: Of the run, or of the application.
        started: Milliseconds since the epoch.
        duration_ms: None while it runs, and where nothing told how long a killed run lasted.
        spent: What its executors took; None where they served other runs, too.
        users: The part of each user in that; the empty name is nobody's.
        profile: The file of its run profile, with which it can be compared; None without one.
        report: The name of its report; None without one.
    """

    name: str
    about: str
    id: str
    outcome: str
    started: float
    duration_ms: float | None
    spent: CoreHours | None
    users: dict[str, CoreHours]
    profile: Path | None
    report: str | None

    @property
    def core_hours(self) -> float | None:
        """Cores of its executors, multiplied by hours."""
        return None if self.spent is None else self.spent.core_hours

    @property
    def mood(self) -> str:
        """How its outcome is coloured."""
        return mood(self.outcome)


Read = Callable[[Path], bytes]
Stored = TypeVar("Stored", _Profile, _Record)


class Runs:
    """The runs of two folders. A file is read again only after it has changed."""

    def __init__(self, *, profiles: Path, runs: Path, reports: Path, read: Read = Path.read_bytes) -> None:
        """Reads nothing yet.

        Args:
            profiles: The folder of the run profiles.
            runs: The folder with one folder per run.
            reports: The folder of the reports.
            read: Reads a file.
        """
        self._profiles, self._runs, self.reports, self._read = profiles, runs, reports, read
        self._known: dict[Path, tuple[tuple[int, int], _Profile | _Record | None]] = {}

    def newest_first(self) -> list[Run]:
        """All runs; an application with a single spark-app run is that run."""
        profiles = dict(self._stored(self._profiles.glob("*/*.json"), _Profile))
        records = [_with_end(file, record) for file, record in self._stored(self._runs.glob(f"*/{RECORD}"), _Record)]
        reports = _Reports(path.name for path in self.reports.glob("*.html"))
        shared = _repeated(record.application_id for record in records)
        of_application = {profile.id: (file, profile) for file, profile in profiles.items()}
        single = {each.application_id for each in records if each.application_id} - shared
        runs = [
            *(_of_record(each, of_application if each.application_id in single else {}, reports) for each in records),
            *(_of_profile(file, each, reports) for file, each in profiles.items() if each.id not in single),
        ]
        return sorted(runs, key=lambda run: (run.started, run.id), reverse=True)

    def _stored(self, files: Iterable[Path], kind: type[Stored]) -> Iterator[tuple[Path, Stored]]:
        """The content of files; those that cannot be read are left out."""
        for file in files:
            content = self._content(file, kind)
            if isinstance(content, kind):
                yield file, content

    def _content(self, file: Path, kind: type[Stored]) -> _Profile | _Record | None:
        try:
            status = file.stat()
            state = status.st_mtime_ns, status.st_size
            known = self._known.get(file)
            if known is None or known[0] != state:
                known = self._known[file] = state, _decoded(self._read(file), kind)
        except OSError:
            return None
        return known[1]


class _Reports:
    """The names of the reports, by the run or the application that they are about."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_id: dict[str, str] = {}
        for name in sorted(names):
            self._by_id[application_of(name)] = name
            self._by_id[name.removesuffix(".html")] = name

    def of(self, *ids: str | None) -> str | None:
        return next((self._by_id[each] for each in ids if each and each in self._by_id), None)


def _decoded(content: bytes, kind: type[Stored]) -> Stored | None:
    try:
        return msgspec.json.decode(content, type=kind)
    except ValueError:
        return None


def _with_end(file: Path, record: _Record) -> _Record:
    """A record that says `running` although its process is gone is that of a killed run that nothing marked yet."""
    is_killed = record.outcome == "running" and not liveness.is_running(file.parent)
    return msgspec.structs.replace(record, outcome="killed") if is_killed else record


def _of_record(record: _Record, profiles: dict[str, tuple[Path, _Profile]], reports: _Reports) -> Run:
    file, profile = profiles.get(record.application_id or "", (None, None))
    return Run(
        name=record.pipeline,
        about=record.slice,
        id=record.run_id,
        outcome=record.outcome,
        started=record.started_at.timestamp() * 1000,
        duration_ms=record.seconds * 1000 or None,
        spent=profile.spent if profile else None,
        users=profile.by_user if profile else {},
        profile=file if profile and profile.version == VERSION else None,
        report=reports.of(record.run_id),
    )


def _of_profile(file: Path, profile: _Profile, reports: _Reports) -> Run:
    return Run(
        name=profile.application,
        about=profile.workload,
        id=profile.id,
        outcome=profile.outcome,
        started=profile.started,
        duration_ms=profile.duration_ms,
        spent=profile.spent,
        users=profile.by_user,
        profile=file if profile.version == VERSION else None,
        report=reports.of(profile.id),
    )


def _repeated(ids: Iterable[str | None]) -> set[str]:
    """The ids that several runs have."""
    seen, repeated = set[str](), set[str]()
    for each in chain(filter(None, ids)):
        (repeated if each in seen else seen).add(each)
    return repeated
