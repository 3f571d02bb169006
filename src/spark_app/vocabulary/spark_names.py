"""The part of the catalogue for event logs: the spans, metrics and attributes of Spark applications.

OpenTelemetry has no semantic conventions for Spark; these names follow those of the event log and the REST API.
"""

from typing import Final

from spark_app.vocabulary.names import APPLICATION, PHASE_MEANINGS, TRACEPARENT, Attribute, Metric, SpanName

APPLICATION_ID: Final = Attribute("spark.app.id", str, "id of the application, assigned by the cluster manager")
APPLICATION_ATTEMPT: Final = Attribute(
    "spark.app.attempt.id", str, "which attempt of the application, where the cluster manager counts them"
)
SPARK_VERSION: Final = Attribute("spark.version", str, "version of Spark that wrote the log")
EXIT_CODE: Final = Attribute("spark.app.exit_code", int, "exit code of the driver, from Spark 4.0 on")
IS_INCOMPLETE: Final = Attribute("spark.incomplete", bool, "true where the log lacks its start or its end")

JOB_DESCRIPTION: Final = "spark.job.description"
JOB_GROUP: Final = "spark.jobGroup.id"
STREAM_QUERY_ID: Final = "sql.streaming.queryId"
"""Local properties in which Spark keeps what a thread runs its jobs for. The jobs of a streaming query have its id, and
are in a group with the id of its run. Two of them name attributes, too."""

QUERY_ID: Final = Attribute("spark.sql.execution.id", int, "number of the SQL execution within the application")
DESCRIPTION: Final = Attribute(
    JOB_DESCRIPTION, str, "what the program calls the work; of a query with its line and what it writes"
)
GROUP: Final = Attribute(JOB_GROUP, str, "the group that the program put its jobs in")
POOL: Final = Attribute("spark.scheduler.pool", str, "the scheduler pool that the program put its jobs in")
CALL_SITE: Final = Attribute("spark.call_site", str, "the call and the line of the program that caused the work")
DETAILS: Final = Attribute("spark.sql.details", str, "the call that started the query, truncated")
PLANS: Final = Attribute("spark.sql.plans", int, "number of plans of the query; adaptive execution replaces plans")
PLAN: Final = Attribute(
    "spark.sql.plan", str, "the executed plan, as an indented tree with the metrics of each operator"
)
PLAN_IS_CUT: Final = Attribute("spark.sql.plan.truncated", bool, "true where the plan was truncated")

USER_ID: Final = Attribute("user.id", str, "user of a session of Spark Connect, as its client says")
USER_NAME: Final = Attribute("user.name", str, "name of that user, where the client says one")
SESSION_ID: Final = Attribute("session.id", str, "id of a session of Spark Connect, which its client knows as well")
OPERATION_ID: Final = Attribute("spark.connect.operation.id", str, "id of an operation of Spark Connect")
OPERATION_STATUS: Final = Attribute(
    "spark.connect.operation.status", str, "how an operation ended: succeeded, failed, canceled, not finished"
)
OPERATION_KIND: Final = Attribute(
    "spark.connect.operation.kind",
    str,
    "outermost command or relation of an operation, by its name in Spark's protocol",
)
OPERATION_ROWS: Final = Attribute("spark.connect.operation.rows", int, "rows that the client got")
OPERATION_PREPARE_TIME: Final = Attribute(
    "spark.connect.operation.prepare_time", int, "ms until the plan of an operation was analyzed and ready to run"
)
OPERATION_WAIT_TIME: Final = Attribute(
    "spark.connect.operation.wait_time", int, "ms from then until the first task of an operation was launched"
)
QUERY_TEXT: Final = Attribute("db.query.text", str, "SQL of an operation, truncated, with secrets masked")

STEP_TAG: Final = f"{TRACEPARENT}:"
"""The prefix of a job tag that names a step: a query without jobs belongs to a step by its tag only."""
WORKLOAD: Final = "spark.sparkApp.workload"
"""The property with the arguments of a spark-app command: its baselines are runs with the same ones."""
STREAM_TRIGGER: Final = "spark.sparkApp.streaming.trigger"
"""The property of the thread, or of the session, that starts a streaming query: the interval of its trigger, as Spark
takes it (`10 seconds`). No event of Spark has it; the jobs of the query inherit it."""
MDC_TRACE_ID: Final = "mdc.trace_id"
"""Where lines of Spark's own logs have the id of their trace; executors take it from the property of that name."""
MDC_STEP_TRACE_ID: Final = "mdc.step_trace_id"
"""Where lines of a micro-batch, which have its trace, name that of the step that started the query."""

