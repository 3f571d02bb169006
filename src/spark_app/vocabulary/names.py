"""The catalogue: every span, metric and attribute, its unit and its meaning, stated once.

Metric labels have few values: pipeline, table, column, expectation, step, outcome. Values that differ in each run (its
id, its slice, its invocation) are on spans and logs only: on a metric, each would be a series that lives forever.
"""

from dataclasses import dataclass
from typing import Final, Literal, get_args

InstrumentKind = Literal["counter", "histogram", "gauge"]
Outcome = Literal["succeeded", "rejected", "failed", "missing_input", "interrupted", "killed"]
StepKind = Literal["read", "transform", "fit", "evaluate", "write", "publish", "maintain"]
StreamState = Literal["starting", "waiting", "running", "idle", "restarting", "stopped", "failed"]

OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
STEP_KINDS: Final[tuple[StepKind, ...]] = get_args(StepKind)
STREAM_STATES: Final[tuple[StreamState, ...]] = get_args(StreamState)
PROMOTION_ACTIONS: Final = ("promoted", "refused", "rolled_back")
MODEL_ROLES: Final = ("candidate", "production")
QUANTILES: Final = (0.5, 0.9, 0.99)
LATEST_OFFSET: Final = "latestOffset"
GET_BATCH: Final = "getBatch"
QUERY_PLANNING: Final = "queryPlanning"
WAL_COMMIT: Final = "walCommit"
ADD_BATCH: Final = "addBatch"
COMMIT_OFFSETS: Final = "commitOffsets"
PHASE_MEANINGS: Final = {
    LATEST_OFFSET: "asked the sources for their latest offsets",
    GET_BATCH: "asked the sources for the rows between two offsets",
    QUERY_PLANNING: "planned the query",
    WAL_COMMIT: "wrote the offsets of the batch to the checkpoint",
    ADD_BATCH: "ran the query and the sink",
    COMMIT_OFFSETS: "wrote to the checkpoint that the batch is done",
}
"""The keys of `durationMs` in Spark's progress, in the order of the phases: what Spark did."""
STREAM_PHASES: Final = (*PHASE_MEANINGS, "other")
"""The same; any other key counts as `other`."""

TRACEPARENT: Final = "traceparent"
"""The context of a record in its headers, and of a job in its properties, as W3C's Trace Context names it."""
SCOPE: Final = "spark_app"
DEFAULT_SERVICE_NAME: Final = "spark-app"
PROBE_SERVICE_NAME: Final = "spark-app-doctor"
"""A service of its own: probes are not counted among the runs of pipelines."""
BATCH_INSTANCE_ID: Final = "batch"
"""One constant instance for all processes that run pipelines: their deltas then add up in one series."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A key that spans, logs, metrics or the resource carry."""

    name: str
    type: type
    meaning: str
    is_label: bool = False


@dataclass(frozen=True, slots=True)
class SpanName:
    """A kind of span; the name of a span is the prefix and its subject."""

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
SERVICE_NAME: Final = Attribute("service.name", str, "the program; OTEL_SERVICE_NAME overrides it")
SERVICE_VERSION: Final = Attribute("service.version", str, "version of this project")
SERVICE_INSTANCE_ID: Final = Attribute(
    "service.instance.id",
    str,
    "constant for all processes that run pipelines; in the totals of a bridge, when they began",
)
ENVIRONMENT: Final = Attribute("deployment.environment.name", str, "where it runs: dev, test, production")
APPLICATION: Final = Attribute("spark.app.name", str, "name of the Spark application")

