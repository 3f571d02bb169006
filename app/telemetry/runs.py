"""A run and its steps: spans, counts and durations, noted in the run's folder when they start and when they end."""

import datetime
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from opentelemetry import context, trace

from app.figures import DAY_SECONDS
from app.settings import Schedule
from app.telemetry import names
from app.telemetry.facts import RunFacts, outcome_of
from app.telemetry.instruments import Measurements
from app.telemetry.names import Attribute, Metric, Outcome, StepKind
from app.telemetry.spans import Engine, Spanned

_COUNTED: Final = (
    names.READ,
    names.QUARANTINED,
    names.DUPLICATE,
    names.UNACCOUNTED,
    names.READ_BYTES,
    names.WRITTEN_BYTES,
)


class Step(Spanned):
    """One step of a run, as a with-statement."""

    def __init__(self, run: "Run", name: str, *, kind: StepKind, table: str | None) -> None:
        """A step that has not started."""
        super().__init__(run.engine)
        self._run = run
        self._name = name
        self._kind: StepKind = kind
        self._table = table
        self.rows_written: int | None = None

    def __enter__(self) -> Self:
        self.engine.problems.guard("a step is not traced", self._begin)
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        guard = self.engine.problems.guard
        guard("a step is not measured", self._measure)
        guard("a step is not traced", self.stop_span, error)
        guard("a step is not traced", self.leave_span)

    def count(
        self,
        *,
        rows_written: int | None = None,
        bytes_read: int | None = None,
        bytes_written: int | None = None,
        files: int | None = None,
    ) -> None:
        """States what the step did; what is not known is left out.

        Rows read are the run's to tell: Spark reads while it writes, so a step that reads has no number of its own.
        """
        self.rows_written = rows_written
        counts: dict[Attribute, int | str | None] = {
            names.ROWS_WRITTEN: rows_written,
            names.BYTES_READ: bytes_read,
            names.BYTES_WRITTEN: bytes_written,
            names.FILES: files,
        }
        self.engine.problems.guard("counts of a step are lost", self.set_counts, counts)

    def _begin(self) -> None:
        attributes = {**self._run.facts.identity, names.STEP.name: self._name, names.STEP_KIND.name: self._kind}
        if self._table is not None:
            attributes[names.TABLE.name] = self._table
        self.start_span(names.STEP_SPAN.of(self._name), self._run.context(), attributes)
        if self._table is not None:
            self._run.announce_table(self._table)

    def _measure(self) -> None:
        labels = {names.STEP: self._name, names.STEP_KIND: self._kind}
        self._run.measure(names.STEP_DURATION, self.seconds, labels)