STREAM: Final = Attribute("spark.streaming.query.name", str, "name of the streaming query")
UNNAMED: Final = "unnamed"
"""A streaming query without a name, in the name of the span of a micro-batch and in labels."""
STREAM_ID: Final = Attribute("spark.streaming.query.id", str, "id of the streaming query, which a restart keeps")
STREAM_RUN_ID: Final = Attribute("spark.streaming.query.run_id", str, "id of one start of the streaming query")
BATCH_ID: Final = Attribute("spark.streaming.batch.id", int, "number of the batch, from 0")
BATCH_ROWS: Final = Attribute("spark.streaming.batch.rows", int, "rows that the batch read")
BATCH_ROWS_WRITTEN: Final = Attribute(
    "spark.streaming.batch.rows.written", int, "rows that the batch wrote, as its sink or an observation counts them"
)
BATCH_ROWS_LATE: Final = Attribute(
    "spark.streaming.batch.rows.late",
    int,
    "rows behind the watermark, which stateful operators dropped",
)
BATCH_VIOLATIONS: Final = Attribute(
    "spark.streaming.batch.violations",
    int,
    "violations of expectations by rows of the batch, where its query has some, as observed",
)
BATCH_SPANS_LEFT_OUT: Final = Attribute(
    "spark.streaming.batch.spans.left_out", int, "spans below the batch that its trace has no room for"
)
BATCH_PHASES: Final = {
    phase: Attribute(f"spark.streaming.batch.duration.{phase}", int, f"ms of the batch in which Spark {meaning}")
    for phase, meaning in PHASE_MEANINGS.items()
}
"""The parts of the work of a batch, by Spark's names."""
WATERMARK: Final = Attribute(
    "spark.streaming.watermark", str, "event time up to which the batch took no more late rows"
)
STATE_ROWS: Final = Attribute("spark.streaming.state.rows", int, "rows in the state after the batch")
STATE_BYTES: Final = Attribute("spark.streaming.state.memory_bytes", int, "bytes of memory that the state used")
STATE_COMMIT_TIME: Final = Attribute(
    "spark.streaming.state.commit_time", int, "ms that tasks took to commit the state, a sum over them"
)
LAG: Final = Attribute("spark.streaming.lag.records", int, "records that Kafka had and the batch did not read")
RECORDS_TRACED: Final = Attribute(
    "spark.streaming.batch.records.traced", int, "records with a traceparent header, as observed"
)
LINKS_LEFT_OUT: Final = Attribute(
    "spark.streaming.batch.links.left_out",
    int,
    "records with a traceparent that the links were not taken from: outside of the sample, malformed, or too many",
)
# OpenTelemetry's semantic conventions for messaging, on batches that read nothing but Kafka.
MESSAGING_SYSTEM: Final = Attribute("messaging.system", str, "the system that the messages came from: kafka")
MESSAGING_OPERATION: Final = Attribute("messaging.operation.type", str, "what was done with the messages: process")
MESSAGING_DESTINATION: Final = Attribute("messaging.destination.name", str, "the topic, where there is one only")
MESSAGING_COUNT: Final = Attribute("messaging.batch.message_count", int, "messages that the batch read")

JOB_ID: Final = Attribute("spark.job.id", int, "number of the job within the application")
JOB_STAGES: Final = Attribute("spark.job.stages", int, "stages that the job may need")
JOB_SKIPPED: Final = Attribute("spark.job.stages.skipped", int, "stages that were skipped because their output existed")