# Labels: few-valued, on metrics and on spans.
PIPELINE: Final = Attribute("pipeline.name", str, "the pipeline, which is its module: etl.daily_sales", is_label=True)
OUTCOME: Final = Attribute("pipeline.run.outcome", str, "how a run ended: " + ", ".join(OUTCOMES), is_label=True)
STEP: Final = Attribute("pipeline.step.name", str, "the step of a run: write bronze", is_label=True)
STEP_KIND: Final = Attribute("pipeline.step.kind", str, "the kind of a step: " + ", ".join(STEP_KINDS), is_label=True)
TABLE: Final = Attribute("pipeline.table", str, "the table that is written or checked", is_label=True)
COLUMN: Final = Attribute("pipeline.column", str, "a column of the table", is_label=True)
EXPECTATION: Final = Attribute("pipeline.expectation", str, "the name of an expectation about a column", is_label=True)
TOPIC: Final = Attribute("stream.topic", str, "the topic that a streaming query reads", is_label=True)
STREAM_STATE: Final = Attribute(
    "stream.state", str, "what a streaming query does: " + ", ".join(STREAM_STATES), is_label=True
)
PHASE: Final = Attribute("stream.phase", str, "the phase of a micro-batch: " + ", ".join(STREAM_PHASES), is_label=True)
ALGORITHM: Final = Attribute("ml.algorithm", str, "the algorithm of a model, by its configured name", is_label=True)
SCORE_NAME: Final = Attribute("ml.score.name", str, "a score: average_precision, roc_auc, log_loss, ...", is_label=True)
MODEL_ROLE: Final = Attribute("ml.model.role", str, "the role of a model: " + ", ".join(MODEL_ROLES), is_label=True)
DATA_SLICE: Final = Attribute(
    "ml.slice", str, "the rows of a score: all, or those with a value such as country DE", is_label=True
)
FEATURE: Final = Attribute("ml.feature", str, "a feature of a model, or its probability", is_label=True)
FEATURE_GROUP: Final = Attribute(
    "ml.feature.group",
    str,
    "features that are about the same: product, price, customer, ...; prediction is that of the probability",
    is_label=True,
)
PROMOTION_ACTION: Final = Attribute(
    "ml.promotion.action", str, "what became of a version: " + ", ".join(PROMOTION_ACTIONS), is_label=True
)
IS_FLAGGED: Final = Attribute("ml.flagged", str, "whether the threshold was reached: true or false", is_label=True)
QUANTILE: Final = Attribute("ml.quantile", str, "which quantile: 0.5, 0.9, 0.99", is_label=True)
MODEL: Final = Attribute("ml.model.name", str, "a model, which is its pipeline: ml.refunds", is_label=True)

# On spans and logs only.
RUN_ID: Final = Attribute("pipeline.run.id", str, "one run of one pipeline for one slice")
INVOCATION_ID: Final = Attribute("pipeline.invocation.id", str, "one process; the runs of one command share it")
RUN_SLICE: Final = Attribute(
    "pipeline.run.slice",
    str,
    "what the run is about: a day such as 2024-01-01, a model version; absent where there is nothing",
)
ROWS_READ: Final = Attribute("pipeline.rows.read", int, "rows read")
ROWS_WRITTEN: Final = Attribute("pipeline.rows.written", int, "rows that a step wrote, or a run published")
ROWS_QUARANTINED: Final = Attribute(
    "pipeline.rows.quarantined", int, "rows written to quarantine, with their violations"
)
ROWS_DUPLICATE: Final = Attribute(
    "pipeline.rows.duplicate", int, "rows left out because a later version of their key exists"
)
ROWS_UNACCOUNTED: Final = Attribute(
    "pipeline.rows.unaccounted",
    int,
    "rows read that are in no count of rows written, quarantined or duplicate; 0 unless a run is wrong",
)
BYTES_READ: Final = Attribute("pipeline.bytes.read", int, "bytes read")
BYTES_WRITTEN: Final = Attribute("pipeline.bytes.written", int, "bytes written")
FILES: Final = Attribute("pipeline.files", int, "files read or written")
FIT_PARAMETERS: Final = Attribute("ml.parameters", str, "the parameters of a fit that were varied: maxDepth=6")
FIT_FOLD: Final = Attribute("ml.fold", int, "the fold of the cross-validation, from 1; absent for a fit on all rows")
FIT_SCORE: Final = Attribute("ml.score", float, "area under the precision-recall curve on the rows left out")
MODEL_VERSION: Final = Attribute("ml.model.version", int, "the version of a model that a step is about")
AVERAGE_PRECISION: Final = Attribute("ml.average_precision", float, "average precision of a version on held-out rows")
ROC_AUC: Final = Attribute("ml.roc_auc", float, "area under the ROC curve of a version on held-out rows")
EXCEPTION_EVENT: Final = "exception"
EXCEPTION_TYPE: Final = Attribute("exception.type", str, "class of the exception")
EXCEPTION_MESSAGE: Final = Attribute("exception.message", str, "its message, truncated")
EXCEPTION_STACKTRACE: Final = Attribute("exception.stacktrace", str, "its stack trace, truncated")
EXCEPTION_CUT: Final = Attribute("exception.message.truncated", bool, "true where the message was truncated")

