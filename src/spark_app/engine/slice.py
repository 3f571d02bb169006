"""What one run of a pipeline is about: a day, a model version, or nothing in particular."""

import datetime
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slice:
    """The part of the data that one run is about.

    Attributes:
        key: Names the run, its lock and its span attribute `pipeline.run.slice`: `2024-01-01`, or "" for no part.
    """

    key: str = ""


@dataclass(frozen=True, slots=True)
class Day(Slice):
    """The slice of a daily pipeline."""

    date: datetime.date = datetime.date.min

    @classmethod
    def of(cls, date: datetime.date) -> "Day":
        """The slice of a date."""
        return cls(date.isoformat(), date)