STAGE_ID: Final = Attribute("spark.stage.id", int, "number of the stage within the application")
STAGE_ATTEMPT: Final = Attribute("spark.stage.attempt", int, "which attempt, from 0")
STAGE_GROUP: Final = Attribute(
    "spark.stage.group", str, "the work of a stage, the same name in every run", is_label=True
)
TASKS: Final = Attribute("spark.stage.tasks", int, "tasks that the attempt needs")
TASKS_ENDED: Final = Attribute("spark.stage.tasks.ended", int, "task attempts that ended")
TASKS_FAILED: Final = Attribute("spark.stage.tasks.failed", int, "task attempts that failed")
TASKS_KILLED: Final = Attribute("spark.stage.tasks.killed", int, "task attempts that were killed")
TASKS_SPECULATIVE: Final = Attribute("spark.stage.tasks.speculative", int, "task attempts that were speculative")

TASK_ID: Final = Attribute("spark.task.id", int, "number of the task attempt within the application")
TASK_INDEX: Final = Attribute("spark.task.index", int, "number of the partition within the stage")
TASK_ATTEMPT: Final = Attribute("spark.task.attempt", int, "which attempt, from 0")
TASK_SPECULATIVE: Final = Attribute("spark.task.speculative", bool, "true for a speculative attempt")
EXECUTOR_ID: Final = Attribute("spark.executor.id", str, "the executor that ran the task")
HOST: Final = Attribute("host.name", str, "host of the executor")
KUBERNETES_NAMESPACE: Final = Attribute("k8s.namespace.name", str, "namespace of the pods, on Kubernetes")
KUBERNETES_POD: Final = Attribute(
    "k8s.pod.name", str, "pod of the driver, and on the span of a task that of its executor, on Kubernetes"
)
KUBERNETES_NODE: Final = Attribute("k8s.node.name", str, "node of that pod, where the pod tells it")

RUN_TIME: Final = Attribute("spark.executor.run_time", int, "ms that tasks ran")
CPU_TIME: Final = Attribute("spark.executor.cpu_time", int, "ms of CPU time of tasks")
GC_TIME: Final = Attribute("spark.executor.gc_time", int, "ms that garbage collection paused tasks")
SCHEDULER_DELAY: Final = Attribute(
    "spark.scheduler_delay", int, "ms between launch and end in which tasks neither ran nor returned results"
)
INPUT_BYTES: Final = Attribute(
    "spark.input.bytes", int, "bytes read from files and tables; absent for local Parquet, which Spark does not count"
)
INPUT_RECORDS: Final = Attribute("spark.input.records", int, "records read from files and tables")
OUTPUT_BYTES: Final = Attribute("spark.output.bytes", int, "bytes written to files and tables")
OUTPUT_RECORDS: Final = Attribute("spark.output.records", int, "records written to files and tables")
SHUFFLE_READ_BYTES: Final = Attribute(
    "spark.shuffle.read.bytes", int, "bytes read from the shuffle output of other stages"
)
SHUFFLE_READ_RECORDS: Final = Attribute(
    "spark.shuffle.read.records", int, "records read from the shuffle output of other stages"
)
SHUFFLE_WAIT: Final = Attribute("spark.shuffle.read.wait", int, "ms that tasks waited for shuffle blocks")
SHUFFLE_WRITE_BYTES: Final = Attribute("spark.shuffle.write.bytes", int, "bytes written as shuffle output")
SHUFFLE_WRITE_RECORDS: Final = Attribute("spark.shuffle.write.records", int, "records written as shuffle output")
MEMORY_SPILLED: Final = Attribute("spark.spill.memory_bytes", int, "bytes spilled, by their size in memory")
DISK_SPILLED: Final = Attribute("spark.spill.disk_bytes", int, "bytes spilled, by their size on disk")


_NUMBERS: Final = (
    RUN_TIME, CPU_TIME, GC_TIME, SCHEDULER_DELAY, INPUT_BYTES, INPUT_RECORDS, OUTPUT_BYTES, OUTPUT_RECORDS,
    SHUFFLE_READ_BYTES, SHUFFLE_READ_RECORDS, SHUFFLE_WAIT, SHUFFLE_WRITE_BYTES, SHUFFLE_WRITE_RECORDS,
    MEMORY_SPILLED, DISK_SPILLED,
)  # fmt: skip

