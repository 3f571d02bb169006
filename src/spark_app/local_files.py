"""Folders, files and locks on this machine; takes paths and knows no settings.

Locks are advisory `flock` locks: the kernel releases them when the process ends, however it ends. Lock files stay.
"""

import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO
from urllib.parse import unquote, urlsplit

from spark_app.errors import MachineError

STATE: Final = ".spark-app"
"""The folder of a project that an installed spark-app writes to; git ignores it."""
IGNORE: Final = ".gitignore"
PROJECT_MARKS: Final = (".git", "pyproject.toml")


def ensure_dir(folder: Path) -> Path:
    """The folder, created with its parents if it is missing.

    Raises:
        MachineError: The folder cannot be created.
    """
    try:
        _make_dir(folder)
    except OSError as error:
        raise MachineError(f"cannot create folder {folder}: {error.strerror}") from error
    return folder


def _make_dir(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    state = next((parent for parent in (folder, *folder.parents) if parent.name == STATE), None)
    if state is not None and not (state / IGNORE).exists():
        (state / IGNORE).write_text("*\n", encoding="utf-8")


def project_folder(start: Path) -> Path:
    """The nearest folder, from a folder upwards, that is a project's; without one, the folder itself."""
    folders = (start, *start.parents)
    return next((folder for folder in folders if any((folder / mark).exists() for mark in PROJECT_MARKS)), start)


def local_path(location: str) -> Path | None:
    """The path that a path or a `file:` URI names; None for a URI that is not on this machine."""
    parts = urlsplit(location)
    if not parts.scheme:
        return Path(location)
    is_local = parts.scheme == "file" and parts.netloc in ("", "localhost")
    return Path(unquote(parts.path)) if is_local else None


def write_atomic(file: Path, content: bytes, *, is_durable: bool = False) -> None:
    """Writes a file so that readers see the old content or the new one, never a part; creates its folder.

    Args:
        file: The file.
        content: All of its content.
        is_durable: Whether the file survives a power cut once this returns (`fsync`).

    Raises:
        OSError: The file cannot be written; the old content is still there.
    """
    _make_dir(file.parent)
    part = _part_of(file)
    try:
        part.write_bytes(content)
        if is_durable:
            _sync(part)
        part.replace(file)
        if is_durable:
            _sync(file.parent)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def exclusive_lock(file: Path | None, *, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Holds a lock file, waiting for another holder to end.

    Args:
        file: The lock file, created if it is missing. None where no lock is possible, as for tables on object
            storage: nothing is locked.
        on_wait: Called once if another process or thread holds the lock.

    Raises:
        MachineError: The folder of the lock file cannot be created.
    """
    if file is None:
        yield
        return
    ensure_dir(file.parent)
    with file.open("a") as lock:
        if not _acquire(lock):
            if on_wait is not None:
                on_wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def try_lock(file: Path) -> Iterator[bool]:
    """Holds an existing lock file if no other process holds it; False if one does, or if the file is missing.

    Raises:
        OSError: The file cannot be opened.
    """
    try:
        lock = file.open("r+")
    except FileNotFoundError:
        yield False
        return
    with lock:
        yield _acquire(lock)


@contextmanager
def try_lock_folder(folder: Path) -> Iterator[bool]:
    """Holds a folder if no other process holds it, also on a volume that is read-only; False if one does.

    True, and nothing is held, where the folder is missing or its file system has no locks.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield True
        return
    try:
        yield _acquire_folder(descriptor)
    finally:
        os.close(descriptor)


def _acquire_folder(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def new_locked_file(file: Path) -> Iterator[None]:
    """Creates a file that is locked before it appears under its name, and removes it at the end.

    Whoever sees the file and can lock it knows that the process that created it is gone.

    Raises:
        OSError: The file cannot be created or locked.
    """
    part = _part_of(file)
    with part.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            part.rename(file)
            yield
        finally:  # while the lock is held
            part.unlink(missing_ok=True)
            file.unlink(missing_ok=True)


def open_files(folder: Path) -> set[Path]:
    """The files below a folder that processes of this machine have open, as far as this user sees them.

    Empty on systems without `/proc`.
    """
    inside, opened = f"{folder.resolve()}/", set[Path]()
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            target = str(descriptor.readlink())
        except OSError:  # the process or the file is gone, or belongs to another user
            continue
        if target.startswith(inside):
            opened.add(folder / target.removeprefix(inside))
    return opened


def _part_of(file: Path) -> Path:
    return file.with_name(f".{secrets.token_hex(8)}.part")


def _acquire(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
