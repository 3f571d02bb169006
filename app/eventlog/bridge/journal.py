"""What a bridge that is started again must know of the one before: one file, replaced as a whole.

There are no offsets in it: a log that is not done is read again from its beginning, and makes the same spans and the
same totals. Until it is read so far, what was counted of it before stands in.
"""

import fcntl
import os
import time
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct, field

from app.errors import MachineError
from app.eventlog.bridge.metrics import Aggregate, decoded
from app.eventlog.logs import Log

NAME: Final = "bridge.msgpack"
VERSION: Final = 1
MAX_APART: Final = 100
"""Logs that were given up and may still grow; the numbers of older ones are added up and not taken apart again."""


class Entry(Struct):
    """What is known of one log.

    Attributes:
        inode: Of its file or folder; another one under the same name is another log.
        state: Open; given up, as it was silent for long and never finished; or closed, its numbers in the totals.
        size: Bytes of a log that was given up: it is read again when it has grown.
        numbers: Its totals as they were exported last; None of a closed log.
    """

    inode: int
    state: Literal["open", "given_up", "closed"] = "open"
    size: int = 0
    numbers: Aggregate | None = None


class Journal(Struct):
    """What the logs of a folder have counted since a start, and which of them are done.

    Attributes:
        started_ns: Since when the totals count, in nanoseconds since the epoch.
        totals: Of all logs that are closed or gone.
        logs: The others, and the names of the closed ones, by the key of the log.
    """

    version: int = VERSION
    started_ns: int = field(default_factory=time.time_ns)
    totals: Aggregate = field(default_factory=Aggregate)
    logs: dict[str, Entry] = field(default_factory=dict)

    def is_done(self, log: Log) -> bool:
        """Whether there is nothing to read of a log, unless one that was given up has grown."""
        entry = self.logs.get(log.key)
        return entry is not None and entry.inode == log.inode and entry.state != "open"

    def has_numbers(self, log: Log) -> bool:
        """Whether totals of this log were exported before; a new reading will replace them."""
        entry = self.logs.get(log.key)
        return entry is not None and entry.numbers is not None

    def close(self, log: Log, numbers: Aggregate) -> None:
        """A log is finished: its numbers are added to the totals, and no more lines are expected."""
        self.totals.merge(numbers)
        self.logs[log.key] = Entry(log.inode, "closed")

    def give_up(self, log: Log, numbers: Aggregate, *, size: int) -> None:
        """A log has been silent for long; its numbers stay apart from the totals, as more lines may come."""
        self.logs[log.key] = Entry(log.inode, "given_up", size, numbers)
        apart = [entry for entry in self.logs.values() if entry.state == "given_up" and entry.numbers is not None]
        for oldest in apart[:-MAX_APART]:
            self.totals.merge(over(oldest.numbers or Aggregate()))
            oldest.state, oldest.numbers = "closed", None

    def keep(self, log: Log, numbers: Aggregate) -> None:
        """Notes the numbers of an open log, before they are exported."""
        self.logs[log.key] = Entry(log.inode, numbers=numbers)

    def forget(self, key: str) -> None:
        """A log is gone, or another log has its name: its numbers are added to the totals."""
        entry = self.logs.pop(key, None)
        if entry is not None and entry.numbers is not None:
            self.totals.merge(over(entry.numbers))


def over(numbers: Aggregate) -> Aggregate:
    """The numbers of a log that is read no more, without the levels: nothing of it is at work."""
    for each in numbers.applications.values():
        each.levels.clear()
    return numbers


class State:
    """The folder that the journal is kept in; one bridge at a time."""

    def __init__(self, folder: Path) -> None:
        """Takes the folder, and makes it where it is missing.

        Raises:
            MachineError: It cannot be written, or another bridge has it; says which.
        """
        self._folder, self._saved = folder, b""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / "lock").open("w")
            (folder / f"{NAME}.new").touch()
        except OSError as error:
            text = f"the state of the bridge cannot be kept in {folder}: {error.strerror}; name another with --state"
            raise MachineError(text) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            raise MachineError(f"another bridge keeps its state in {folder}; give each its own with --state") from error

    def load(self) -> Journal:
        """The journal of the last bridge; a new one where there is none.

        Raises:
            MachineError: There is one that cannot be read; says what to do.
        """
        path = self._folder / NAME
        try:
            found = msgspec.msgpack.decode(path.read_bytes(), type=Journal)
            for numbers in (found.totals, *(entry.numbers for entry in found.logs.values())):
                decoded((numbers or found.totals).encoded())
        except FileNotFoundError:
            return Journal()
        except (OSError, ValueError) as error:
            raise MachineError(f"{path} cannot be read: {error}; remove it to count from nothing") from error
        if found.version != VERSION:
            raise MachineError(f"{path} is of version {found.version}, not {VERSION}; remove it to count from nothing")
        return found

    def save(self, journal: Journal) -> None:
        """Replaces the journal, if it has changed; after a crash there is the old one or the new one.

        Raises:
            OSError: It cannot be written; the old one is still there.
        """
        content, new = msgspec.msgpack.encode(journal), self._folder / f"{NAME}.new"
        if content == self._saved:
            return
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._folder / NAME)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._saved = content

    def close(self) -> None:
        """Leaves the folder to another bridge."""
        self._lock.close()
