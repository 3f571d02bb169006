"""A folder that appears with all of its files at once, or not at all."""

import errno
import fcntl
import filecmp
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from app.errors import MachineError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns an error of the file system (no space, no permission) into one line that names the path.

    Raises:
        MachineError: The file system refused.
    """
    try:
        yield
    except OSError as error:
        raise MachineError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def draft(target: Path) -> Iterator[Path]:
    """A hidden folder beside the target, to be filled and published; it is gone afterwards in any case.

    It is locked while its maker lives. Drafts that a killed process left behind are removed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for stale in target.parent.glob(f".{target.name}.*"):
        _remove_unless_locked(stale)
    folder, lock = _locked_folder(target)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def publish(folder: Path, target: Path) -> None:
    """Puts a draft in the place of the target; what was there before is removed.

    A target with the very same files stays as it is, since another process may be reading it.
    """
    while not _is_same(folder, target):
        try:
            folder.rename(target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            _put_away(target)
        else:
            return


def _locked_folder(target: Path) -> tuple[Path, int]:
    while True:
        folder = _hidden(target)
        folder.mkdir()
        lock = _lock(folder)
        if lock is not None and folder.is_dir():  # else another process took it for stale before it was locked
            return folder, lock
        if lock is not None:
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """A lock on a folder, held until it is closed or the process ends; None if another process has it."""
    try:
        lock = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _remove_unless_locked(folder: Path) -> None:
    lock = _lock(folder)
    if lock is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _put_away(target: Path) -> None:
    aside = _hidden(target)
    with suppress(FileNotFoundError):  # another process was faster
        target.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


def _hidden(target: Path) -> Path:
    return target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}")


def _is_same(folder: Path, target: Path) -> bool:
    names = {path.name for path in folder.iterdir()}
    try:
        is_same_set = names == {path.name for path in target.iterdir()}
        return is_same_set and not any(filecmp.cmpfiles(folder, target, names, shallow=False)[1:])
    except OSError:
        return False