_OF_A_RUN: Final = (PIPELINE, RUN_ID, INVOCATION_ID, RUN_SLICE)
_ROWS: Final = (ROWS_READ, ROWS_WRITTEN, ROWS_QUARANTINED, ROWS_DUPLICATE, ROWS_UNACCOUNTED)
_BYTES: Final = (BYTES_READ, BYTES_WRITTEN)

RUN_SPAN: Final = SpanName(
    "run", "one run of one pipeline for one slice", (*_OF_A_RUN, APPLICATION, OUTCOME, *_ROWS, *_BYTES)
)
PROBE_SPAN: Final = SpanName("probe", "one check of the route of telemetry", ())
# Spark reads while it writes: rows read are known for a run; for a step that reads, only its files and bytes are.
STEP_SPAN: Final = SpanName(
    "step",
    "one step of a run",
    (*_OF_A_RUN, STEP, STEP_KIND, TABLE, FILES, ROWS_WRITTEN, *_BYTES, MODEL_VERSION, AVERAGE_PRECISION, ROC_AUC),
)
FIT_SPAN: Final = SpanName(
    "fit",
    "one fit of a model: of a fold with a set of parameters, or of the chosen parameters on all rows",
    (*_OF_A_RUN, ALGORITHM, FIT_PARAMETERS, FIT_FOLD, FIT_SCORE),
)

_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0)

RUNS: Final = Metric("pipeline.runs", "counter", "{run}", "Runs that ended, by outcome", (PIPELINE, OUTCOME))
RUN_DURATION: Final = Metric(
    "pipeline.run.duration", "histogram", "s", "Duration of a run", (PIPELINE, OUTCOME), _SECONDS
)
STEP_DURATION: Final = Metric(
    "pipeline.step.duration", "histogram", "s", "Duration of a step", (PIPELINE, STEP, STEP_KIND), _SECONDS
)
LAST_SUCCESS: Final = Metric(
    "pipeline.run.last_success.timestamp", "gauge", "s", "When a run last succeeded, in Unix time", (PIPELINE,)
)
LAST_FAILURE: Final = Metric(
    "pipeline.run.last_failure.timestamp",
    "gauge",
    "s",
    "When a run last ended without success, in Unix time, by outcome",
    (PIPELINE, OUTCOME),
)
SCHEDULE_DUE: Final = Metric(
    "pipeline.schedule.due.timestamp",
    "gauge",
    "s",
    "When the next run is due to have succeeded, in Unix time; 0 without a schedule",
    (PIPELINE,),
)
SCHEDULE_MISSED: Final = Metric(
    "pipeline.schedule.missed.timestamp",
    "gauge",
    "s",
    "When the run after the next one is due, in Unix time; 0 without a schedule",
    (PIPELINE,),
)
STALE_DAYS: Final = Metric(
    "pipeline.days.stale",
    "gauge",
    "{day}",
    "Days of its tables that were made of what has changed since, at the end of `spark-app etl`",
    (PIPELINE,),
)
READ: Final = Metric("pipeline.rows.read", "counter", "{row}", "Rows read", (PIPELINE,))
WRITTEN: Final = Metric("pipeline.rows.written", "counter", "{row}", "Rows written to a table", (PIPELINE, TABLE))
QUARANTINED: Final = Metric(
    "pipeline.rows.quarantined", "counter", "{row}", "Rows written to quarantine as invalid", (PIPELINE,)
)
DUPLICATE: Final = Metric("pipeline.rows.duplicate", "counter", "{row}", "Rows left out as duplicates", (PIPELINE,))
UNACCOUNTED: Final = Metric(
    "pipeline.rows.unaccounted", "counter", "{row}", "Rows read that no other count of the run includes", (PIPELINE,)
)
READ_BYTES: Final = Metric("pipeline.bytes.read", "counter", "By", "Bytes read", (PIPELINE,))
WRITTEN_BYTES: Final = Metric("pipeline.bytes.written", "counter", "By", "Bytes written", (PIPELINE,))
FRESHNESS: Final = Metric(
    "pipeline.data.freshness", "gauge", "s", "Age of the newest row when its table was published", (PIPELINE, TABLE)
)
DATA_STALE: Final = Metric(
    "pipeline.data.stale.timestamp",
    "gauge",
    "s",
    "When the newest row becomes older than the schedule allows, in Unix time",
    (PIPELINE, TABLE),
)

