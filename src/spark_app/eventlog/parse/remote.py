"""Paths of event logs on other storages: of `pathlib.Path`, what reading a log needs."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from spark_app.eventlog.parse.storage import FileInfo, NoAnswerError, Storage, open_storage, without_secrets

FIRST_BLOCK_BYTES: Final = 256 * 1024
"""The first request for a file: often only the start of a log is needed."""
BLOCK_BYTES: Final = 4 * 1024 * 1024
"""The most bytes of one request, and of a file that are in memory."""


@dataclass(frozen=True, order=True, slots=True, repr=False)
class RemotePath:
    """A file or a folder of a storage; as text, its URL without secrets.

    Attributes:
        path: The path as the driver of the storage has it.
        shown: The URL without secrets.
        storage: The storage, and what it said last.
    """

    path: str
    shown: str
    storage: Storage = field(compare=False)

    def __str__(self) -> str:
        return self.shown

    def __repr__(self) -> str:
        return f"RemotePath({self.shown!r})"

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def suffixes(self) -> list[str]:
        """The extensions of the name."""
        return [f".{suffix}" for suffix in self.name.lstrip(".").split(".")[1:]]

    @property
    def parent(self) -> "RemotePath":
        """The folder that holds it."""
        return RemotePath(self.path.rpartition("/")[0], self.shown.rpartition("/")[0], self.storage)

    def __truediv__(self, name: str) -> "RemotePath":
        return RemotePath(f"{self.path}/{name}" if self.path else name, f"{self.shown}/{name}", self.storage)

    def with_name(self, name: str) -> "RemotePath":
        """What has another name in the same folder."""
        return self.parent / name

    def absolute(self) -> "RemotePath":
        """Itself: a URL is absolute."""
        return self

    @property
    def entry(self) -> FileInfo | None:
        """What the storage says of it; None where there is nothing.

        Raises:
            InputError: The storage refuses, or does not answer.
        """
        return self.storage.entry(self.path, self.shown)

    def exists(self) -> bool:
        """Whether there is a file or a folder."""
        return self.entry is not None

    def is_file(self) -> bool:
        """Whether it is a file."""
        return self.entry is not None and not self.entry.is_folder

    def is_dir(self) -> bool:
        """Whether it is a folder."""
        return self.entry is not None and self.entry.is_folder

    def iterdir(self) -> Iterator["RemotePath"]:
        """What is in the folder."""
        return (self / name for name in self.storage.children(self.path, self.shown))

    def read_bytes(self) -> bytes:
        """All of a small file.

        Raises:
            FileNotFoundError: There is none.
            InputError: The storage refuses, or does not answer.
        """
        request = partial(self.storage.driver.cat_file, self.path + self.storage.query)
        content: bytes = self.storage.ask(self.shown, request)
        return content

    def write_bytes(self, content: bytes) -> None:
        """Writes all of a small file, which readers see whole or not at all.

        Raises:
            InputError: The storage refuses, does not answer, or takes no files.
        """
        request = partial(self.storage.driver.pipe_file, self.path + self.storage.query, content)
        self.storage.ask(self.shown, request, verb="write")

    def refresh(self) -> None:
        """Lists the folder and those in it, unless that was done a moment ago.

        Raises:
            FileNotFoundError: There is no such folder.
            InputError: The storage refuses, or does not answer.
        """
        self.storage.refresh(self.path, self.shown)


class RemoteBytes:
    """The bytes of a file, from its start on; one block at a time is in memory."""

    def __init__(self, path: RemotePath, *, renamed: RemotePath) -> None:
        """Requests nothing yet.

        Args:
            path: The file.
            renamed: Where it is once it is complete.
        """
        self._before, self._renamed, self._position = path, renamed, 0
        self._file = _OpenFile()
        self._block = io.BytesIO()
        self._next_bytes = FIRST_BLOCK_BYTES

    def size(self) -> int:
        """The bytes of the file when the storage was last asked; those that were read if it does not say so."""
        entry = self._path.entry
        return self._position if entry is None or entry.size is None else entry.size

    def read(self, most: int) -> bytes:
        """The next bytes, none at the end.

        Raises:
            OSError: The file is gone.
            InputError: The storage refuses, or does not answer.
        """
        chunk = self._block.read(most)
        if not chunk and not self._is_at_end():
            self._block = io.BytesIO(self._next_block())
            chunk = self._block.read(most)
        return chunk

    def close(self) -> None:
        """Forgets the block, and closes the file."""
        self._block = io.BytesIO()
        self._file.close()

    @property
    def _path(self) -> RemotePath:
        return self._before if self._before.exists() else self._renamed

    def _is_at_end(self) -> bool:
        entry = self._path.entry
        return entry is not None and entry.size is not None and self._position >= entry.size

    def _next_block(self) -> bytes:
        """The block at the position, which moves only with an answer: that of a request that was given up is lost."""
        path = self._path
        request = partial(self._file.read, path, self._position, self._next_bytes)
        try:
            block = path.storage.ask(path.shown, request)
        except NoAnswerError:
            self._file = _OpenFile()  # the request may still be reading the other one, so that is not closed
            raise
        self._position += len(block)
        self._next_bytes = min(4 * self._next_bytes, BLOCK_BYTES)
        return block


class _OpenFile:
    """The driver's handle of a file; after an error or the end the file is opened anew."""

    def __init__(self) -> None:
        self._handle: Any = None

    def read(self, path: RemotePath, position: int, most: int) -> bytes:
        """The bytes of a file from a position on, none at the end, where reading goes on once the file has grown."""
        try:
            if self._handle is None:
                self._handle = _opened(path, position)
            block = bytes(self._handle.read(most))
        except Exception:
            self.close()
            raise
        if not block:
            self.close()
        return block

    def close(self) -> None:
        """Closes the handle."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.close()


def _opened(path: RemotePath, position: int) -> Any:
    driver = path.storage.driver
    options: dict[str, Any] = {"cache_type": "none"} if driver.async_impl else {}
    if "http" in driver.protocol and not position:
        options = {"block_size": 0}  # the whole in one answer: few web servers know ranges
    handle = driver.open(path.path + path.storage.query, "rb", **options)
    if position:
        handle.seek(position)
    return handle


def remote_path(location: str, *, patience: float) -> RemotePath:
    """The path that a URL names.

    Raises:
        InputError: The scheme is unknown, or the location is not complete.
        MachineError: The driver is not installed; the message names the extra.
    """
    storage, path = open_storage(location, patience=patience)
    return RemotePath(path.rstrip("/"), without_secrets(location).rstrip("/"), storage)
