"""Lists the event logs of a folder."""

from dataclasses import dataclass
from typing import Final

from spark_app.eventlog.parse.locations import LogPath, State, is_readable, listing, state
from spark_app.eventlog.parse.log_tailer import FOLDER, IN_PROGRESS, parts

_NO_LOGS: Final = (".crc", ".tmp", ".lock")


@dataclass(frozen=True, slots=True)
class EventLog:
    """A log in a folder of logs.

    Attributes:
        key: Its name, the same while it grows and when it is finished.
        path: Its current path.
        inode: Distinguishes it from a later log of the same name, on this machine.
    """

    key: str
    path: LogPath
    inode: int

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder of rolled files; a single file may not be an event log."""
        return self.key.startswith(FOLDER)

    def size(self) -> int:
        """Bytes on disk; 0 if the log was deleted."""
        return sum(each.size for each in self._states())

    def modified(self) -> float:
        """The time of the last write, in seconds since the epoch; 0 if the log was deleted."""
        return max((each.modified for each in self._states()), default=0.0)

    def is_readable(self) -> bool:
        """Whether this program may read it."""
        return all(is_readable(part.path) for part in parts(self.path))

    def _states(self) -> list[State]:
        return [state(part.path) for part in parts(self.path)]


def newest_first(folder: LogPath) -> list[EventLog]:
    """The logs of a folder, by the time of their last write, the newest first.

    Raises:
        OSError: The folder is missing, or cannot be read.
    """
    return sorted(logs_in(folder).values(), key=lambda log: (log.modified(), log.key), reverse=True)


def logs_in(folder: LogPath) -> dict[str, EventLog]:
    """The logs of a folder by their keys; without hidden, checksum and temporary files.

    Any other file counts as a log until it is read.

    Raises:
        OSError: The folder is missing, or cannot be read.
    """
    logs: dict[str, EventLog] = {}
    for name, is_folder, number in listing(folder):
        if name.startswith(".") or name.endswith(_NO_LOGS) or is_folder != name.startswith(FOLDER):
            continue
        key = name.removesuffix(IN_PROGRESS)
        if key not in logs or name == key:
            logs[key] = EventLog(key, folder / name, number)
    return logs
