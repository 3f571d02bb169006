"""A query that has ended, with the figures that rules need."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from spark_app.eventlog.diagnoses import settings_advice
from spark_app.eventlog.diagnoses.stream import of_batch
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding, Severity
from spark_app.eventlog.model import work_names
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import Query, StageAttempt
from spark_app.eventlog.model.operators import Operator, Plan, plan_of
from spark_app.eventlog.model.repeated_reads import ran, ran_in
from spark_app.redaction import excerpt

MAX_DESCRIPTION: Final = 100
MAX_OPERATOR: Final = 300


@dataclass(frozen=True)
class QueryView:
    """A query and the thresholds of the rules.

    Attributes:
        app: The application of the query.
        query: The query, with its final plan.
        limits: The thresholds.
    """

    app: Application
    query: Query
    limits: Thresholds

    @cached_property
    def operators(self) -> tuple[Operator, ...]:
        """The operators that ran for this query, each once; empty if the log has no plan."""
        return () if self._plan is None else tuple(ran(self._plan, self.app.stages_of(self.query)))

    @cached_property
    def planned(self) -> tuple[Operator, ...]:
        """All operators of the plan, also those that count nothing; empty if the log has none."""
        return () if self._plan is None else tuple(each for _, each in self._plan.root.walk())

    @cached_property
    def _plan(self) -> Plan | None:
        try:
            return plan_of(self.query, self.app.numbers)
        except ValueError:
            return None

    def counted(self, operator: Operator) -> Operator | None:
        """The operator, or the first below that counts something, as projections do not; None if that did not run."""
        found = next((each for each in (operator, *operator.below()) if each.accumulables), operator)
        return found if found.accumulables in self._ran else None

    @cached_property
    def _ran(self) -> frozenset[object]:
        return frozenset(each.accumulables for each in self.operators)

    @property
    def wall_ms(self) -> int:
        """The duration of the query; no finding about it can cost more."""
        return (self.query.ended or self.query.started) - self.query.started

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """The settings that applied to it."""
        return settings_advice.settings_of(self.app, self.query)

    def stages_of(self, operator: Operator) -> list[StageAttempt]:
        """The attempts of stages that the operator ran in."""
        return [stage for stage in self.app.stages_of(self.query) if ran_in(operator, stage)]

    def run_ms(self, operator: Operator) -> float | None:
        """The run time of all tasks of the stages that an operator ran in; None if no stage is known.

        The tasks also run other operators, so that this is the most that the operator can have taken.
        """
        stages = self.stages_of(operator)
        return float(sum(stage.totals.run_ms for stage in stages)) if stages else None

    def wall_of(self, task_ms: float | None, *operators: Operator) -> float | None:
        """What a time of tasks that run operators took of the wall-clock time; at most the duration of the query.

        The time is divided by the mean number of tasks that ran then, or by the slots where that is unknown; None
        if both are unknown.
        """
        if task_ms is None:
            return None
        stages = {(stage.info.id, stage.info.attempt): stage for each in operators for stage in self.stages_of(each)}
        usages = [stage.usage for stage in stages.values() if stage.usage is not None and stage.usage.task_ms]
        if usages:
            task_ms *= sum(usage.busy_ms for usage in usages) / sum(usage.task_ms for usage in usages)
        elif self.app.slots:
            task_ms /= self.app.slots
        else:
            return None
        return min(float(self.wall_ms), task_ms)

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
        cause: str = "",
    ) -> Finding:
        """A finding about this query."""
        message = f"{sentence(query_name(self.app, self.query.id))}: {text}"
        where = None if operator is None else excerpt(operator.text or operator.name, MAX_OPERATOR)
        own, stream = self.query.id, of_batch(self.app, self.query.batch)
        return Finding(
            rule, severity, message, advice, numbers, cost_ms, query=own, operator=where, cause=cause, batch_of=stream
        )


def query_name(app: Application, number: int) -> str:
    """The number and the name of a query: `query 7 (daily sales)`."""
    query = app.queries.get(number)
    description = excerpt(work_names.of_query(app, query), MAX_DESCRIPTION) if query else ""
    return f"query {number} ({description})" if description else f"query {number}"


def sentence(text: str) -> str:
    """A text with a capital first letter."""
    return text[:1].upper() + text[1:]
