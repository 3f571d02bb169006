"""The checkpoint of a bridge, with which a restarted bridge continues: one file, replaced atomically.

It has no offsets: the bridge reads an unfinished log again from its start, and makes the same spans and totals. Until
it has caught up, the totals of the checkpoint count.
"""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct, field

from spark_app.errors import MachineError
from spark_app.eventlog.bridge.metrics import Aggregate, decoded, merged
from spark_app.eventlog.bridge.series_names import SeriesNames
from spark_app.eventlog.parse.log_files import EventLog
from spark_app.local_files import try_lock, write_atomic

NAME: Final = "bridge.msgpack"
VERSION: Final = 2
MAX_APART: Final = 100
"""Abandoned logs with totals of their own, because they may still grow; older ones are merged into the totals."""


class LogState(Struct):
    """The state of one log.

    Attributes:
        inode: The inode of its file or folder; another inode under the same name is another log.
        state: Open, abandoned (`given_up`: unfinished, without new events), or closed, with its numbers in the totals.
        size: The bytes of an abandoned log, which is read again when it has grown.
        numbers: Its last exported totals; None for a closed log.
    """

    inode: int
    state: Literal["open", "given_up", "closed"] = "open"
    size: int = 0
    numbers: Aggregate | None = None


class Checkpoint(Struct):
    """The totals of the logs of a folder, and the state of each log.

    Attributes:
        started_ns: The start of the totals, in nanoseconds since the epoch.
        totals: The totals of closed and deleted logs, of the applications that are still sent.
        logs: The states of the logs by their keys.
        active: When a log of each application was last read, in seconds since the epoch.
        names: Which names have series of their own.
    """

    version: int = VERSION
    started_ns: int = field(default_factory=time.time_ns)
    totals: Aggregate = field(default_factory=Aggregate)
    logs: dict[str, LogState] = field(default_factory=dict)
    active: dict[str, float] = field(default_factory=dict)
    names: SeriesNames = field(default_factory=SeriesNames)

    def is_done(self, log: EventLog) -> bool:
        """Whether the log is finished or abandoned."""
        entry = self.logs.get(log.key)
        return entry is not None and entry.inode == log.inode and entry.state != "open"

    def has_numbers(self, log: EventLog) -> bool:
        """Whether the bridge exported totals of this log before."""
        entry = self.logs.get(log.key)
        return entry is not None and entry.numbers is not None

    def close(self, log: EventLog, numbers: Aggregate) -> None:
        """Adds the numbers of a finished log to the totals."""
        self.totals.merge(numbers)
        self.logs[log.key] = LogState(log.inode, "closed")

    def give_up(self, log: EventLog, numbers: Aggregate, *, size: int) -> None:
        """Marks a log as abandoned; its numbers stay separate, because more events may follow."""
        self.logs[log.key] = LogState(log.inode, "given_up", size, numbers)
        apart = [entry for entry in self.logs.values() if entry.state == "given_up" and entry.numbers is not None]
        for oldest in apart[:-MAX_APART]:
            self.totals.merge(over(oldest.numbers or Aggregate()))
            oldest.state, oldest.numbers = "closed", None

    def keep(self, log: EventLog, numbers: Aggregate) -> None:
        """Stores the numbers of an open log before their export."""
        self.logs[log.key] = LogState(log.inode, numbers=numbers)

    def forget(self, key: str) -> None:
        """Adds the numbers of a deleted or replaced log to the totals."""
        entry = self.logs.pop(key, None)
        if entry is not None and entry.numbers is not None:
            self.totals.merge(over(entry.numbers))

    def total(self) -> Aggregate:
        """The totals of all logs; a log that is read again counts with its earlier totals until it has caught up."""
        return merged([self.totals, *(entry.numbers for entry in self.logs.values() if entry.numbers is not None)])

    def update_active(self, now: float) -> None:
        """Notes when a log of each application was last read: an open one is read now."""
        for name in self.totals.applications:
            self.active.setdefault(name, now)
        for entry in self.logs.values():
            for name in entry.numbers.applications if entry.numbers else ():
                self.active[name] = now if entry.state == "open" else self.active.get(name, now)

    def forget_silent(self, *, since: float) -> None:
        """Forgets the totals of applications without a log that was read since a time.

        Totals of a log that may be read again are kept, because they count as long as it is read.
        """
        kept = {name for entry in self.logs.values() if entry.numbers for name in entry.numbers.applications}
        silent = [name for name, at in self.active.items() if at < since and name not in kept]
        for name in silent:
            del self.active[name]
            self.totals.applications.pop(name, None)


def over(numbers: Aggregate) -> Aggregate:
    """The numbers of a log that is no longer read, without gauges: nothing of it runs."""
    for each in numbers.applications.values():
        each.without_gauges()
    return numbers


class CheckpointInUseError(MachineError):
    """Another bridge uses the checkpoint."""


class CheckpointStore:
    """The folder of the checkpoint, which one bridge at a time uses."""

    def __init__(self, folder: Path) -> None:
        """Locks the folder, and creates it if it is missing.

        Raises:
            CheckpointInUseError: Another bridge uses the folder.
            MachineError: The folder cannot be written.
        """
        self._folder, self._saved, self._held = folder, b"", ExitStack()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "lock").touch()
            is_free = self._held.enter_context(try_lock(folder / "lock"))
        except OSError as error:
            text = (
                f"the bridge cannot write its checkpoint in {folder}: {error.strerror}; set another folder with --state"
            )
            raise MachineError(text) from error
        if not is_free:
            self.close()
            text = f"another bridge uses the checkpoint in {folder}"
            raise CheckpointInUseError(f"{text}: set another folder with --state, or wait for its end with --standby")

    def load(self) -> Checkpoint:
        """The checkpoint of the last bridge, or a new one.

        Raises:
            MachineError: The checkpoint cannot be read; the message says what to do.
        """
        path = self._folder / NAME
        try:
            checkpoint = msgspec.msgpack.decode(path.read_bytes(), type=Checkpoint)
            for numbers in (checkpoint.totals, *(entry.numbers for entry in checkpoint.logs.values())):
                decoded((numbers or checkpoint.totals).encoded())
        except FileNotFoundError:
            return Checkpoint()
        except (OSError, ValueError) as error:
            raise MachineError(
                f"cannot read the checkpoint {path}: {error}; delete it to start counting at 0"
            ) from error
        if checkpoint.version != VERSION:
            versions = f"has version {checkpoint.version}, and this bridge reads version {VERSION}"
            raise MachineError(f"the checkpoint {path} {versions}; delete it to start counting at 0")
        return checkpoint

    def save(self, checkpoint: Checkpoint) -> None:
        """Replaces the checkpoint atomically, if it has changed.

        Raises:
            OSError: The checkpoint cannot be written; the old one remains.
        """
        content = msgspec.msgpack.encode(checkpoint)
        if content == self._saved:
            return
        write_atomic(self._folder / NAME, content, is_durable=True)
        self._saved = content

    def close(self) -> None:
        """Unlocks the folder."""
        self._held.close()
