"""The result of a diagnosis: a conclusion with its evidence, its places and advice."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from msgspec import Struct

from spark_app.eventlog.document import Count, Ms, Name, StageKey
from spark_app.formatting import between, count, duration, share

Severity = Literal["warning", "info"]
Subject = Literal["job", "data", "host"]


class Place(Struct, frozen=True):
    """What a finding is about, with its estimated cost in wall-clock time; all None is the application."""

    stage: StageKey | None
    query: int | None
    stream: Name | None
    cost_ms: Ms | None

    def __str__(self) -> str:
        """The stage, else the query: `stage 3`, `stage 3 attempt 1`, `query 7`, `streaming query orders`."""
        if self.stream is not None:
            return f"streaming query {self.stream}"
        if self.stage is None:
            return "the application" if self.query is None else f"query {self.query}"
        attempt = f" attempt {self.stage.attempt}" if self.stage.attempt else ""
        return f"stage {self.stage.id}{attempt}"


class HotKey(Struct, frozen=True):
    """A key that many rows of the input have, by a sample of it; `values` are those of the columns, None is NULL.

    `is_whole` where the sample has all rows. `between` are the operators of the query between the files (`source`) and
    the shuffle that change which rows there are.
    """

    columns: list[Name]
    values: list[Name | None]
    ratio: float
    rows: Count
    is_whole: bool
    source: Name
    between: list[Name]

    def __str__(self) -> str:
        """A sentence: `country = 'DE' has 63 % of 200,000 sampled rows of file:/data/sales`."""
        pairs = zip(self.columns, self.values, strict=True)
        key = ", ".join(f"{name} = {'NULL' if value is None else repr(value)}" for name, value in pairs)
        kind = "" if self.is_whole else "sampled "
        before = f", before {' and '.join(self.between)} of the query" if self.between else ""
        return f"{key} has {share(self.ratio)} of {count(self.rows)} {kind}rows of {self.source}{before}"


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
        hot_key: The key behind it, where it was asked for and a sample of the input has it.
        because: The rule of the finding that this one is a consequence of; None for a cause of its own.
        cost_low_ms, cost_high_ms: At least and at most, where the log cannot tell it closely; else None.
        stage: The id and the attempt of its stage, if any; of several, that with the highest cost.
        query: The number of its SQL execution, if any; of several, that with the highest cost.
        operator: Its operator with the arguments, if any.
        cause: Distinguishes the causes that one rule finds: a path, a function, an error. Places with the same cause
            make one finding.
        cost_ratio: The cost as a share of the duration of the application; None if unknown or not judged yet.
        places: Where it was found, the highest cost first; a few of many.
        stream: The name of its streaming query, or the id of one without a name.
        batch_of: The same of the streaming query in a batch of which its stage or its query ran.
        subject: What it is about: the job, the data that it reads, or the hosts that it runs on.
        limits: The thresholds of its rule as they were, by their keys in `config/diagnoses.yml`.
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
    batch_of: str | None = None
    cost_low_ms: float | None = None
    cost_high_ms: float | None = None
    because: str | None = None
    hot_key: HotKey | None = None
    subject: Subject = "job"
    limits: Mapping[str, float] = field(default_factory=dict)

    def within(self, bounds: tuple[float | None, float | None] | None) -> "Finding":
        """The same with the least and the most that it may cost, if both are known.

        Each is at least 0, and the estimate between them.
        """
        low, high = bounds or (None, None)
        if low is None or high is None or self.cost_ms is None:
            return self
        return replace(self, cost_low_ms=max(0.0, min(low, self.cost_ms)), cost_high_ms=max(high, self.cost_ms))

    @property
    def place(self) -> Place:
        """Where it was found, or where its cost is highest."""
        return Place(StageKey(*self.stage) if self.stage else None, self.query, self.stream, self.cost_ms)

    @property
    def found_in(self) -> tuple[Place, ...]:
        """Where it was found: its places, or the only one."""
        return self.places or (self.place,)

    @property
    def cost(self) -> str:
        """The cost for a person: `about 54.0 s (20.0 s to 1 min), 18 % of the application`; empty if unknown."""
        if self.cost_ms is None:
            return ""
        part = "" if self.cost_ratio is None else f", {share(self.cost_ratio)} of the application"
        return f"about {duration(self.cost_ms)}{between(self.cost_low_ms, self.cost_high_ms)}{part}"
