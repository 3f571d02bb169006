"""The event logs that are in a folder now."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.eventlog.follow import FOLDER, IN_PROGRESS, parts

_NO_LOGS: Final = (".crc", ".tmp", ".lock")


@dataclass(frozen=True, slots=True)
class Log:
    """A log in a folder of logs.

    Attributes:
        key: Its name, the same while it grows and when it is finished.
        path: Where it is now.
        inode: Tells it from another log that comes later under the same name.
    """

    key: str
    path: Path
    inode: int

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder of rolled files; a single file may be no event log at all."""
        return self.key.startswith(FOLDER)

    def size(self) -> int:
        """Bytes on disk now; 0 where it is gone."""
        return sum(size for size, _ in self._states())

    def modified(self) -> float:
        """When it was last written, in seconds since the epoch; 0 where it is gone."""
        return max((time for _, time in self._states()), default=0.0)

    def is_readable(self) -> bool:
        """Whether this program may read it."""
        return all(os.access(part.path, os.R_OK) for part in parts(self.path))

    def _states(self) -> list[tuple[int, float]]:
        found = []
        for part in parts(self.path):
            try:
                state = part.path.stat()
            except OSError:
                continue
            found.append((state.st_size, state.st_mtime))
        return found


def newest_first(folder: Path) -> list[Log]:
    """The logs of a folder, the one that was written last first.

    Raises:
        OSError: The folder is not there, or cannot be read.
    """
    return sorted(logs_in(folder).values(), key=Log.modified, reverse=True)


def logs_in(folder: Path) -> dict[str, Log]:
    """The logs of a folder by their keys; hidden files, checksums and files that are not yet in place are none.

    Any other file counts as a log until it is read.

    Raises:
        OSError: The folder is not there, or cannot be read.
    """
    found: dict[str, Log] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(".") or name.endswith(_NO_LOGS) or entry.is_dir() != name.startswith(FOLDER):
                continue
            key = name.removesuffix(IN_PROGRESS)
            if key not in found or name == key:
                found[key] = Log(key, folder / name, entry.inode())
    return found
