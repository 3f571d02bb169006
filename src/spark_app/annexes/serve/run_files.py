"""The files behind lists of runs: run profiles, run records and reports, here or in the store of runs."""

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal, Protocol

from spark_app.eventlog.parse.log_tailer import application_of
from spark_app.report import run_store
from spark_app.report.run_store import RunStore
from spark_app.runs import liveness
from spark_app.runs.run_record import RECORD
from spark_app.settings import Settings

Kind = Literal["profile", "record", "report"]
State = tuple[str, int, int]
"""The path of a file, its last write in nanoseconds, and its size."""
NAME: Final = "runs.sqlite"
RECENT: Final = timedelta(days=2)
"""How long after the start of a run its files are looked for at each look."""
PATIENCE_SECONDS: Final = 30.0
"""How long a listing, or files that are read at once, are waited for."""
FILES_PER_READ: Final = 100
ALL_SECONDS: Final = 600.0
"""How often older days are listed, too: for what ran for longer, or could not be copied at once."""
STORED_REPORT: Final = re.compile(r"\d{4}-\d\d-\d\d/[^/\0]+\.html")
FOLDERS: Final[dict[Kind, str]] = {
    "profile": run_store.PROFILES,
    "record": run_store.RECORDS,
    "report": run_store.REPORTS,
}


class RunFiles(Protocol):
    """Files that are listed and read by their paths.

    Attributes:
        index: The file of the index of them.
    """

    @property
    def index(self) -> Path:
        """The file of the index of them."""

    def folders(self, kind: Kind) -> Iterator[tuple[str, Iterable[State] | None]]:
        """The files of a kind, by folders that begin their paths; None where those of a folder need no look.

        Raises:
            OSError: A folder cannot be read.
            InputError: The storage refuses, or does not answer.
        """

    def content(self, kind: Kind, path: str) -> bytes:
        """The content of a file.

        Raises:
            OSError: It cannot be read.
            InputError: The storage refuses, or does not answer.
        """

    def contents(self, kind: Kind, paths: Sequence[str]) -> dict[str, bytes]:
        """The contents of files, without those that cannot be read.

        Raises:
            InputError: The storage refuses, or does not answer.
        """

    def is_killed(self, record: str) -> bool:
        """Whether the process of a run is gone whose record says that it runs."""


@dataclass(frozen=True, slots=True)
class LocalRunFiles:
    """Those of some folders: of run profiles, of runs and of reports."""

    profiles: Path
    runs: Path
    reports: Path

    @property
    def index(self) -> Path:
        """Beside the run profiles."""
        return self.profiles / NAME

    def folders(self, kind: Kind) -> Iterator[tuple[str, Iterable[State]]]:
        """All of them, each time."""
        yield "", {"profile": self._profiles, "record": self._records, "report": self._reports}[kind]()

    def content(self, kind: Kind, path: str) -> bytes:
        """A report is a file that lies in the folder of the reports itself, not one that a link leads to."""
        folder = {"profile": self.profiles, "record": self.runs, "report": self.reports}[kind]
        file = folder / path
        is_report = path.endswith(".html") and path == file.name and "\0" not in path
        if kind == "report" and not (is_report and not file.is_symlink()):
            raise FileNotFoundError(path)
        return file.read_bytes()

    def contents(self, kind: Kind, paths: Sequence[str]) -> dict[str, bytes]:
        """One after the other."""
        found = dict[str, bytes]()
        for path in paths:
            with suppress(OSError):
                found[path] = self.content(kind, path)
        return found

    def is_killed(self, record: str) -> bool:
        """Whether a process holds its lock."""
        return not liveness.is_running((self.runs / record).parent)

    def _profiles(self) -> Iterator[State]:
        for application in _entries(self.profiles):
            for file in _entries(self.profiles / application):
                if file.endswith(".json"):
                    yield from _state(self.profiles, f"{application}/{file}")

    def _records(self) -> Iterator[State]:
        for run in _entries(self.runs):
            yield from _state(self.runs, f"{run}/{RECORD}")

    def _reports(self) -> Iterator[State]:
        for name in _entries(self.reports):
            if name.endswith(".html"):
                yield name, 0, 0


def configured_files(settings: Settings) -> RunFiles:
    """Those of the store of the configuration; without one, those of this machine.

    Raises:
        InputError: The location of the store is not complete.
        MachineError: The driver of its storage is not installed.
    """
    store = run_store.configured_store(settings, patience=PATIENCE_SECONDS)
    if store is not None:
        return StoredRunFiles(store, settings.profiles_path)
    return LocalRunFiles(settings.profiles_path, settings.runs_path, settings.reports_path)


@dataclass
class StoredRunFiles:
    """Those of the store of runs: days that are over are listed at times only.

    Attributes:
        store: The store.
        folder: Where the index is.
    """

    store: RunStore
    folder: Path
    _listed_at: dict[tuple[Kind, str], float] = field(default_factory=dict)

    @property
    def index(self) -> Path:
        """Another file than that of the runs of this machine."""
        return self.folder / f"store-{NAME}"

    def folders(self, kind: Kind) -> Iterator[tuple[str, Iterable[State] | None]]:
        """Day by day, so that few are in memory at once."""
        recent = (datetime.now(UTC) - RECENT).date().isoformat()
        for day in self.store.days(FOLDERS[kind]):
            known, now = (kind, day), time.monotonic()
            if day < recent and now - self._listed_at.get(known, -ALL_SECONDS) < ALL_SECONDS:
                yield f"{day}/", None
            else:
                yield f"{day}/", self._states(kind, day)
                self._listed_at[known] = now

    def content(self, kind: Kind, path: str) -> bytes:
        """The content of a file; a report is one of a day, and nothing else."""
        if kind == "report" and not STORED_REPORT.fullmatch(path):
            raise FileNotFoundError(path)
        return self.store.read(f"{FOLDERS[kind]}/{path}")

    def contents(self, kind: Kind, paths: Sequence[str]) -> dict[str, bytes]:
        """Many at once: a request to an object store takes longer than what it reads."""
        found = dict[str, bytes]()
        for first in range(0, len(paths), FILES_PER_READ):
            found |= self.store.read_all(FOLDERS[kind], paths[first : first + FILES_PER_READ])
        return found

    def is_killed(self, record: str) -> bool:
        """What is there has ended."""
        del record
        return False

    def _states(self, kind: Kind, day: str) -> Iterator[State]:
        for name, info in self.store.files(f"{FOLDERS[kind]}/{day}"):
            yield f"{day}/{name}", int(info.modified * 1e9), info.size or 0


def report_ids(name: str) -> set[str]:
    """The ids of the run or the application that a report is about, by its name."""
    file = name.rpartition("/")[2]
    return {application_of(file), file.removesuffix(".html")}


def _entries(folder: Path) -> Iterator[str]:
    """The names in a folder, without hidden ones; none where it is no folder."""
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        yield from (entry.name for entry in entries if not entry.name.startswith("."))


def _state(folder: Path, path: str) -> Iterator[State]:
    with suppress(OSError):
        status = os.stat(f"{folder}/{path}")  # noqa: PTH116 - of each of 100,000 files
        yield path, status.st_mtime_ns, status.st_size