APPLICATION_SPAN: Final = SpanName(
    "application",
    "one Spark application, from its start to its end",
    (
        APPLICATION, APPLICATION_ID, APPLICATION_ATTEMPT, SPARK_VERSION, EXIT_CODE, IS_INCOMPLETE,
        KUBERNETES_NAMESPACE, KUBERNETES_POD, KUBERNETES_NODE,
    ),
)  # fmt: skip
QUERY_SPAN: Final = SpanName(
    "sql",
    "one SQL execution",
    (QUERY_ID, DESCRIPTION, CALL_SITE, DETAILS, PLANS, PLAN, PLAN_IS_CUT, IS_INCOMPLETE),
)
SESSION_SPAN: Final = SpanName(
    "session", "one session of a client of Spark Connect", (USER_ID, SESSION_ID, IS_INCOMPLETE)
)
OPERATION_SPAN: Final = SpanName(
    "operation",
    "what a client of Spark Connect asked for",
    (
        USER_ID, USER_NAME, SESSION_ID, OPERATION_ID, OPERATION_STATUS, OPERATION_KIND, OPERATION_ROWS, DESCRIPTION,
        CALL_SITE, QUERY_TEXT, OPERATION_PREPARE_TIME, OPERATION_WAIT_TIME, IS_INCOMPLETE,
    ),
)  # fmt: skip
BATCH_SPAN: Final = SpanName(
    "batch",
    "one batch of a streaming query that ran jobs",
    (
        STREAM, STREAM_ID, STREAM_RUN_ID, BATCH_ID, BATCH_ROWS, BATCH_ROWS_WRITTEN, BATCH_ROWS_LATE,
        BATCH_VIOLATIONS, *BATCH_PHASES.values(), WATERMARK, STATE_ROWS, STATE_BYTES, STATE_COMMIT_TIME, LAG,
        RECORDS_TRACED, LINKS_LEFT_OUT, BATCH_SPANS_LEFT_OUT, MESSAGING_SYSTEM, MESSAGING_OPERATION,
        MESSAGING_DESTINATION, MESSAGING_COUNT, IS_INCOMPLETE, KUBERNETES_NAMESPACE, KUBERNETES_POD,
        KUBERNETES_NODE,
    ),
)  # fmt: skip
JOB_SPAN: Final = SpanName(
    "job", "one Spark job", (JOB_ID, DESCRIPTION, GROUP, POOL, JOB_STAGES, JOB_SKIPPED, IS_INCOMPLETE)
)
STAGE_SPAN: Final = SpanName(
    "stage",
    "one attempt of a stage",
    (
        STAGE_ID, STAGE_ATTEMPT, STAGE_GROUP, CALL_SITE, TASKS, TASKS_ENDED, TASKS_FAILED, TASKS_KILLED,
        TASKS_SPECULATIVE, *_NUMBERS, IS_INCOMPLETE,
    ),
)  # fmt: skip
TASK_SPAN: Final = SpanName(
    "task",
    "one attempt of a task that failed, was retried, was speculative, or took longest",
    (
        TASK_ID, TASK_INDEX, TASK_ATTEMPT, TASK_SPECULATIVE, EXECUTOR_ID, HOST, KUBERNETES_NAMESPACE, KUBERNETES_POD,
        KUBERNETES_NODE, *_NUMBERS,
    ),
)  # fmt: skip
# Labels, as is the stage group. The name of the application is in the resource, which Prometheus makes a label of too.
LOSS: Final = Attribute("spark.executor.loss", str, "the kind of reason why an executor was lost", is_label=True)
RULE: Final = Attribute("spark.finding.rule", str, "the diagnosis", is_label=True)
SEVERITY: Final = Attribute("spark.finding.severity", str, "the severity: warning, info", is_label=True)

# A finding is an event on the span of its application, query or stage; its rule and severity are labels too.
FINDING_EVENT: Final = "spark.finding"
FINDING_TEXT: Final = Attribute("spark.finding.text", str, "the finding in a sentence, with its numbers")
FINDING_ADVICE: Final = Attribute("spark.finding.advice", str, "what to change")
FINDING_COST: Final = Attribute("spark.finding.cost", float, "ms of wall-clock time that it costs, estimated")
FINDING_OPERATOR: Final = Attribute("spark.finding.operator", str, "the operator of the plan that the finding is about")
FINDING_NUMBERS: Final = Attribute("spark.finding.numbers", str, "the evidence as JSON, with the units in its keys")

# A task should take seconds, so buckets are finest there: scheduling outweighs shorter tasks, longer ones block cores.
_TASK_SECONDS: Final = (
    0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0,
)  # fmt: skip