QUALITY_CHECKED: Final = Metric(
    "pipeline.quality.rows.checked",
    "counter",
    "{row}",
    "Rows that an expectation was evaluated on",
    (PIPELINE, TABLE, EXPECTATION),
)
QUALITY_VIOLATIONS: Final = Metric(
    "pipeline.quality.violations",
    "counter",
    "{row}",
    "Rows that violate an expectation",
    (PIPELINE, TABLE, EXPECTATION),
)
QUALITY_VIOLATION: Final = Metric(
    "pipeline.quality.violation",
    "gauge",
    "1",
    "Share of the checked rows that violate an expectation",
    (PIPELINE, TABLE, EXPECTATION),
)
QUALITY_THRESHOLD: Final = Metric(
    "pipeline.quality.threshold", "gauge", "1", "Share that may violate an expectation", (PIPELINE, TABLE, EXPECTATION)
)
QUALITY_BREACHES: Final = Metric(
    "pipeline.quality.breaches",
    "counter",
    "{breach}",
    "Runs that an expectation rejected",
    (PIPELINE, TABLE, EXPECTATION),
)
QUALITY_NULLS: Final = Metric(
    "pipeline.quality.nulls", "counter", "{row}", "Rows without a value in a column", (PIPELINE, TABLE, COLUMN)
)

# Streaming queries. A micro-batch or a sign of life sets a gauge, so that those of a query that has ended disappear.
STREAM_STATE_NOW: Final = Metric(
    "stream.query.state",
    "gauge",
    "{query}",
    "Whether a streaming query is in a state: 1 for the present one, 0 for the others",
    (PIPELINE, STREAM_STATE),
)
STREAM_STATE_TIME: Final = Metric(
    "stream.query.state.timestamp",
    "gauge",
    "s",
    "When a streaming query was last known to be in a state, in Unix time",
    (PIPELINE, STREAM_STATE),
)
STREAM_RESTARTS: Final = Metric(
    "stream.restarts", "counter", "{restart}", "Restarts of a streaming query after it failed", (PIPELINE,)
)
STREAM_BATCHES: Final = Metric("stream.batches", "counter", "{batch}", "Micro-batches that ended", (PIPELINE,))
STREAM_BATCH_DURATION: Final = Metric(
    "stream.batch.duration", "histogram", "s", "Duration of a micro-batch", (PIPELINE,), _SECONDS
)
STREAM_PHASE_DURATION: Final = Metric(
    "stream.batch.phase.duration", "counter", "s", "Time that micro-batches spent in a phase", (PIPELINE, PHASE)
)
STREAM_LAST_BATCH: Final = Metric(
    "stream.batch.last.timestamp", "gauge", "s", "When the last micro-batch ended, in Unix time", (PIPELINE,)
)
STREAM_PROGRESS_AGE: Final = Metric(
    "stream.progress.age",
    "gauge",
    "s",
    "Time since a streaming query last ended a micro-batch, found no input, or began",
    (PIPELINE,),
)
STREAM_TRIGGER: Final = Metric(
    "stream.trigger.interval", "gauge", "s", "Time from one trigger of a streaming query to the next", (PIPELINE,)
)
STREAM_INPUT_RATE: Final = Metric(
    "stream.rows.input.rate", "gauge", "{row}/s", "Rows that arrived per second, by the last micro-batch", (PIPELINE,)
)
STREAM_PROCESSED_RATE: Final = Metric(
    "stream.rows.processed.rate", "gauge", "{row}/s", "Rows that the last micro-batch processed per second", (PIPELINE,)
)
STREAM_LAG_RECORDS: Final = Metric(
    "stream.lag.records",
    "gauge",
    "{record}",
    "Records that a topic has and no micro-batch has read, as the brokers say, or Spark of an observed program",
    (PIPELINE, TOPIC),
)
STREAM_LAG_TIME: Final = Metric(
    "stream.lag.time",
    "gauge",
    "s",
    "Age of the oldest unread record of a topic, 0 while nothing is unread; of files, that of the newest one read",
    (PIPELINE, TOPIC),
)
STREAM_DELETED: Final = Metric(
    "stream.records.deleted",
    "counter",
    "{record}",
    "Records of a topic that Kafka deleted before the query read them",
    (PIPELINE, TOPIC),
)
STREAM_WATERMARK_DELAY: Final = Metric(
    "stream.watermark.delay",
    "gauge",
    "s",
    "Newest event time in a micro-batch minus its watermark",
    (PIPELINE,),
)
STREAM_STATE_ROWS: Final = Metric("stream.state.rows", "gauge", "{row}", "Rows in the state of a query", (PIPELINE,))
STREAM_STATE_MEMORY: Final = Metric(
    "stream.state.memory", "gauge", "By", "Memory that the state of a query uses", (PIPELINE,)
)
STREAM_STATE_COMMIT: Final = Metric(
    "stream.state.commit.duration",
    "counter",
    "s",
    "Time that tasks spent on commits of state, added up over partitions",
    (PIPELINE,),
)
STREAM_LATE: Final = Metric(
    "stream.rows.late",
    "counter",
    "{row}",
    "Rows that stateful operators dropped as older than the watermark",
    (PIPELINE,),
)
STREAM_UNKNOWN_FIELDS: Final = Metric(
    "stream.records.unknown_fields",
    "counter",
    "{record}",
    "Records with fields that the schema of their topic does not know",
    (PIPELINE,),
)
DEAD_LETTERS: Final = Metric(
    "stream.dead_letters", "counter", "{record}", "Records that could not be parsed", (PIPELINE,)
)

