"""The catalogue: every span, metric and attribute, its unit and its meaning, stated once.

Labels of metrics are few-valued: pipeline, table, column, promise, step, outcome. What is drawn anew for each run (its
id, its date, its invocation) is on spans and logs only: each value on a metric would be a series that lives forever.
"""

from dataclasses import dataclass
from typing import Final, Literal

InstrumentKind = Literal["counter", "histogram", "gauge"]
Outcome = Literal["succeeded", "rejected", "failed", "missing_input", "interrupted", "killed"]
StepKind = Literal["read", "transform", "write", "publish"]

OUTCOMES: Final[tuple[Outcome, ...]] = ("succeeded", "rejected", "failed", "missing_input", "interrupted", "killed")
STEP_KINDS: Final[tuple[StepKind, ...]] = ("read", "transform", "write", "publish")

SCOPE: Final = "app"
DEFAULT_SERVICE_NAME: Final = "spark-app"
PROBE_SERVICE_NAME: Final = "spark-app-doctor"
"""A service of its own: what tests the way of telemetry is not counted among what jobs do."""
BATCH_INSTANCE_ID: Final = "batch"
"""One constant instance for all one-shot runs: their deltas then add up in one series."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A key that spans, logs, metrics or the resource carry."""

    name: str
    type: type
    meaning: str
    is_label: bool = False


@dataclass(frozen=True, slots=True)
class SpanName:
    """A kind of span; the name of one such span is the prefix and what it is about."""

    prefix: str
    meaning: str
    attributes: tuple[Attribute, ...]

    def of(self, subject: str) -> str:
        """The name of the span about one subject."""
        return f"{self.prefix} {subject}"


@dataclass(frozen=True, slots=True)
class Metric:
    """An instrument: its name without the unit, its unit in UCUM, and the labels it always carries."""

    name: str
    kind: InstrumentKind
    unit: str
    meaning: str
    labels: tuple[Attribute, ...]
    buckets: tuple[float, ...] = ()


# The resource: who reports. OpenTelemetry's own names, and Spark's for the application.
SERVICE_NAME: Final = Attribute("service.name", str, "the program; OTEL_SERVICE_NAME wins")
SERVICE_VERSION: Final = Attribute("service.version", str, "version of this project")
SERVICE_INSTANCE_ID: Final = Attribute("service.instance.id", str, "constant for one-shot runs")
ENVIRONMENT: Final = Attribute("deployment.environment.name", str, "where it runs: dev, test, production")
APPLICATION: Final = Attribute("spark.app.name", str, "name of the Spark application")

# Labels: few-valued, on metrics and on spans.
PIPELINE: Final = Attribute("pipeline.name", str, "the pipeline, which is its module: etl.daily_sales", is_label=True)
OUTCOME: Final = Attribute("pipeline.run.outcome", str, "how a run ended: " + ", ".join(OUTCOMES), is_label=True)
STEP: Final = Attribute("pipeline.step.name", str, "the step of a run: write bronze", is_label=True)
STEP_KIND: Final = Attribute("pipeline.step.kind", str, "what a step does: " + ", ".join(STEP_KINDS), is_label=True)
TABLE: Final = Attribute("pipeline.table", str, "the table that is written or judged", is_label=True)
COLUMN: Final = Attribute("pipeline.column", str, "a column of the table", is_label=True)
PROMISE: Final = Attribute("pipeline.promise", str, "a promise about a column, by its name", is_label=True)

# On spans and logs only.
RUN_ID: Final = Attribute("pipeline.run.id", str, "one pipeline and one date, once")
INVOCATION_ID: Final = Attribute("pipeline.invocation.id", str, "one process; it joins the runs of one command")
RUN_DATE: Final = Attribute("pipeline.run.date", str, "the day that the run is about, YYYY-MM-DD")
ROWS_READ: Final = Attribute("pipeline.rows.read", int, "rows read")
ROWS_WRITTEN: Final = Attribute("pipeline.rows.written", int, "rows that a step wrote, or a run published")
ROWS_QUARANTINED: Final = Attribute("pipeline.rows.quarantined", int, "rows kept apart, with their reasons")
ROWS_DUPLICATE: Final = Attribute(
    "pipeline.rows.duplicate", int, "rows removed because a later version of their key exists"
)
ROWS_UNACCOUNTED: Final = Attribute("pipeline.rows.unaccounted", int, "rows read that are nowhere; 0 in a sound run")
BYTES_READ: Final = Attribute("pipeline.bytes.read", int, "bytes read")
BYTES_WRITTEN: Final = Attribute("pipeline.bytes.written", int, "bytes written")
FILES: Final = Attribute("pipeline.files", int, "files read or written")
EXCEPTION_EVENT: Final = "exception"
EXCEPTION_TYPE: Final = Attribute("exception.type", str, "class of the exception")
EXCEPTION_MESSAGE: Final = Attribute("exception.message", str, "its message, cut to a bounded length")
EXCEPTION_STACKTRACE: Final = Attribute("exception.stacktrace", str, "where it came from, cut to a bounded length")
EXCEPTION_CUT: Final = Attribute("exception.message.truncated", bool, "true where the message was cut")

_OF_A_RUN: Final = (PIPELINE, RUN_ID, INVOCATION_ID, RUN_DATE)
_ROWS: Final = (ROWS_READ, ROWS_WRITTEN, ROWS_QUARANTINED, ROWS_DUPLICATE, ROWS_UNACCOUNTED)
_BYTES: Final = (BYTES_READ, BYTES_WRITTEN)

