"""Folders and files of this machine: found, made or explained, replaced whole, and kept for one at a time."""

import fcntl
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO
from urllib.parse import unquote, urlsplit

from app.errors import MachineError
from app.settings import Settings


def made(folder: Path) -> Path:
    """A folder that is there.

    Raises:
        MachineError: It cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(f"cannot make folder {folder}: {error.strerror}") from error
    return folder


def local(place: str) -> Path | None:
    """The path that a path or a `file:` address names; None of what is not on this machine."""
    parts = urlsplit(place)
    if not parts.scheme:
        return Path(place)
    is_here = parts.scheme == "file" and parts.netloc in ("", "localhost")
    return Path(unquote(parts.path)) if is_here else None


def put(file: Path, content: bytes) -> None:
    """Puts a file in place, whole or not at all; its folder is made if need be.

    Raises:
        OSError: It cannot be written; what was there still is.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{secrets.token_hex(8)}.part")
    try:
        part.write_bytes(content)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def alone(settings: Settings, key: str, *, note: Callable[[str], None]) -> Iterator[None]:
    """Keeps a second holder of a key waiting; the key of a killed process is free at once.

    Only where the warehouse is a local folder. Elsewhere Delta's own conflict check is what keeps two runs right.

    Args:
        settings: Where the warehouse is.
        key: Names what is worked at: one pipeline and one date.
        note: Told when there is somebody to wait for.
    """
    file = _lock_file(settings, key)
    if file is None:
        yield
        return
    with file.open("w") as lock:
        if not _is_taken(lock):
            note(f"another run of {key} is at work: waiting for it to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def if_free(settings: Settings, key: str) -> Iterator[bool]:
    """Whether nobody is at work at a key, who then waits as for `alone`; False where no lock can tell."""
    file = _lock_file(settings, key)
    if file is None:
        yield False
        return
    with file.open("w") as lock:
        yield _is_taken(lock)


def _lock_file(settings: Settings, key: str) -> Path | None:
    warehouse = local(settings.warehouse_path)
    return None if warehouse is None else made(warehouse / "_locks") / f"{key}.lock"


def _is_taken(lock: TextIO) -> bool:
    """Takes a lock if nobody has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
