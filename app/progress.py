"""How a run gets on: who is told, and what is known so far."""

import datetime
from dataclasses import dataclass
from typing import Protocol

from app.telemetry.runs import Step


class Watcher(Protocol):
    """Somebody who is told how a run gets on."""

    def note(self, text: str) -> None:
        """One line worth telling."""

    def step_started(self, pipeline: str, date: datetime.date, step: str) -> None:
        """A step begins."""

    def step_ended(self, pipeline: str, date: datetime.date, step: str, seconds: float, rows: int | None) -> None:
        """A step has ended well; `rows` is what it wrote, or read if it writes nothing."""


@dataclass
class Counts:
    """Rows of one run; None is not known (yet)."""

    read: int | None = None
    written: int | None = None
    quarantined: int | None = None
    duplicate: int | None = None


class Doing:
    """A step in the making: states what it does, and remembers the rows for whoever watches."""

    def __init__(self, step: Step) -> None:
        """Nothing is known yet."""
        self._step = step
        self.rows: int | None = None

    def count(self, **counts: int) -> None:
        """States numbers of the step, by the names that `Step.count` knows."""
        self.rows = counts.get("rows_written", counts.get("rows_read", self.rows))
        self._step.count(**counts)
