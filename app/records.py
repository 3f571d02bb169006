"""The record of a run, `run.json` in its folder: there from the start, so that a killed run has one, too."""

import dataclasses
import datetime
import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from app.errors import InputError
from app.figures import Figure
from app.folders import put
from app.telemetry.killed import Killed
from app.telemetry.names import Outcome

RECORD: Final = "run.json"
AT_WORK: Final = "running"


@dataclass(frozen=True)
class RunRecord:
    """How one run went; what is not known (yet), or older versions did not tell, is None.

    `folder` is where the record lies; `report` is a path, or a URL where reports are served.
    """

    run_id: str
    pipeline: str
    date: datetime.date
    outcome: Outcome | Literal["running"]
    started_at: datetime.datetime
    seconds: float
    folder: Path = Path()
    invocation_id: str | None = None
    rows_read: int | None = None
    rows_written: int | None = None
    rows_quarantined: int | None = None
    rows_duplicate: int | None = None
    tables: dict[str, str] = field(default_factory=dict)
    error: str | None = None
    trace_id: str | None = None
    application_id: str | None = None
    event_log: str | None = None
    spark_log: str | None = None
    figures: list[Figure] = field(default_factory=list)
    nulls: dict[str, int] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)
    report: str | None = None


def write(record: RunRecord, *, note: Callable[[str], None]) -> None:
    """Writes a record, whole or not at all; one that cannot be written does not change the run."""
    content = msgspec.json.format(msgspec.json.encode(record, enc_hook=str), indent=2)
    try:
        put(record.folder / RECORD, content + b"\n")
    except OSError as error:
        note(f"the record of {record.run_id} cannot be written: {error.strerror}")


def read(folder: Path) -> RunRecord:
    """The record of the run of a folder.

    Raises:
        InputError: There is none, or it is none.
    """
    try:
        record = msgspec.json.decode((folder / RECORD).read_bytes(), type=RunRecord, dec_hook=_path)
        return dataclasses.replace(record, folder=folder.absolute())
    except OSError as error:
        raise InputError(f"no record of a run in {folder}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise InputError(f"{folder / RECORD} is no record of a run: {error}") from error


@contextmanager
def at_work(folder: Path, *, note: Callable[[str], None]) -> Iterator[None]:
    """Holds a file in the folder of a run for as long as this process lives or the run lasts.

    It is held before it has its name: who sees it, and can hold it, knows that the process is gone. All processes of a
    host know, in other containers too; those of other hosts where the file system shares its locks, as NFS does. Where
    it cannot be held, the run goes on without; that is noted.
    """
    marker, part = folder / AT_WORK, folder / f"{AT_WORK}.part"
    with ExitStack() as held:
        try:
            file = held.enter_context(part.open("w"))
            fcntl.flock(file, fcntl.LOCK_EX)
            part.rename(marker)
        except OSError as error:
            note(f"nobody would know if this run were killed: cannot hold {marker}: {error.strerror}")
        try:
            yield
        finally:
            marker.unlink(missing_ok=True)


@contextmanager
def abandoned(folder: Path) -> Iterator[bool]:
    """Whether the run's process died. The caller holds the lock while it completes the record.

    Raises:
        OSError: It cannot be told.
    """
    marker = folder / AT_WORK
    try:
        file = marker.open("r+")
    except FileNotFoundError:
        yield False
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        is_left = marker.exists()
        if is_left and not os.access(folder, os.W_OK):  # or else it would be told again and again
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        yield is_left
        marker.unlink(missing_ok=True)


def complete(runs: Path, tell: Callable[[Path], Killed | None], *, note: Callable[[str], None]) -> list[RunRecord]:
    """Completes the records of runs whose process was killed; what cannot be completed is noted, and left for later.

    Args:
        runs: The folder of all runs.
        tell: Ends and sends what was left open in the folder of a run; None where it is not known, or was nothing.
        note: Is told of each.

    Raises:
        OSError: The folder of all runs is there, and cannot be read.
    """
    done = []
    for folder in _marked(runs):
        try:
            with abandoned(folder) as is_abandoned:
                done += _completed(folder, tell(folder), note) if is_abandoned else []
        except Exception as error:  # noqa: BLE001 - one run that is not understood must keep nobody from running
            why = error.strerror or error if isinstance(error, OSError) else repr(error)
            note(f"{folder.name} cannot be completed: {why}")
    return done


def _marked(runs: Path) -> list[Path]:
    """The folders of runs that are at work or were killed; quickly, as a bridge looks at thousands all the time."""
    try:
        with os.scandir(runs) as folders:
            return sorted(Path(each.path) for each in folders if os.access(f"{each.path}/{AT_WORK}", os.F_OK))
    except FileNotFoundError:
        return []


def _completed(folder: Path, killed: Killed | None, note: Callable[[str], None]) -> list[RunRecord]:
    try:
        record = read(folder)
    except InputError:  # killed before it could write one: its spans say all that is known
        return []
    if record.outcome != "running":
        return []
    ended = killed.ended if killed else max(file.stat().st_mtime for file in folder.iterdir())
    seconds = max(0.0, ended - record.started_at.timestamp())
    completed = dataclasses.replace(record, outcome="killed", seconds=seconds, error="the process was killed")
    write(completed, note=note)
    skipped = f"; {killed.skipped} lines of its files cannot be read" if killed and killed.skipped else ""
    note(f"{record.run_id} was killed after {seconds:.0f} s: marked so{skipped}")
    return [completed]


def _path(kind: type, value: Any) -> Any:
    return Path(value) if kind is Path else value
