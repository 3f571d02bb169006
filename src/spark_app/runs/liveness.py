"""Tells runs that are running from runs whose process died, by a lock that the kernel releases with the process."""

import dataclasses
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from spark_app.errors import InputError
from spark_app.formatting import duration, quantity
from spark_app.local_files import new_locked_file, try_lock
from spark_app.runs.run_record import RunRecord, read, write
from spark_app.telemetry.crash_recovery import KilledRun

LIVENESS_LOCK: Final = "running"
"""The name of the lock file in the folder of a run that has not ended."""


@contextmanager
def hold_liveness_lock(folder: Path, *, note: Callable[[str], None]) -> Iterator[None]:
    """Holds a lock file in the folder of a run until the run or its process ends.

    All processes of a host see the lock, in other containers too; those of other hosts do where the file system shares
    its locks, as NFS does. Where the file cannot be locked, the run goes on without, and notes it.
    """
    lock = folder / LIVENESS_LOCK
    with ExitStack() as locks:
        try:
            locks.enter_context(new_locked_file(lock))
        except OSError as error:
            note(f"crash detection is off for this run: cannot lock {lock}: {error.strerror}")
        yield


def is_running(folder: Path) -> bool:
    """Whether the process of a run holds its lock; a lock that cannot be opened counts as held."""
    try:
        with try_lock(folder / LIVENESS_LOCK) as is_locked:
            return not is_locked and (folder / LIVENESS_LOCK).exists()
    except OSError:
        return True


@contextmanager
def claim_if_dead(folder: Path) -> Iterator[bool]:
    """Whether the process of a run died; the caller holds the lock while it completes the record.

    Raises:
        OSError: The lock file cannot be opened, or the folder cannot be written.
    """
    lock = folder / LIVENESS_LOCK
    with try_lock(lock) as is_locked:
        is_dead = is_locked and lock.exists()
        if is_dead and not os.access(folder, os.W_OK):  # the lock file would stay, and the run be completed for ever
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        yield is_dead
        if is_dead:
            lock.unlink(missing_ok=True)


def mark_killed_runs(
    runs: Path, end_spans: Callable[[Path], KilledRun | None], *, note: Callable[[str], None]
) -> list[RunRecord]:
    """Completes the records of runs whose process died; a record that cannot be completed is noted and kept for later.

    Args:
        runs: The folder of all runs.
        end_spans: Ends and sends the open spans of the run in a folder; returns None if there are none.
        note: Is called with one line per run.

    Raises:
        OSError: The folder of all runs exists and cannot be read.
    """
    marked = []
    for folder in _unfinished(runs):
        try:
            with claim_if_dead(folder) as is_dead:
                marked += _marked_as_killed(folder, end_spans(folder), note) if is_dead else []
        except Exception as error:  # noqa: BLE001 - one folder that cannot be read must not keep others from running
            why = error.strerror or error if isinstance(error, OSError) else repr(error)
            note(f"cannot complete the record of {folder.name}: {why}")
    return marked


def _unfinished(runs: Path) -> list[Path]:
    """The folders of runs that are running or were killed; fast, since a bridge looks at thousands again and again."""
    try:
        with os.scandir(runs) as folders:
            return sorted(Path(each.path) for each in folders if os.access(f"{each.path}/{LIVENESS_LOCK}", os.F_OK))
    except FileNotFoundError:
        return []


def _marked_as_killed(folder: Path, killed: KilledRun | None, note: Callable[[str], None]) -> list[RunRecord]:
    try:
        record = read(folder)
    except InputError:  # the process died before it wrote a record: its spans are all there is
        return []
    if record.outcome != "running":
        return []
    ended = killed.ended if killed else max(file.stat().st_mtime for file in folder.iterdir())
    seconds = max(0.0, ended - record.started_at.timestamp())
    completed = dataclasses.replace(record, outcome="killed", seconds=seconds, error="the process was killed")
    write(completed, note=note)
    skipped = f"; {quantity(killed.skipped, 'line')} of its files cannot be read" if killed and killed.skipped else ""
    note(f"{record.run_id}: process died after {duration(1000 * seconds)}; run marked as killed{skipped}")
    return [completed]
