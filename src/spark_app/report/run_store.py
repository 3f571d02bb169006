"""The store of runs that several machines share: a folder, or a folder of an object store.

::

    records/DAY/RUN.json                      run records
    profiles/DAY/APPLICATION/….json           run profiles
    applications/APPLICATION/….json           the same profiles, where comparisons look for them
    reports/DAY/NAME.html                     reports
    runs/DAY/RUN.zip                          all files of the folder of a run

The day is that on which the run or the application started, in UTC: lists are read day by day.
"""

import atexit
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from spark_app.errors import InputError
from spark_app.eventlog.comparison import baselines
from spark_app.eventlog.comparison.profile import RunProfile
from spark_app.eventlog.parse.storage import FileInfo, Storage, file_info, open_storage, without_secrets
from spark_app.local_files import local_path, write_atomic
from spark_app.settings import Settings

RECORDS: Final = "records"
PROFILES: Final = "profiles"
REPORTS: Final = "reports"
APPLICATIONS: Final = "applications"
RUNS: Final = "runs"
PATIENCE_SECONDS: Final = 10.0
"""How long one request is waited for and repeated."""
FETCHED: Final = 20
"""How many of the last run profiles of an application are fetched before a run is compared with it."""
RUN_ID: Final = re.compile(r"(\d{4})(\d\d)(\d\d)T\d{6}Z-[\w.-]+")


class RunStore:
    """A store of runs."""

    def __init__(self, storage: Storage, root: str, location: str) -> None:
        """Asks nothing yet.

        Args:
            storage: Where it is.
            root: Its folder there.
            location: The same as messages name it.
        """
        self._storage, self._root, self.location = storage, root.rstrip("/"), location
        self._fetched = dict[str, Path]()

    def put(self, key: str, file: Path) -> None:
        """Writes a file, which appears whole.

        Raises:
            InputError: The storage refuses, or does not answer.
            OSError: The file cannot be read, or a folder cannot be written.
        """
        if "local" in self._protocols:
            write_atomic(Path(self._path(key)), file.read_bytes())
            return
        self._ask(key, partial(self._storage.driver.put_file, str(file), self._path(key)), verb="write")

    def read(self, key: str) -> bytes:
        """The content of a file.

        Raises:
            FileNotFoundError: There is none.
            InputError: The storage refuses, or does not answer.
        """
        content: bytes = self._ask(key, partial(self._storage.driver.cat_file, self._path(key)))
        return content

    def read_all(self, folder: str, names: Sequence[str]) -> dict[str, bytes]:
        """The content of files below a folder, without those that cannot be read.

        Raises:
            InputError: The storage does not answer.
        """
        paths = {self._path(f"{folder}/{name}"): name for name in names}
        read = partial(self._storage.driver.cat, [*paths], on_error="omit")
        return {paths[path]: content for path, content in self._ask(folder, read).items()} if paths else {}

    def days(self, kind: str) -> list[str]:
        """The days of a kind of files, the newest first.

        Raises:
            InputError: The storage refuses, or does not answer.
        """
        with suppress(FileNotFoundError):
            names = self._ask(kind, partial(self._storage.driver.ls, self._path(kind), detail=False))
            return sorted({name.rstrip("/").rpartition("/")[2] for name in names}, reverse=True)
        return []

    def files(self, folder: str) -> Iterator[tuple[str, FileInfo]]:
        """The files below a folder, by their paths from there.

        Raises:
            InputError: The storage refuses, or does not answer.
        """
        with suppress(FileNotFoundError):
            path = self._path(folder)
            found = self._ask(folder, partial(self._storage.driver.find, path, detail=True))
            for name, info in found.items():
                inside = name[len(path) + 1 :]
                if inside and not inside.rpartition("/")[2].startswith("."):
                    yield inside, file_info(info)

    def fetch_profiles(self, application: str, profiles: Path) -> None:
        """Copies the last run profiles of an application beside those that this machine has.

        Raises:
            InputError: The storage refuses, or does not answer.
            OSError: The folder of the run profiles cannot be written.
        """
        name = baselines.folder_name(application)
        for file in sorted((file for file, _ in self.files(f"{APPLICATIONS}/{name}")), reverse=True)[:FETCHED]:
            local = profiles / name / Path(file).name
            if not local.exists():
                with suppress(FileNotFoundError):
                    write_atomic(local, self.read(f"{APPLICATIONS}/{name}/{file}"))

    def fetch_run(self, run_id: str) -> Path | None:
        """The folder of a run, as a copy until this process ends; None where the store has none.

        Raises:
            InputError: The storage refuses, or does not answer; or what it has is damaged.
        """
        if not RUN_ID.fullmatch(run_id):
            return None
        if run_id not in self._fetched:
            key = run_key(run_id)
            try:
                packed = zipfile.ZipFile(BytesIO(self.read(key)))
            except FileNotFoundError:
                return None
            except zipfile.BadZipFile as error:
                raise InputError(f"{self.location}/{key} is damaged: {error}") from error
            folder = Path(tempfile.mkdtemp(prefix="spark-app-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            packed.extractall(folder / run_id)
            self._fetched[run_id] = folder / run_id
        return self._fetched[run_id]

    @property
    def _protocols(self) -> tuple[str, ...]:
        protocol: str | tuple[str, ...] = self._storage.driver.protocol
        return (protocol,) if isinstance(protocol, str) else protocol

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"

    def _ask(self, key: str, request: Any, *, verb: str = "read") -> Any:
        return self._storage.ask(f"{self.location}/{key}", request, verb=verb)


def configured_store(settings: Settings, *, patience: float = PATIENCE_SECONDS) -> RunStore | None:
    """The store of the configuration; None without one.

    Raises:
        InputError: The location is not complete.
        MachineError: The driver of its storage is not installed; the message names the extra.
    """
    location = settings.run_store_path
    if location is None:
        return None
    folder = local_path(location)
    if folder is None:
        return RunStore(*open_storage(location, patience=patience), without_secrets(location))
    from fsspec.implementations.local import LocalFileSystem

    return RunStore(Storage(LocalFileSystem(), patience=patience), str(folder), str(folder))


def profile_keys(profile: RunProfile) -> list[str]:
    """Where a run profile is: for lists, and for comparisons."""
    name = baselines.file_name(profile)
    return [f"{PROFILES}/{day_of(profile.started)}/{name}", f"{APPLICATIONS}/{name}"]


def run_key(run_id: str) -> str:
    """Where the files of a run are, whose id begins with the time of its start."""
    return f"{RUNS}/{run_id[:4]}-{run_id[4:6]}-{run_id[6:8]}/{run_id}.zip"


def day_of(milliseconds: float | None) -> str:
    """The day of a time since the epoch; of one that is not known, the first."""
    return datetime.fromtimestamp((milliseconds or 0) / 1000, UTC).date().isoformat()
