"""How many rows each section of a report lists, so that the file stays small enough to mail and to open."""

from dataclasses import dataclass, fields
from typing import Final

MAX_BYTES: Final = 4_900_000
"""Below 5 MB, which mail servers and browsers accept."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many of each are listed, the longest or the worst first; the report says how many it leaves out."""

    findings: int = 100
    rows: int = 1000
    gaps: int = 400
    stages: int = 500
    tasks: int = 5
    queries: int = 200
    operations: int = 300
    operators: int = 2500
    operators_of_one: int = 300
    executors: int = 300
    streams: int = 100
    points: int = 200
    features: int = 100
    columns: int = 500
    logs: int = 300
    properties: int = 300
    text: int = 1500
    stack_nodes: int = 20_000
    stack_functions: int = 100

    def halved(self) -> "Limits":
        """Half of each, for a report that is still too large."""
        return Limits(*(max(1, getattr(self, field.name) // 2) for field in fields(self)))
