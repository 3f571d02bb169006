"""Moments at which streaming queries are killed: when files appear, or between the two commits of a micro-batch."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from spark_app.execution.run import Job
from tests.integration.processes import children_of, is_alive
from tests.polling import poll_until

STEPS: Final = ("offsets/*", "commits/*", "state/*/*/*")
"""Files of a checkpoint whose appearance is a moment to kill at: a batch is planned, is done, has written state."""
WRITTEN: Final = ("_delta_log/*.json", "**/*.parquet")
"""The same of a table: a commit, data."""
COMMITS: Final = "data/checkpoints/*/commits/*"
IDLE_SECONDS: Final = 10.0
LOOK_SECONDS: Final = 0.2


class Moment(Protocol):
    """A moment in the life of a program that runs queries."""

    @property
    def pause(self) -> float:
        """Seconds between two looks."""

    def has_come(self, process: subprocess.Popen[str]) -> bool:
        """Whether it is now; the program is killed then."""


class NewFiles:
    """So many files have appeared in a home folder."""

    pause = 0.02

    def __init__(self, home: Path, pattern: str, count: int) -> None:
        """Counts from now on."""
        self._home, self._pattern, self._count = home, pattern, count
        self._before = files(home, pattern)

    def has_come(self, process: subprocess.Popen[str]) -> bool:
        """Whether that many are new."""
        return self._new() >= self._count

    def _new(self) -> int:
        return len(files(self._home, self._pattern) - self._before)

    def __str__(self) -> str:
        return f"{self._new()} of {self._count} new {self._pattern}"


class OrIdle:
    """A moment, or no query has done anything for a while after the first micro-batch."""

    def __init__(self, moment: Moment, home: Path) -> None:
        """No query has done anything yet."""
        self._moment, self._home, self.pause = moment, home, moment.pause
        self._seen, self._changed_at = files(home, COMMITS), 0.0
        self._looked_at = time.monotonic()

    def has_come(self, process: subprocess.Popen[str]) -> bool:
        """Whether one of them is now."""
        return self._moment.has_come(process) or self._is_idle()

    def _is_idle(self) -> bool:
        now = time.monotonic()
        if now - self._looked_at > LOOK_SECONDS:
            self._looked_at, seen = now, files(self._home, COMMITS)
            if seen != self._seen:
                self._seen, self._changed_at = seen, now
        return bool(self._changed_at) and now - self._changed_at > IDLE_SECONDS

    def __str__(self) -> str:
        return f"{self._moment}"


class BetweenCommits:
    """A micro-batch has committed rows to its Delta table, and not yet itself to its checkpoint.

    At each commit to the table the program is held still; it goes on if the checkpoint has the batch already, or if the
    commit has no rows, which nobody would miss or see twice.
    """

    pause = 0.002

    def __init__(self, home: Path, job: Job) -> None:
        """From now on."""
        self._query, self._table = job.name, job.pipeline.writes[0].name
        self._log = home / "data" / "warehouse" / self._table / "_delta_log"
        self._checkpoint = home / "data" / "checkpoints" / job.name
        self._seen = self._versions()
        self.batch: int | None = None

    def has_come(self, process: subprocess.Popen[str]) -> bool:
        """Whether it is now; the program stands still then."""
        new = self._versions() - self._seen
        if not new:
            return False
        stopped = children_of(process.pid)  # the JVM
        _send(signal.SIGSTOP, stopped)
        self._seen |= new
        batch = batch_with_rows(self._log / max(new))
        if batch is None or self._has(batch):
            _send(signal.SIGCONT, stopped)
            return False
        self.batch = batch
        return True

    def _versions(self) -> set[str]:
        return {path.name for path in self._log.glob("[0-9]*.json")}

    def _has(self, batch: int) -> bool:
        return (self._checkpoint / "commits" / str(batch)).exists()

    def __str__(self) -> str:
        where = "nowhere" if self.batch is None else "in both" if self._has(self.batch) else f"in {self._table} only"
        return f"batch {self.batch} of {self._query} {where}"


def moments_of(home: Path, job: Job) -> list[Callable[[int], Moment]]:
    """Functions that give the moments of a query, given a number of files."""
    patterns = [f"data/checkpoints/{job.name}/{step}" for step in STEPS]
    patterns += [f"data/warehouse/{table.name}/{file}" for table in job.pipeline.writes for file in WRITTEN]
    between: list[Callable[[int], Moment]] = [lambda _: BetweenCommits(home, job)] if job.pipeline.writes else []
    return [*(partial(NewFiles, home, pattern) for pattern in patterns), *between]


def batch_with_rows(commit: Path) -> int | None:
    """The number of the micro-batch that a commit of Delta's log adds files for; None if it adds none."""
    actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
    batches = [action["txn"]["version"] for action in actions if "txn" in action]
    return batches[0] if batches and any("add" in action for action in actions) else None


def files(home: Path, pattern: str) -> set[str]:
    """The files of a home folder that a pattern matches."""
    return {str(path) for path in home.glob(pattern)}


def kill_all(process: subprocess.Popen[str]) -> None:
    """Ends a program by SIGKILL with all that it has started: the JVM, and Spark's Python workers."""
    pids = [process.pid, *descendants(process.pid)]
    _send(signal.SIGKILL, pids)
    process.wait()
    poll_until(lambda: not any(map(is_alive, pids)), f"the end of {pids}")


def descendants(pid: int) -> list[int]:
    """All processes below a process."""
    below = children_of(pid)
    return [*below, *(each for child in below for each in descendants(child))]


def _send(number: signal.Signals, pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