TASK_DURATION: Final = Metric(
    "spark.task.duration", "histogram", "s", "From the launch of a task to its end", (STAGE_GROUP,), _TASK_SECONDS
)
TASK_RUN_TIME: Final = Metric(
    "spark.task.run_time", "counter", "s", "Time that tasks ran on their executors", (STAGE_GROUP,)
)
TASK_SPILL: Final = Metric("spark.task.spill", "counter", "By", "Bytes that tasks spilled to disk", (STAGE_GROUP,))
STAGE_PYTHON_TIME: Final = Metric(
    "spark.stage.python_time", "counter", "s", "Time of the tasks of stages in Python", (STAGE_GROUP,)
)
# Sums over stages, so that one divided by the other is the skew within stages, and not that between them.
STAGE_LONGEST_TASK: Final = Metric(
    "spark.stage.longest_task", "counter", "s", "The longest task of each stage that ended, added up", (STAGE_GROUP,)
)
STAGE_MEDIAN_TASK: Final = Metric(
    "spark.stage.median_task", "counter", "s", "The median task of each stage that ended, added up", (STAGE_GROUP,)
)
# By application only: a series for each stage group as well would be more than a Prometheus of this size holds.
TASK_CPU_TIME: Final = Metric("spark.task.cpu_time", "counter", "s", "CPU time of tasks in the JVM", ())
TASK_GC_TIME: Final = Metric("spark.task.gc_time", "counter", "s", "Time that garbage collection paused tasks", ())
TASK_DELAY: Final = Metric(
    "spark.task.scheduler_delay", "counter", "s", "Time in which tasks neither ran nor returned results", ()
)
TASK_SHUFFLE_READ: Final = Metric("spark.task.shuffle.read", "counter", "By", "Shuffle bytes that tasks read", ())
TASK_SHUFFLE_WRITE: Final = Metric("spark.task.shuffle.write", "counter", "By", "Shuffle bytes that tasks wrote", ())
TASK_INPUT: Final = Metric("spark.task.input", "counter", "By", "Bytes that tasks read from files and tables", ())
TASK_OUTPUT: Final = Metric("spark.task.output", "counter", "By", "Bytes that tasks wrote to files and tables", ())

TASKS_FAILED_COUNT: Final = Metric(
    "spark.tasks.failed",
    "counter",
    "{task}",
    "Task attempts that failed, without those that were killed",
    (),
)
STAGES_FAILED: Final = Metric("spark.stages.failed", "counter", "{stage}", "Stage attempts that failed", ())
JOBS_FAILED: Final = Metric("spark.jobs.failed", "counter", "{job}", "Jobs that failed", ())
EXECUTORS_ADDED: Final = Metric("spark.executors.added", "counter", "{executor}", "Executors that registered", ())
EXECUTORS_LOST: Final = Metric(
    "spark.executors.lost",
    "counter",
    "{executor}",
    "Executors that were lost without being decommissioned or released",
    (LOSS,),
)
FINDINGS: Final = Metric("spark.findings", "counter", "{finding}", "Findings of the diagnoses", (RULE, SEVERITY))
TASKS_ACTIVE: Final = Metric("spark.tasks.active", "gauge", "{task}", "Running tasks", ())
EXECUTORS_ACTIVE: Final = Metric("spark.executors.active", "gauge", "{executor}", "Registered executors", ())
CORES_ACTIVE: Final = Metric("spark.cores.active", "gauge", "{core}", "Cores of the registered executors", ())
STORAGE: Final = Metric(
    "spark.storage.memory",
    "gauge",
    "By",
    "Executor memory that cached blocks use, by the last reports of the executors",
    (),
)

