"""What a diagnosis says: a conclusion with its numbers, where it was seen, and what to change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["warning", "info"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One conclusion.

    Attributes:
        rule: Which diagnosis, `partition_skew`; also the heading in docs/diagnoses.md.
        severity: A warning costs time or threatens the job; an info could be better.
        text: One sentence with the numbers, for a person.
        advice: What to change, with the property or the call to change it with.
        numbers: The evidence; the unit is in the name (`longest_task_ms`, `spilled_bytes`).
        cost_ms: Wall-clock time that it is estimated to cost; None where nothing can be said.
        stage: The id and the attempt of the stage it was seen in, if it is of one.
        query: The SQL execution it was seen in, if it is of one.
        operator: The operator, with its arguments, if it is of one.
    """

    rule: str
    severity: Severity
    text: str
    advice: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    cost_ms: float | None = None
    stage: tuple[int, int] | None = None
    query: int | None = None
    operator: str | None = None
