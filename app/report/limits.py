"""How much of an application a report lists, so that it stays small enough to be mailed and opened."""

from dataclasses import dataclass, fields
from typing import Final

MAX_BYTES: Final = 4_900_000
"""Below the 5 MB that mail and browsers take without thought."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many of each are listed, the longest or the worst; a report says what it leaves out."""

    findings: int = 100
    rows: int = 1000
    gaps: int = 400
    stages: int = 500
    tasks: int = 5
    queries: int = 200
    operators: int = 2500
    operators_of_one: int = 300
    executors: int = 300
    logs: int = 300
    properties: int = 300
    text: int = 1500

    def halved(self) -> "Limits":
        """Half of each, for an application whose texts are too long."""
        return Limits(*(max(1, getattr(self, field.name) // 2) for field in fields(self)))