class Run(Spanned):
    """One run of one pipeline for one date, as a with-statement.

    Leaving it by an exception tells the outcome, and the exception goes on unchanged.
    """

    def __init__(self, facts: RunFacts, engine: Engine) -> None:
        """A run that has not started."""
        super().__init__(engine)
        self.facts: Final = facts
        self._measurements = Measurements(engine.resource)
        self._ages: dict[str, float] = {}

    def __enter__(self) -> Self:
        guard = self.engine.problems.guard
        guard("a run is not kept in its folder", self._enter)
        guard("a run is not traced", self._begin)
        guard("a run is not measured", self._announce)
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        guard = self.engine.problems.guard
        outcome = outcome_of(error)
        guard("a run is not measured", self._conclude, outcome)
        guard("a run is not traced", self._end, outcome, error)
        guard("a run is not traced", self.leave_span)
        guard("a run is not kept in its folder", self.engine.current.leave)

    def step(self, name: str, *, kind: StepKind, table: str | None = None) -> Step:
        """A step of this run: a child of the step that it is in, or else of the run."""
        return Step(self, name, kind=kind, table=table)

    def record(
        self,
        *,
        rows_read: int | None = None,
        rows_written: Mapping[str, int] | None = None,
        rows_published: int | None = None,
        rows_quarantined: int | None = None,
        rows_duplicate: int | None = None,
        rows_unaccounted: int | None = None,
        bytes_read: int | None = None,
        bytes_written: int | None = None,
    ) -> None:
        """Adds to the totals of the pipeline and states them on the span of the run.

        Rows written are counted per table; those that were published are on the span.
        """
        totals = (
            (names.READ, names.ROWS_READ, rows_read),
            (names.QUARANTINED, names.ROWS_QUARANTINED, rows_quarantined),
            (names.DUPLICATE, names.ROWS_DUPLICATE, rows_duplicate),
            (names.UNACCOUNTED, names.ROWS_UNACCOUNTED, rows_unaccounted),
            (names.READ_BYTES, names.BYTES_READ, bytes_read),
            (names.WRITTEN_BYTES, names.BYTES_WRITTEN, bytes_written),
        )
        for metric, attribute, value in totals:
            if value is not None:
                self.measure(metric, value)
                self.engine.problems.guard("counts of a run are lost", self.set_counts, {attribute: value})
        self.engine.problems.guard("counts of a run are lost", self.set_counts, {names.ROWS_WRITTEN: rows_published})
        for table, rows in (rows_written or {}).items():
            self.measure(names.WRITTEN, rows, {names.TABLE: table})

    def record_freshness(self, table: str, *, seconds: float) -> None:
        """States how old the newest row of a table was when it was published."""
        self._ages[table] = seconds
        self.measure(names.FRESHNESS, seconds, {names.TABLE: table})

    def record_schedule(self, schedule: Schedule | None) -> None:
        """States, at a good end, by when the next run is expected, and when what was published will be too old."""
        self.engine.problems.guard("the schedule is not told", self._state_schedule, schedule)

    def measure(self, metric: Metric, value: float, labels: Mapping[Attribute, str] | None = None) -> None:
        """Records one value of a metric of the catalogue; the pipeline is added to the labels."""
        labels = {names.PIPELINE: self.facts.pipeline, **(labels or {})}
        self.engine.problems.guard("a measurement is lost", self._measurements.record, metric, value, labels)

    def announce_table(self, table: str) -> None:
        """Starts the count of the rows that a table is written at 0, in an export of its own."""
        self.measure(names.WRITTEN, 0, {names.TABLE: table})
        self.export_metrics()

    def context(self) -> context.Context:
        """The context whose span is the innermost open one of this run, whichever thread asks."""
        found = context.get_current()
        is_ours = trace.get_current_span(found).get_span_context().trace_id == self._span.get_span_context().trace_id
        return found if is_ours else trace.set_span_in_context(self._span, found)

    def export_metrics(self) -> None:
        """Writes and sends what was measured since the last time."""
        metrics = self._measurements.new()
        if metrics is not None:
            if self.engine.current.files is not None:
                self.engine.current.files.note_metrics(metrics)
            if self.engine.sender is not None:
                self.engine.sender.send(metrics)

    def _state_schedule(self, schedule: Schedule | None) -> None:
        due = time.time() + schedule.every + schedule.grace if schedule else 0
        self.measure(names.SCHEDULE_DUE, due)
        self.measure(names.SCHEDULE_MISSED, due + schedule.every if schedule else 0)
        if schedule is None:
            return
        end = datetime.datetime.combine(self.facts.date, datetime.time(), datetime.UTC).timestamp() + DAY_SECONDS
        for table, age in self._ages.items():
            self.measure(names.DATA_STALE, end - age + schedule.max_age, {names.TABLE: table})

    def _enter(self) -> None:
        if self.engine.writes_files:
            self.engine.current.enter(self.facts.folder, self.facts.identity)

    def _begin(self) -> None:
        attributes = {**self.facts.identity, names.APPLICATION.name: self.facts.application}
        self.start_span(names.RUN_SPAN.of(self.facts.pipeline), self.engine.parent, attributes)

    def _announce(self) -> None:
        """Starts what alerts count at 0: the first value that a series is seen with never counts as an increase."""
        for outcome in names.OUTCOMES:
            self.measure(names.RUNS, 0, {names.OUTCOME: outcome})
        for metric in _COUNTED:
            self.measure(metric, 0)
        self.export_metrics()

    def _conclude(self, outcome: Outcome) -> None:
        self.measure(names.RUNS, 1, {names.OUTCOME: outcome})
        self.measure(names.RUN_DURATION, self.seconds, {names.OUTCOME: outcome})
        if outcome == "succeeded":
            self.measure(names.LAST_SUCCESS, time.time())
        else:
            self.measure(names.LAST_FAILURE, time.time(), {names.OUTCOME: outcome})
        self.export_metrics()

    def _end(self, outcome: Outcome, error: BaseException | None) -> None:
        self.set_counts({names.OUTCOME: outcome})
        self.stop_span(error)
