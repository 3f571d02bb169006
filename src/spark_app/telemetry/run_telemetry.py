"""A run and its steps: spans, counts and durations, written to the folder of the run and sent while it lasts."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self

from opentelemetry import context
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Link, NoOpTracer, Tracer, get_current_span, set_span_in_context

from spark_app.settings import Schedule
from spark_app.telemetry.delivery import RunDelivery
from spark_app.telemetry.errors import RunErrors
from spark_app.telemetry.instruments import Measurements, resource_of_series
from spark_app.telemetry.process_export import ProcessExport
from spark_app.telemetry.run_files import RunFiles
from spark_app.telemetry.run_identity import RunIdentity, outcome_of
from spark_app.telemetry.run_scope import RunScope, current_run
from spark_app.telemetry.spans import SpanScope
from spark_app.vocabulary import names
from spark_app.vocabulary.names import Attribute, Metric, Outcome, StepKind

_LOG: Final = logging.getLogger(__name__)
_COUNTED: Final = (
    names.READ,
    names.QUARANTINED,
    names.DUPLICATE,
    names.UNACCOUNTED,
    names.READ_BYTES,
    names.WRITTEN_BYTES,
)


class StepTelemetry(SpanScope):
    """One step of a run, as a with-statement."""

    def __init__(self, run: "RunTelemetry", name: str, *, kind: StepKind, table: str | None) -> None:
        """A step that has not started."""
        super().__init__(run.errors)
        self._run = run
        self._name = name
        self._kind: StepKind = kind
        self._table = table
        self.rows_written: int | None = None

    def __enter__(self) -> Self:
        self.errors.guard("a step is not traced", self._start)
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        self.errors.guard("a step is not measured", self._measure)
        self.errors.guard("a step is not traced", self.end_span, error)
        self.errors.guard("a step is not traced", self.detach_span)

    def count(
        self,
        *,
        rows_written: int | None = None,
        bytes_read: int | None = None,
        bytes_written: int | None = None,
        files: int | None = None,
    ) -> None:
        """Sets the counts of the step; unknown ones are left out.

        Rows read belong to the run: Spark reads while it writes, so a step that reads has no number of its own.
        """
        self.rows_written = rows_written
        counts: dict[Attribute, int | str | None] = {
            names.ROWS_WRITTEN: rows_written,
            names.BYTES_READ: bytes_read,
            names.BYTES_WRITTEN: bytes_written,
            names.FILES: files,
        }
        self.errors.guard("counts of a step are lost", self.set_counts, counts)

    def about(self, version: int, *, average_precision: float | None = None, roc_auc: float | None = None) -> None:
        """Sets the version of a model that the step is about, and its scores on held-out rows where they are known."""
        facts: dict[Attribute, float | str | None] = {
            names.MODEL_VERSION: version,
            names.AVERAGE_PRECISION: average_precision,
            names.ROC_AUC: roc_auc,
        }
        self.errors.guard("the version of a step is lost", self.set_counts, facts)

    def _start(self) -> None:
        attributes = {**self._run.identity.attributes, names.STEP.name: self._name, names.STEP_KIND.name: self._kind}
        if self._table is not None:
            attributes[names.TABLE.name] = self._table
        parent, links = self._run.context(), list[Link]()
        if self._kind == "maintain":  # a run for months would have thousands of them in its trace
            links = [Link(get_current_span(parent).get_span_context())]
            parent = set_span_in_context(INVALID_SPAN, parent)
        self.start_span(self._run.tracer, names.STEP_SPAN.of(self._name), parent, attributes, links=links)
        if self._table is not None:
            self._run.announce_table(self._table)

    def _measure(self) -> None:
        labels = {names.STEP: self._name, names.STEP_KIND: self._kind}
        self._run.measure(names.STEP_DURATION, self.seconds, labels)


class FitTelemetry(SpanScope):
    """One fit of a model, as a with-statement; fits may run in threads of their own."""

    def __init__(self, run: "RunTelemetry", parent: Context, algorithm: str, parameters: str, fold: int | None) -> None:
        """A fit that has not started."""
        super().__init__(run.errors)
        self._run = run
        self._parent = parent
        self._algorithm = algorithm
        self._counts: dict[Attribute, float | str | None] = {
            names.ALGORITHM: algorithm,
            names.FIT_PARAMETERS: parameters,
            names.FIT_FOLD: fold,
        }

    def __enter__(self) -> Self:
        self.errors.guard("a fit is not traced", self._start)
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        self._run.measure(names.ML_FITS, self.seconds, {names.ALGORITHM: self._algorithm})
        self.errors.guard("a fit is not traced", self.end_span, error)
        self.errors.guard("a fit is not traced", self.detach_span)

    def scored(self, score: float) -> None:
        """Sets the score on the rows that were left out."""
        self.errors.guard("the score of a fit is lost", self.set_counts, {names.FIT_SCORE: score})

    def _start(self) -> None:
        name = names.FIT_SPAN.of(self._algorithm)
        self.start_span(self._run.tracer, name, self._parent, self._run.identity.attributes)
        self.set_counts(self._counts)


class RunTelemetry(SpanScope):
    """One run of one pipeline for one slice, as a with-statement; several runs of a process may be open at a time.

    The run is the current one of the code within the with-statement: log records of that code go to the files of the
    run. Runs that are open in one thread end in the reverse order; other threads are described in `run_scope`. An
    exception that leaves the run decides its outcome and is raised unchanged.
    """

    def __init__(self, identity: RunIdentity, process: ProcessExport) -> None:
        """A run that has not started."""
        self.identity: Final = identity
        self.tracer: Tracer = NoOpTracer()
        self._scope = RunScope(identity.attributes, RunErrors(process.errors))
        super().__init__(self._scope.errors)
        self._process = process
        self._context: Context | None = None
        self._measurements = Measurements(resource_of_series(process.resource, identity.pipeline))
        self._totals: Counter[Attribute] = Counter()
        self._announced = set[str]()
        self._newest: dict[str, float] = {}
        self._delivery: RunDelivery | None = None
        self._before_flush: list[Callable[[], object]] = []

    def __enter__(self) -> Self:
        self.errors.guard("a run is not kept in its folder", self._start_delivery)
        self.errors.guard("a run is not kept in its folder", self._open_files)
        self.errors.guard("a run is not traced", self._start)
        self.errors.guard("a run is not measured", self._announce)
        self.errors.guard("a run is not flushed", self._process.flushing.add, self)
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        outcome = outcome_of(error)
        self._process.flushing.remove(self)
        self.errors.guard("a run is not measured", self._measure_end, outcome)
        self.errors.guard("a run is not traced", self._end, outcome, error)
        self.errors.guard("a run is not kept in its folder", self._close_files)
        if self._delivery is not None:
            self._delivery.end()
        self.errors.guard("a run is not traced", self.detach_span)

    def step(self, name: str, *, kind: StepKind, table: str | None = None) -> StepTelemetry:
        """A step of this run: a child of the step that it is in, or else of the run; maintenance links to that."""
        return StepTelemetry(self, name, kind=kind, table=table)

    def fit(self, parent: Context, algorithm: str, *, parameters: str, fold: int | None = None) -> FitTelemetry:
        """A fit of a model, in any thread.

        Args:
            parent: The `context` of the step that it belongs to.
            algorithm: The name of the algorithm.
            parameters: Those that are varied, as text.
            fold: The number of the fold; None for a fit on all rows.
        """
        return FitTelemetry(self, parent, algorithm, parameters, fold)

    @contextmanager
    def attach(self) -> Iterator[None]:
        """Makes this run the current one, in a thread that was started without the context of the run."""
        token = context.attach(self.context())
        try:
            yield
        finally:
            context.detach(token)

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
        """Adds to the totals of the pipeline, and to those on the span of the run.

        The metric of rows written counts all tables; the span has the rows that were published.
        """
        counts = (
            (names.READ, names.ROWS_READ, rows_read),
            (names.QUARANTINED, names.ROWS_QUARANTINED, rows_quarantined),
            (names.DUPLICATE, names.ROWS_DUPLICATE, rows_duplicate),
            (names.UNACCOUNTED, names.ROWS_UNACCOUNTED, rows_unaccounted),
            (names.READ_BYTES, names.BYTES_READ, bytes_read),
            (names.WRITTEN_BYTES, names.BYTES_WRITTEN, bytes_written),
        )
        for metric, attribute, value in counts:
            if value is not None:
                self.measure(metric, value)
                self._add_to_span(attribute, value)
        if rows_published is not None:
            self._add_to_span(names.ROWS_WRITTEN, rows_published)
        for table, rows in (rows_written or {}).items():
            self.measure(names.WRITTEN, rows, {names.TABLE: table})

    def record_freshness(self, table: str, *, seconds: float, as_of: float) -> None:
        """Records the age of the newest row of a table, and the Unix time at which the row has that age."""
        self._newest[table] = as_of - seconds
        self.measure(names.FRESHNESS, seconds, {names.TABLE: table})

    def record_schedule(self, schedule: Schedule | None) -> None:
        """Records, at a good end, when the next run is due, and when the published data will be too old."""
        self.errors.guard("the schedule is not recorded", self._record_schedule, schedule)

    def measure(self, metric: Metric, value: float, labels: Mapping[Attribute, str] | None = None) -> None:
        """Records one value of a metric of the catalogue; the pipeline is added to the labels."""
        labels = {names.PIPELINE: self.identity.pipeline, **(labels or {})}
        self.errors.guard("a measurement is lost", self._measurements.record, metric, value, labels)

    def announce_table(self, table: str) -> None:
        """Starts the count of the rows written to a table at 0, in an export of its own, once per run."""
        if table not in self._announced:
            self._announced.add(table)
            self.measure(names.WRITTEN, 0, {names.TABLE: table})
            self.export_metrics()

    def context(self) -> Context:
        """The context with the innermost open span of this run in this thread, or else with the span of the run."""
        current = context.get_current()
        return current if self._context is None or current_run(current) is self._scope else self._context

    def export_metrics(self) -> None:
        """Writes and sends the metrics that were recorded since the last time."""
        self._process.export_metrics(self._measurements, self._scope.files)

    def before_flush(self, measure: Callable[[], object]) -> None:
        """Calls something before each flush, which measures what changes with time."""
        self._before_flush.append(measure)

    def flush(self) -> None:
        """Exports metrics, logs new telemetry errors, and leaves a sign of life; called every few seconds."""
        for measure in tuple(self._before_flush):
            self.errors.guard("a measurement is lost", measure)
        self.export_metrics()
        with self.attach():
            self._log_errors()
        if self._scope.files is not None:
            self._scope.files.touch()

    def log_late_errors(self) -> None:
        """Adds the telemetry errors of the process since the end of this run to the log of this run."""
        has_started, errors = self._context is not None, self._process.errors
        if has_started and self._process.writes_files and len(errors) > errors.logged:
            self._open_files()
            with self.attach():
                self._close_files()

    def _add_to_span(self, attribute: Attribute, value: int) -> None:
        self._totals[attribute] += value
        self.errors.guard("counts of a run are lost", self.set_counts, {attribute: self._totals[attribute]})

    def _record_schedule(self, schedule: Schedule | None) -> None:
        due = time.time() + schedule.every + schedule.grace if schedule else 0
        self.measure(names.SCHEDULE_DUE, due)
        self.measure(names.SCHEDULE_MISSED, due + schedule.every if schedule else 0)
        if schedule is None:
            return
        for table, newest in self._newest.items():
            self.measure(names.DATA_STALE, newest + schedule.max_age, {names.TABLE: table})

    def _start_delivery(self) -> None:
        if self._process.writes_files:
            self._delivery = self._process.deliveries.start(self.identity.run_id, self.identity.folder)

    def _open_files(self) -> None:
        self._scope.is_open = True
        if self._process.writes_files:
            segment_bytes = self._process.segment_bytes
            self._scope.files = RunFiles(
                self.identity.folder, errors=self.errors, segment_bytes=segment_bytes, delivery=self._delivery
            )

    def _start(self) -> None:
        self.tracer = self._process.tracer(self._scope.files)
        attributes = {**self.identity.attributes, names.APPLICATION.name: self.identity.application}
        parent = self._scope.within(self._process.parent)
        self._context = self.start_span(self.tracer, names.RUN_SPAN.of(self.identity.pipeline), parent, attributes)

    def _announce(self) -> None:
        """Starts what alerts count at 0: the first value that a series is seen with never counts as an increase."""
        for outcome in names.OUTCOMES:
            self.measure(names.RUNS, 0, {names.OUTCOME: outcome})
        for metric in _COUNTED:
            self.measure(metric, 0)
        self.export_metrics()

    def _measure_end(self, outcome: Outcome) -> None:
        self.measure(names.RUNS, 1, {names.OUTCOME: outcome})
        self.measure(names.RUN_DURATION, self.seconds, {names.OUTCOME: outcome})
        if outcome == "succeeded":
            self.measure(names.LAST_SUCCESS, time.time())
        else:
            self.measure(names.LAST_FAILURE, time.time(), {names.OUTCOME: outcome})
        self.export_metrics()

    def _end(self, outcome: Outcome, error: BaseException | None) -> None:
        self.set_counts({names.OUTCOME: outcome})
        self.end_span(error)

    def _close_files(self) -> None:
        self._log_errors()
        self._scope.is_open = False
        files, self._scope.files = self._scope.files, None
        if files is not None:
            files.close()

    def _log_errors(self) -> None:
        for error in self.errors.unlogged():
            _LOG.warning("telemetry: %s", error)
