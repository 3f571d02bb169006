"""The result of a diagnosis: a conclusion with its evidence, its places and advice."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from spark_app.formatting import duration, share

Severity = Literal["warning", "info"]
Subject = Literal["job", "data", "host"]
SUBJECTS: Final[Mapping[str, Subject]] = {
    "cpu_starvation": "host",
    "excluded_executors": "host",
    "partition_skew": "data",
    "skewed_state": "data",
    "small_files_read": "data",
}
"""What a rule is about, where that is not the job: other data, or another host, would not have the finding."""


class Place(NamedTuple):
    """What a finding is about, with its estimated cost in wall-clock time: a stage attempt, a query, or a stream."""

    stage: tuple[int, int] | None
    query: int | None
    cost_ms: float | None
    stream: str | None = None

    def __str__(self) -> str:
        """The stage, else the query: `stage 3`, `stage 3 attempt 1`, `query 7`, `streaming query orders`."""
        if self.stream is not None:
            return f"streaming query {self.stream}"
        if self.stage is None:
            return "the application" if self.query is None else f"query {self.query}"
        number, attempt = self.stage
        return f"stage {number} attempt {attempt}" if attempt else f"stage {number}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One conclusion.

    Attributes:
        rule: The name of the rule, such as `partition_skew`; also its heading in docs/diagnoses.md.
        severity: A warning costs time or threatens the job; an info could be better.
        text: One sentence with the numbers, for a person.
        advice: What to change, with the property or the call to change it with.
        numbers: The evidence; the unit is in the name (`longest_task_ms`, `spilled_bytes`).
        cost_ms: The estimated cost in wall-clock time over all places; None if unknown.
        stage: The id and the attempt of its stage, if any; of several, that with the highest cost.
        query: The number of its SQL execution, if any; of several, that with the highest cost.
        operator: Its operator with the arguments, if any.
        cause: Distinguishes the causes that one rule finds: a path, a function, an error. Places with the same cause
            make one finding.
        cost_ratio: The cost as a share of the duration of the application; None if unknown or not judged yet.
        places: Where it was found, the highest cost first; a few of many.
        stream: The name of its streaming query, or the id of one without a name.
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
    cause: str = ""
    cost_ratio: float | None = None
    places: tuple[Place, ...] = ()
    stream: str | None = None

    @property
    def subject(self) -> Subject:
        """What it is about: the job, the data that it reads, or the hosts that it runs on."""
        return SUBJECTS.get(self.rule, "job")

    @property
    def place(self) -> Place:
        """Where it was found, or where its cost is highest."""
        return Place(self.stage, self.query, self.cost_ms, self.stream)

    @property
    def cost(self) -> str:
        """The cost for a person: `about 54.0 s, 18 % of the application`; empty if unknown."""
        if self.cost_ms is None:
            return ""
        part = "" if self.cost_ratio is None else f", {share(self.cost_ratio)} of the application"
        return f"about {duration(self.cost_ms)}{part}"
