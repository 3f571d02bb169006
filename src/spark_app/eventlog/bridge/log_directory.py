"""Finds the event logs of a folder, and orders them: running applications before history."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from spark_app.errors import InputError
from spark_app.eventlog.bridge.checkpoint import Checkpoint
from spark_app.eventlog.bridge.log_processor import LogProcessor
from spark_app.eventlog.parse.locations import LogPath
from spark_app.eventlog.parse.log_files import EventLog, logs_in

MAX_LOGS_IN_TURN: Final = 4
"""How many logs with unread lines the bridge reads in turn, the newest first."""
LOOK_AGAIN_SECONDS: Final = 10.0
"""The interval at which the bridge checks abandoned and unreadable logs."""


@dataclass(frozen=True, slots=True)
class PendingLog:
    """A log that the bridge has not started to read: its last change, its bytes, and when the bridge found it."""

    log: EventLog
    modified: float
    size: int
    found_at: float


class LogDirectory:
    """The event logs of a folder.

    Attributes:
        followed: The logs that the bridge reads, by their keys.
        waiting: The logs that it has not started to read, by their keys.
        ending: The keys of the logs that it has read to their end and not yet written to the checkpoint.
    """

    def __init__(
        self,
        folder: LogPath,
        checkpoint: Checkpoint,
        *,
        follow: Callable[[EventLog], LogProcessor],
        print_line: Callable[[str], None],
    ) -> None:
        """No log is known before the first call of `look`."""
        self.followed: dict[str, LogProcessor] = {}
        self.waiting: dict[str, PendingLog] = {}
        self.ending: set[str] = set()
        self._folder, self._checkpoint, self._follow, self._print_line = folder, checkpoint, follow, print_line
        self._here: dict[str, EventLog] = {}
        self._gone: dict[str, float] = {}
        self._not_before: dict[int, float] = {}
        self._looked_again = 0.0
        self._trouble: str | None = None

    def look(self, *, forget_after: float) -> None:
        """Lists the folder for new, replaced and deleted logs; forgets logs that were deleted long ago."""
        try:
            logs = logs_in(self._folder)
        except (OSError, InputError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            self._report(f"the bridge cannot read {self._folder}: {why}; it keeps trying")
            return
        self._report(None)
        now = time.monotonic()
        is_again = now - self._looked_again >= LOOK_AGAIN_SECONDS
        self._looked_again = now if is_again else self._looked_again
        self._here = logs
        for log in logs.values():
            self._see(log, is_again=is_again)
        self.waiting = {key: waiting for key, waiting in self.waiting.items() if key in logs}
        self._forget(now - forget_after)

    def due(self, *, has_room: bool) -> list[LogProcessor]:
        """The logs to read now: all that the bridge has caught up with, and the newest of the others.

        Args:
            has_room: Whether the bridge may start to read new logs.
        """
        current = [followed for followed in self.followed.values() if not followed.is_behind]
        behind = [(followed.recency, key) for key, followed in self.followed.items() if followed.is_behind]
        if has_room:
            behind += [(waiting.modified, key) for key, waiting in self.waiting.items()]
        newest = [key for _, key in sorted(behind, reverse=True)[:MAX_LOGS_IN_TURN]]
        return current + [followed for key in newest if (followed := self._begun(key)) is not None]

    def is_gone(self, log: EventLog) -> bool:
        """Whether the last listing lacked the log, or had another log under its name."""
        return log.key not in self._here or self._here[log.key].inode != log.inode

    def postpone(self, log: EventLog, why: str, *, seconds: float) -> None:
        """Reports why the bridge skips a log, and tries it again after this time."""
        if log.inode not in self._not_before:
            self._print_line(f"the bridge skips {log.path}: {why}")
        self._not_before[log.inode] = time.monotonic() + seconds

    def _see(self, log: EventLog, *, is_again: bool) -> None:
        followed = self.followed.get(log.key)
        if followed is not None and followed.log.inode == log.inode:
            followed.log = log
            return
        entry = self._checkpoint.logs.get(log.key)
        if followed is not None or log.key in self.ending:
            return  # a replaced log waits until the bridge is done with the first one
        if entry is not None and entry.inode != log.inode:
            self._checkpoint.forget(log.key)
        elif self._checkpoint.is_done(log):
            has_grown = is_again and entry is not None and entry.state == "given_up" and log.size() > entry.size
            if not has_grown:
                return
        now = time.monotonic()
        if log.key not in self.waiting and self._not_before.get(log.inode, 0.0) <= now:
            self.waiting[log.key] = PendingLog(log, log.modified(), log.size(), now)

    def _begun(self, key: str) -> LogProcessor | None:
        if key in self.followed:
            return self.followed[key]
        log = self.waiting.pop(key).log
        if not log.is_readable():
            self.postpone(log, "it has no permission to read this log", seconds=LOOK_AGAIN_SECONDS)
            return None
        try:
            self.followed[key] = self._follow(log)
        except InputError as error:
            self.postpone(log, str(error), seconds=float("inf"))
        return self.followed.get(key)

    def _forget(self, before: float) -> None:
        missing = self._checkpoint.logs.keys() - self._here.keys() - self.followed.keys() - self.ending
        self._gone = {key: self._gone.get(key, time.monotonic()) for key in missing}
        for key in [key for key, since in self._gone.items() if since < before]:
            self._checkpoint.forget(key)

    def _report(self, trouble: str | None) -> None:
        """Prints a problem with the folder once."""
        if trouble is not None and trouble != self._trouble:
            self._print_line(trouble)
        self._trouble = trouble
