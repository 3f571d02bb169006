"""The logs of a folder that are to be read, and in which order: what runs now before history."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.errors import InputError
from app.eventlog.bridge.followed import Followed
from app.eventlog.bridge.journal import Journal
from app.eventlog.logs import Log, logs_in

AT_ONCE: Final = 4
"""How many logs that are behind are read at a time, the newest first."""
LOOK_AGAIN_SECONDS: Final = 10.0
"""How often logs that were given up, or could not be read, are looked at."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A log that was found and is not read yet: its last change, its bytes and when it was found."""

    log: Log
    modified: float
    size: int
    found_at: float


class Shelf:
    """The logs of a folder.

    Attributes:
        followed: By their keys, the logs that are being read, or were read as far as they go.
        waiting: By their keys, the logs that are still to be read.
        ending: The keys of the logs that were read to their end and are not yet in the journal.
    """

    def __init__(
        self, folder: Path, journal: Journal, *, follow: Callable[[Log], Followed], say: Callable[[str], None]
    ) -> None:
        """No log is known before the first look."""
        self.followed: dict[str, Followed] = {}
        self.waiting: dict[str, Waiting] = {}
        self.ending: set[str] = set()
        self._folder, self._journal, self._follow, self._say = folder, journal, follow, say
        self._here: dict[str, Log] = {}
        self._gone: dict[str, float] = {}
        self._not_before: dict[int, float] = {}
        self._looked_again = 0.0
        self._trouble: str | None = None

    def look(self, *, forget_after: float) -> None:
        """Notes which logs are new, replaced or gone; a log that is gone for long is forgotten."""
        try:
            found = logs_in(self._folder)
        except OSError as error:
            self._told(f"{self._folder} cannot be read: {error.strerror}; waiting for it")
            return
        self._told(None)
        now = time.monotonic()
        is_again = now - self._looked_again >= LOOK_AGAIN_SECONDS
        self._looked_again = now if is_again else self._looked_again
        self._here = found
        for log in found.values():
            self._see(log, is_again=is_again)
        self.waiting = {key: waiting for key, waiting in self.waiting.items() if key in found}
        self._forget(now - forget_after)

    def due(self, *, has_room: bool) -> list[Followed]:
        """The logs to read now: all that were read to their end, to see whether they grew, and the newest others.

        Args:
            has_room: Whether logs that were not read yet may be begun.
        """
        current = [followed for followed in self.followed.values() if not followed.is_behind]
        behind = [(followed.recency, key) for key, followed in self.followed.items() if followed.is_behind]
        if has_room:
            behind += [(waiting.modified, key) for key, waiting in self.waiting.items()]
        newest = [key for _, key in sorted(behind, reverse=True)[:AT_ONCE]]
        return current + [followed for key in newest if (followed := self._begun(key)) is not None]

    def is_gone(self, log: Log) -> bool:
        """Whether a log was not there at the last look, or another one had its name."""
        return log.key not in self._here or self._here[log.key].inode != log.inode

    def leave_alone(self, log: Log, why: str, *, seconds: float) -> None:
        """Says why a log is not read, and looks at it again after a time."""
        if log.inode not in self._not_before:
            self._say(f"{log.path} is left alone: {why}")
        self._not_before[log.inode] = time.monotonic() + seconds

    def _see(self, log: Log, *, is_again: bool) -> None:
        followed = self.followed.get(log.key)
        if followed is not None and followed.log.inode == log.inode:
            followed.log = log
            return
        entry = self._journal.logs.get(log.key)
        if followed is not None or log.key in self.ending:
            return  # another log has this name now: it waits until the first is done
        if entry is not None and entry.inode != log.inode:
            self._journal.forget(log.key)
        elif self._journal.is_done(log):
            has_grown = is_again and entry is not None and entry.state == "given_up" and log.size() > entry.size
            if not has_grown:
                return
        now = time.monotonic()
        if log.key not in self.waiting and self._not_before.get(log.inode, 0.0) <= now:
            self.waiting[log.key] = Waiting(log, log.modified(), log.size(), now)

    def _begun(self, key: str) -> Followed | None:
        if key in self.followed:
            return self.followed[key]
        log = self.waiting.pop(key).log
        if not log.is_readable():
            self.leave_alone(log, "no permission to read it", seconds=LOOK_AGAIN_SECONDS)
            return None
        try:
            self.followed[key] = self._follow(log)
        except InputError as error:
            self.leave_alone(log, str(error), seconds=float("inf"))
        return self.followed.get(key)

    def _forget(self, before: float) -> None:
        missing = self._journal.logs.keys() - self._here.keys() - self.followed.keys() - self.ending
        self._gone = {key: self._gone.get(key, time.monotonic()) for key in missing}
        for key in [key for key, since in self._gone.items() if since < before]:
            self._journal.forget(key)

    def _told(self, trouble: str | None) -> None:
        """Prints once why the folder cannot be read."""
        if trouble is not None and trouble != self._trouble:
            self._say(trouble)
        self._trouble = trouble
