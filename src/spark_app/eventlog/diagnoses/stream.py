"""Some batches of a streaming query, with the figures that rules need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding, Severity
from spark_app.eventlog.model import contention
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.stream_queries import StreamQuery
from spark_app.eventlog.model.stream_samples import StreamSample, together
from spark_app.eventlog.model.streams import BatchKey
from spark_app.redaction import excerpt
from spark_app.vocabulary.names import ADD_BATCH

MAX_NAME: Final = 100


@dataclass(frozen=True)
class StreamView:
    """Batches of a streaming query in the order of time, and the thresholds of the rules.

    Attributes:
        app: The application of the query.
        query: The query, with all that is known of it.
        samples: The batches that the rules judge: all of its history, or the last part of it; not empty.
        total: All of these batches together.
        limits: The thresholds.
    """

    app: Application
    query: StreamQuery
    samples: Sequence[StreamSample]
    total: StreamSample
    limits: Thresholds

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """The settings that applied to it."""
        return {**self.app.properties, **self.query.settings}

    @cached_property
    def work_ms(self) -> int:
        """The time in which Spark ran the query and the sink."""
        return self.total.phases_ms.get(ADD_BATCH, 0)

    @cached_property
    def overhead_ms(self) -> int:
        """The time for all else: finding out what is new, planning, and noting progress in the checkpoint."""
        return sum(self.total.phases_ms.values()) - self.work_ms

    @cached_property
    def slowdown(self) -> float:
        """How much longer computation took on the hosts than on processors of its own; 1 where it was not measured."""
        return contention.slowdown_between(self.app, self.total.started, self.total.ended) or 1.0

    @property
    def wall_ms(self) -> int:
        """From the start of the first batch to the end of the last one."""
        return self.total.ended - self.total.started

    @property
    def mean_rows(self) -> float | None:
        """Rows that a batch with input read, on average; None if that is unknown, or no batch had any."""
        busy = self.total.batches - self.total.empty
        return None if self.total.rows is None or not busy else self.total.rows / busy

    @property
    def is_tiny(self) -> bool:
        """Whether many batches with few rows follow each other closely."""
        rows, every_ms = self.mean_rows, self.wall_ms / self.total.batches
        return rows is not None and rows < self.limits.tiny_batch_rows and every_ms < self.limits.tiny_batch_ms

    def quarter(self, number: int) -> StreamSample:
        """One of four parts of the samples, all of its batches together; each has at least one, of four or more."""
        length = len(self.samples)
        part = together(self.samples[number * length // 4 : (number + 1) * length // 4])
        return self.samples[-1] if part is None else part

    def finding(
        self,
        rule: str,
        text: str,
        *,
        advice: str,
        numbers: Mapping[str, float],
        cost_ms: float | None = None,
        severity: Severity = "warning",
    ) -> Finding:
        """A finding about this query."""
        name = shown_name(self.query)
        sentence = f"Streaming query {name}: {text}" if self.query.name else f"A streaming query without a name: {text}"
        numbers = {"batches": self.total.batches, **numbers}
        cause = self.query.name or self.query.id
        return Finding(rule, severity, sentence, advice, numbers, cost_ms, cause=cause, stream=name)


def shown_name(query: StreamQuery) -> str:
    """The name of a query, as findings show it, or the id of one without a name."""
    return excerpt(query.name or query.id, MAX_NAME)


def of_batch(app: Application, key: BatchKey | None) -> str | None:
    """The same of the query of a batch; None without a batch, or where the query is not known any more."""
    query = None if key is None else app.streams.queries.get(key.query)
    return None if query is None else shown_name(query)


def view(
    app: Application, query: StreamQuery, samples: Sequence[StreamSample], limits: Thresholds
) -> StreamView | None:
    """The view of some batches of a query; None without any."""
    total = together(samples)
    return None if total is None else StreamView(app, query, samples, total, limits)


def rising(levels: Sequence[int]) -> float:
    """The share of the steps between levels that do not go down, from 0 to 1; 0 without a step."""
    steps = [other >= one for one, other in pairwise(levels)]
    return sum(steps) / len(steps) if steps else 0.0
