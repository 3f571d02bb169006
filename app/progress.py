"""How a run gets on: who is told, and what is known so far."""

import datetime
from dataclasses import dataclass
from typing import Protocol


class Watcher(Protocol):
    """Somebody who is told how a run gets on."""

    def note(self, text: str) -> None:
        """One line worth telling."""

    def step_started(self, pipeline: str, date: datetime.date, step: str) -> None:
        """A step begins."""

    def step_ended(self, pipeline: str, date: datetime.date, step: str, seconds: float, rows: int | None) -> None:
        """A step has ended well; `rows` is what it wrote, None if it wrote to no table."""


@dataclass
class Counts:
    """Rows of one run; None is not known (yet)."""

    read: int | None = None
    written: int | None = None
    quarantined: int | None = None
    duplicate: int | None = None
