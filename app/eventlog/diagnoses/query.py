"""A query that has ended, with what the rules ask of it and of its plan."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from app.eventlog.application import Application
from app.eventlog.diagnoses.thresholds import Thresholds
from app.eventlog.diagnoses.words import cut
from app.eventlog.findings import Finding, Severity
from app.eventlog.model import Query
from app.eventlog.operators import Operator, plan_of
from app.eventlog.reuse import ran

MAX_DESCRIPTION: Final = 100
MAX_OPERATOR: Final = 300


@dataclass(frozen=True)
class QueryView:
    """A query under the thresholds.

    Attributes:
        app: What it is a part of.
        query: Its last plan, which is the one that ran.
        limits: When rules speak.
    """

    app: Application
    query: Query
    limits: Thresholds

    @cached_property
    def operators(self) -> tuple[Operator, ...]:
        """The operators that ran for this query, each once; none where the log holds no plan."""
        try:
            plan = plan_of(self.query, self.app.numbers)
        except ValueError:
            return ()
        return tuple(ran(plan, self.app.stages_of(self.query)))

    @property
    def wall_ms(self) -> int:
        """From its start to its end; no finding in it can cost more."""
        return (self.query.ended or self.query.started) - self.query.started

    @property
    def slots(self) -> float | None:
        """How many tasks could run at once, on average; None where the log tells of no executor."""
        return self.app.slots

    def spread(self, task_ms: float | None) -> float | None:
        """Task time as wall-clock time, had it been spread over all slots; None where it cannot be told."""
        if task_ms is None or not self.slots:
            return None
        return min(float(self.wall_ms), task_ms / self.slots)

    def is_cheap(self, cost_ms: float | None) -> bool:
        """Whether a cost is known, and too small to speak of."""
        return cost_ms is not None and cost_ms < self.limits.cost_ms

    def finding(
        self,
        rule: str,
        text: str,
        *,
        advice: str,
        operator: Operator | None,
        numbers: Mapping[str, float],
        cost_ms: float | None = None,
        severity: Severity = "warning",
    ) -> Finding:
        """A finding in this query."""
        told = f"{sentence(query_name(self.app, self.query.id))}: {text}"
        where = None if operator is None else cut(operator.text or operator.name, MAX_OPERATOR)
        return Finding(rule, severity, told, advice, numbers, cost_ms, query=self.query.id, operator=where)


def query_name(app: Application, number: int) -> str:
    """A query as a person may know it: `query 7 (daily sales)`."""
    query = app.queries.get(number)
    told = cut(query.description, MAX_DESCRIPTION) if query else ""
    return f"query {number} ({told})" if told else f"query {number}"


def sentence(text: str) -> str:
    """A text as it begins a sentence; the rest of it is left as it is."""
    return text[:1].upper() + text[1:]


def value(operator: Operator, *names: str) -> float | None:
    """What an operator has counted, by the first of some names that it has; None where it has none."""
    found = next((operator.numbers[name] for name in names if name in operator.numbers), None)
    return None if found is None else found.value