# What the bridge measures about itself. It serves these metrics on its own port, with the names that `series` derives.
SIGNAL: Final = Attribute("signal", str, "what a request exports: traces, metrics", is_label=True)
BRIDGE_EVENTS: Final = Metric("spark.bridge.events", "counter", "{event}", "Events read from event logs", ())
BRIDGE_UNREADABLE_LINES: Final = Metric(
    "spark.bridge.unreadable_lines", "counter", "{line}", "Lines of event logs that the bridge could not parse", ()
)
BRIDGE_FAILED_EVENTS: Final = Metric(
    "spark.bridge.failed_events", "counter", "{event}", "Events that a bug of the bridge kept from being processed", ()
)
BRIDGE_LOST_FILES: Final = Metric(
    "spark.bridge.lost_files",
    "counter",
    "{file}",
    "Rolled files that were deleted or damaged before the bridge read them",
    (),
)
BRIDGE_SPANS_SENT: Final = Metric(
    "spark.bridge.spans_sent", "counter", "{span}", "Spans that the collector accepted", ()
)
BRIDGE_SPANS_DROPPED: Final = Metric(
    "spark.bridge.spans_dropped",
    "counter",
    "{span}",
    "Spans dropped because the queue was full or the collector refused them",
    (),
)
BRIDGE_TASKS_SUPPRESSED: Final = Metric(
    "spark.bridge.tasks_suppressed", "counter", "{task}", "Ordinary tasks, which are counted and get no span", ()
)
BRIDGE_SPANS_SUPPRESSED: Final = Metric(
    "spark.bridge.spans_suppressed", "counter", "{span}", "Spans of traces that are not sampled", ()
)
BRIDGE_STATE_FAILURES: Final = Metric(
    "spark.bridge.state_failures", "counter", "{write}", "Failed writes of the checkpoint", ()
)
BRIDGE_EXPORT_FAILURES: Final = Metric(
    "spark.bridge.export_failures", "counter", "{request}", "Requests that the collector did not accept", (SIGNAL,)
)
BRIDGE_SPANS_WAITING: Final = Metric("spark.bridge.spans_waiting", "gauge", "{span}", "Spans in the export queue", ())
BRIDGE_LOGS_FOLLOWED: Final = Metric(
    "spark.bridge.logs_followed", "gauge", "{log}", "Event logs that may still grow", ()
)
BRIDGE_LOGS_DONE: Final = Metric(
    "spark.bridge.logs_done", "gauge", "{log}", "Event logs that are finished or abandoned", ()
)
BRIDGE_UNREAD: Final = Metric(
    "spark.bridge.unread", "gauge", "By", "Bytes of event logs on disk that the bridge has not read yet", ()
)
BRIDGE_LAG: Final = Metric("spark.bridge.lag", "gauge", "s", "Age of the oldest unread bytes", ())
BRIDGE_SILENCE: Final = Metric("spark.bridge.silence", "gauge", "s", "Time since the last turn of the main loop", ())
BRIDGE_VOLUME_FREE: Final = Metric(
    "spark.bridge.volume.free", "gauge", "By", "Free bytes of the volume of the event logs", ()
)
BRIDGE_VOLUME_SIZE: Final = Metric(
    "spark.bridge.volume.size", "gauge", "By", "Size of the volume of the event logs", ()
)

SPANS: Final = (
    APPLICATION_SPAN, SESSION_SPAN, OPERATION_SPAN, QUERY_SPAN, BATCH_SPAN, JOB_SPAN, STAGE_SPAN, TASK_SPAN,
)  # fmt: skip
ATTRIBUTES: Final = tuple(entry for entry in globals().copy().values() if isinstance(entry, Attribute))
BRIDGE_METRICS: Final = (
    BRIDGE_EVENTS, BRIDGE_UNREADABLE_LINES, BRIDGE_FAILED_EVENTS, BRIDGE_LOST_FILES, BRIDGE_SPANS_SENT,
    BRIDGE_SPANS_DROPPED, BRIDGE_TASKS_SUPPRESSED, BRIDGE_SPANS_SUPPRESSED, BRIDGE_STATE_FAILURES,
    BRIDGE_EXPORT_FAILURES,
    BRIDGE_SPANS_WAITING, BRIDGE_LOGS_FOLLOWED, BRIDGE_LOGS_DONE, BRIDGE_UNREAD, BRIDGE_LAG, BRIDGE_SILENCE,
    BRIDGE_VOLUME_FREE, BRIDGE_VOLUME_SIZE,
)  # fmt: skip
"""The metrics that the bridge serves about itself; the bridge exports none of them over OTLP."""
METRICS: Final = tuple(
    entry for entry in globals().copy().values() if isinstance(entry, Metric) and entry not in BRIDGE_METRICS
)
"""The metrics of Spark applications."""
