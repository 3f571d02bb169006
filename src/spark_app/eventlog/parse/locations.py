"""Where event logs are: the one place that turns a name into a path, and a path into bytes."""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from spark_app.eventlog.parse.remote import RemoteBytes, RemotePath, remote_path
from spark_app.eventlog.parse.storage import PATIENCE_SECONDS
from spark_app.local_files import local_path

LogPath = Path | RemotePath


class State(NamedTuple):
    """The bytes of a file, and its last write in seconds since the epoch; 0 for what is not known."""

    size: int = 0
    modified: float = 0.0


class LogBytes(Protocol):
    """A file of a log that is open, and may grow."""

    def size(self) -> int:
        """Its bytes by now."""

    def read(self, most: int) -> bytes:
        """The next bytes; none where no more were written."""

    def close(self) -> None:
        """Ends the reading."""


class LocalBytes:
    """A file of this machine, which may be renamed or deleted while it is read."""

    def __init__(self, path: Path) -> None:
        """Opens it.

        Raises:
            OSError: It cannot be opened.
        """
        self._file: BinaryIO = path.open("rb", buffering=0)

    def size(self) -> int:
        """Its bytes by now."""
        return os.fstat(self._file.fileno()).st_size

    def read(self, most: int) -> bytes:
        """The next bytes; none where no more were written."""
        return self._file.read(most)

    def close(self) -> None:
        """Closes it."""
        self._file.close()


def open_bytes(path: LogPath, *, complete: str) -> LogBytes:
    """The bytes of a file of a log.

    Args:
        path: The file.
        complete: Its name once it is complete.

    Raises:
        OSError: It cannot be opened.
    """
    if isinstance(path, RemotePath):
        return RemoteBytes(path, renamed=path.with_name(complete))
    return LocalBytes(path)


def state(path: LogPath) -> State:
    """The bytes of a file and its last write; 0 if it was deleted."""
    if isinstance(path, RemotePath):
        entry = path.entry
        return State(entry.size or 0, entry.modified) if entry else State()
    try:
        status = path.stat()
    except OSError:
        return State()
    return State(status.st_size, status.st_mtime)


def is_readable(path: LogPath) -> bool:
    """Whether this program may read a file; a storage says so only when it is read."""
    return isinstance(path, RemotePath) or os.access(path, os.R_OK)


class Named(NamedTuple):
    """A file or a folder in a folder; the number distinguishes it from a later one of its name, where that is known."""

    name: str
    is_folder: bool
    number: int


def listing(folder: LogPath) -> Iterator[Named]:
    """What is in a folder.

    Raises:
        OSError: The folder is missing, or cannot be read.
        InputError: The storage of the folder refuses, or does not answer.
    """
    if isinstance(folder, RemotePath):
        folder.refresh()
        yield from (Named(path.name, path.is_dir(), zlib.crc32(path.name.encode())) for path in folder.iterdir())
        return
    with os.scandir(folder) as entries:
        yield from (Named(entry.name, entry.is_dir(), entry.inode()) for entry in entries)


def is_remote(location: str) -> bool:
    """Whether a location is a URL that is not of this machine."""
    return "://" in location and local_path(location) is None


def log_path(location: str, *, patience: float = PATIENCE_SECONDS) -> LogPath:
    """The path that a local path or a URL names; of an application of a History Server, the folder of its logs.

    Args:
        location: The path or the URL.
        patience: Seconds that each request to a storage may take.

    Raises:
        InputError: The scheme is unknown, or a History Server has no such application, or refuses.
        MachineError: The driver of the scheme is not installed; the message names the extra.
    """
    if (local := local_path(location) if "://" in location else Path(location)) is not None:
        return local
    from spark_app.eventlog.parse import history_server

    application = history_server.application(location)
    return (
        history_server.logs(application, patience=patience) if application else remote_path(location, patience=patience)
    )