# Models. Scores are those of the held-out rows; the age of a model is the time since it was trained.
ML_FITS: Final = Metric(
    "ml.fit.duration", "histogram", "s", "Duration of one fit of a model", (PIPELINE, ALGORITHM), _SECONDS
)
ML_ROWS: Final = Metric("ml.training.rows", "gauge", "{row}", "Rows that the last model was trained on", (PIPELINE,))
ML_SCORE: Final = Metric(
    "ml.model.score",
    "gauge",
    "1",
    "Score of a model on held-out rows, of the candidate and of the version in production",
    (PIPELINE, MODEL_ROLE, SCORE_NAME, DATA_SLICE),
)
ML_PROMOTIONS: Final = Metric(
    "ml.promotions", "counter", "{version}", "Versions of a model by what became of them", (PIPELINE, PROMOTION_ACTION)
)
ML_VERSION: Final = Metric("ml.model.version", "gauge", "{version}", "Version of a model in production", (PIPELINE,))
ML_TRAINED: Final = Metric(
    "ml.model.trained.timestamp", "gauge", "s", "When the model in production was trained, in Unix time", (PIPELINE,)
)
ML_PREDICTIONS: Final = Metric(
    "ml.predictions", "counter", "{row}", "Rows that were scored, in batch or for requests", (PIPELINE, IS_FLAGGED)
)
ML_PROBABILITY: Final = Metric(
    "ml.prediction.probability", "gauge", "1", "Quantile of the probabilities last scored", (PIPELINE, QUANTILE)
)
ML_ERRORS: Final = Metric("ml.scoring.errors", "counter", "{request}", "Requests that could not be scored", (PIPELINE,))
ML_STALE: Final = Metric(
    "ml.scoring.stale",
    "counter",
    "{request}",
    "Requests that were scored though the tables lack days before them",
    (PIPELINE,),
)
ML_LATENCY: Final = Metric(
    "ml.scoring.latency",
    "gauge",
    "s",
    "Quantile of the times from request to reply in the last micro-batch",
    (PIPELINE, QUANTILE),
)
ML_SERVED: Final = Metric(
    "ml.model.served.version",
    "gauge",
    "{version}",
    "Version of a model that scored the last micro-batch of requests",
    (PIPELINE, MODEL),
)
ML_DRIFT: Final = Metric(
    "ml.feature.drift",
    "gauge",
    "1",
    "Population stability index of a feature or of the probability, last seen against training rows of a model",
    (PIPELINE, MODEL_ROLE, FEATURE_GROUP, FEATURE),
)

PROBES: Final = Metric(
    "platform.probes", "counter", "{probe}", "Checks of the route of telemetry, by spark-app doctor", ()
)

RESOURCE: Final = (SERVICE_NAME, SERVICE_VERSION, SERVICE_INSTANCE_ID, ENVIRONMENT, APPLICATION)
SPANS: Final = (RUN_SPAN, STEP_SPAN, FIT_SPAN, PROBE_SPAN)
ATTRIBUTES: Final = tuple(entry for entry in globals().copy().values() if isinstance(entry, Attribute))
METRICS: Final = tuple(entry for entry in globals().copy().values() if isinstance(entry, Metric))