RUN_SPAN: Final = SpanName(
    "run", "one run of one pipeline for one date", (*_OF_A_RUN, APPLICATION, OUTCOME, *_ROWS, *_BYTES)
)
PROBE_SPAN: Final = SpanName("probe", "one look at the way of telemetry", ())
# Spark reads while it writes: rows read are known of a run, of a step only the files and bytes that lie there.
STEP_SPAN: Final = SpanName(
    "step", "one step of a run", (*_OF_A_RUN, STEP, STEP_KIND, TABLE, FILES, ROWS_WRITTEN, *_BYTES)
)

_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0)

RUNS: Final = Metric("pipeline.runs", "counter", "{run}", "Runs that ended, by outcome", (PIPELINE, OUTCOME))
RUN_DURATION: Final = Metric(
    "pipeline.run.duration", "histogram", "s", "How long a run took", (PIPELINE, OUTCOME), _SECONDS
)
STEP_DURATION: Final = Metric(
    "pipeline.step.duration", "histogram", "s", "How long a step took", (PIPELINE, STEP, STEP_KIND), _SECONDS
)
LAST_SUCCESS: Final = Metric(
    "pipeline.run.last_success.timestamp", "gauge", "s", "When a run last succeeded, in Unix time", (PIPELINE,)
)
LAST_FAILURE: Final = Metric(
    "pipeline.run.last_failure.timestamp",
    "gauge",
    "s",
    "When a run last ended otherwise, in Unix time, by outcome",
    (PIPELINE, OUTCOME),
)
SCHEDULE_DUE: Final = Metric(
    "pipeline.schedule.due.timestamp",
    "gauge",
    "s",
    "When the next run must have succeeded, in Unix time; 0 without a schedule",
    (PIPELINE,),
)
SCHEDULE_MISSED: Final = Metric(
    "pipeline.schedule.missed.timestamp",
    "gauge",
    "s",
    "When a whole run will have been left out, in Unix time; 0 without a schedule",
    (PIPELINE,),
)
READ: Final = Metric("pipeline.rows.read", "counter", "{row}", "Rows read", (PIPELINE,))
WRITTEN: Final = Metric("pipeline.rows.written", "counter", "{row}", "Rows written to a table", (PIPELINE, TABLE))
QUARANTINED: Final = Metric("pipeline.rows.quarantined", "counter", "{row}", "Rows kept apart as invalid", (PIPELINE,))
DUPLICATE: Final = Metric("pipeline.rows.duplicate", "counter", "{row}", "Rows removed as duplicates", (PIPELINE,))
UNACCOUNTED: Final = Metric("pipeline.rows.unaccounted", "counter", "{row}", "Rows read that are nowhere", (PIPELINE,))
READ_BYTES: Final = Metric("pipeline.bytes.read", "counter", "By", "Bytes read", (PIPELINE,))
WRITTEN_BYTES: Final = Metric("pipeline.bytes.written", "counter", "By", "Bytes written", (PIPELINE,))
FRESHNESS: Final = Metric(
    "pipeline.data.freshness", "gauge", "s", "Age of the newest row when its table was published", (PIPELINE, TABLE)
)
DATA_STALE: Final = Metric(
    "pipeline.data.stale.timestamp",
    "gauge",
    "s",
    "When the newest row will be older than the schedule allows, in Unix time",
    (PIPELINE, TABLE),
)

QUALITY_CHECKED: Final = Metric(
    "pipeline.quality.rows.checked",
    "counter",
    "{row}",
    "Rows that a promise was checked on",
    (PIPELINE, TABLE, PROMISE),
)
QUALITY_VIOLATIONS: Final = Metric(
    "pipeline.quality.violations", "counter", "{row}", "Rows that break a promise", (PIPELINE, TABLE, PROMISE)
)
QUALITY_VIOLATION: Final = Metric(
    "pipeline.quality.violation",
    "gauge",
    "1",
    "Share of the checked rows that break a promise",
    (PIPELINE, TABLE, PROMISE),
)
QUALITY_THRESHOLD: Final = Metric(
    "pipeline.quality.threshold", "gauge", "1", "Share that may break a promise", (PIPELINE, TABLE, PROMISE)
)
QUALITY_BREACHES: Final = Metric(
    "pipeline.quality.breaches", "counter", "{breach}", "Runs that a promise rejected", (PIPELINE, TABLE, PROMISE)
)
QUALITY_NULLS: Final = Metric(
    "pipeline.quality.nulls", "counter", "{row}", "Rows without a value in a column", (PIPELINE, TABLE, COLUMN)
)

PROBES: Final = Metric("platform.probes", "counter", "{probe}", "Looks at the way of telemetry, by the doctor", ())

RESOURCE: Final = (SERVICE_NAME, SERVICE_VERSION, SERVICE_INSTANCE_ID, ENVIRONMENT, APPLICATION)
SPANS: Final = (RUN_SPAN, STEP_SPAN, PROBE_SPAN)
ATTRIBUTES: Final = tuple(entry for entry in globals().copy().values() if isinstance(entry, Attribute))
METRICS: Final = tuple(entry for entry in globals().copy().values() if isinstance(entry, Metric))
