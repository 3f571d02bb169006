"""The part of the catalogue that Spark tells: spans and attributes made of event logs.

Spark has no semantic conventions of OpenTelemetry's; these names follow those of its own event log and REST API.
"""

from typing import Final

from app.telemetry.names import APPLICATION, Attribute, Metric, SpanName

APPLICATION_ID: Final = Attribute("spark.app.id", str, "id of the application, drawn by the cluster manager")
APPLICATION_ATTEMPT: Final = Attribute("spark.app.attempt.id", str, "which attempt of the application, where there are")
SPARK_VERSION: Final = Attribute("spark.version", str, "version of Spark that wrote the log")
EXIT_CODE: Final = Attribute("spark.app.exit_code", int, "exit code of the driver, from Spark 4.0 on")
IS_INCOMPLETE: Final = Attribute("spark.incomplete", bool, "true where the log lacks its start or its end")

QUERY_ID: Final = Attribute("spark.sql.execution.id", int, "number of the SQL execution within the application")
DESCRIPTION: Final = Attribute("spark.job.description", str, "what the program calls its work")
GROUP: Final = Attribute("spark.jobGroup.id", str, "the group that the program put its jobs in")
DETAILS: Final = Attribute("spark.sql.details", str, "the call that began the query, cut to a bounded length")
PLANS: Final = Attribute("spark.sql.plans", int, "how many plans it had; adaptive execution replaces plans")
PLAN: Final = Attribute("spark.sql.plan", str, "the plan that ran, as an indented tree with what each operator counted")
PLAN_IS_CUT: Final = Attribute("spark.sql.plan.truncated", bool, "true where the plan is longer than what is kept")

STEP_TAG: Final = "traceparent:"
"""What a job tag begins with that names a step: only tags tell for whom a query is that runs no job."""
WORKLOAD: Final = "spark.sparkApp.workload"
"""The property in which a command of ours says what it was asked to do: it is compared with those asked the same."""

STREAM: Final = Attribute("spark.streaming.query.name", str, "name of the streaming query")
STREAM_ID: Final = Attribute("spark.streaming.query.id", str, "id of the streaming query, the same over restarts")
STREAM_RUN_ID: Final = Attribute("spark.streaming.query.run_id", str, "id of one run of the streaming query")
BATCH_ID: Final = Attribute("spark.streaming.batch.id", int, "number of the batch, from 0")
BATCH_ROWS: Final = Attribute("spark.streaming.batch.rows", int, "rows that the batch has read")

JOB_ID: Final = Attribute("spark.job.id", int, "number of the job within the application")
JOB_STAGES: Final = Attribute("spark.job.stages", int, "stages that the job may need")
JOB_SKIPPED: Final = Attribute("spark.job.stages.skipped", int, "stages not run, as their output was there")

STAGE_ID: Final = Attribute("spark.stage.id", int, "number of the stage within the application")
STAGE_ATTEMPT: Final = Attribute("spark.stage.attempt", int, "which attempt, from 0")
STAGE_GROUP: Final = Attribute("spark.stage.group", str, "what a stage does, the same in every run", is_label=True)
TASKS: Final = Attribute("spark.stage.tasks", int, "tasks that the attempt needs")
TASKS_ENDED: Final = Attribute("spark.stage.tasks.ended", int, "task attempts that ended")
TASKS_FAILED: Final = Attribute("spark.stage.tasks.failed", int, "task attempts that failed")
TASKS_KILLED: Final = Attribute("spark.stage.tasks.killed", int, "task attempts that were killed")
TASKS_SPECULATIVE: Final = Attribute("spark.stage.tasks.speculative", int, "task attempts that were speculative")

TASK_ID: Final = Attribute("spark.task.id", int, "number of the task attempt within the application")
TASK_INDEX: Final = Attribute("spark.task.index", int, "the partition's place in its stage")
TASK_ATTEMPT: Final = Attribute("spark.task.attempt", int, "which attempt, from 0")
TASK_SPECULATIVE: Final = Attribute("spark.task.speculative", bool, "true for one that ran beside a slow one")
EXECUTOR_ID: Final = Attribute("spark.executor.id", str, "the executor that ran it")
HOST: Final = Attribute("host.name", str, "where that executor is")

RUN_TIME: Final = Attribute("spark.executor.run_time", int, "ms of tasks at work")
CPU_TIME: Final = Attribute("spark.executor.cpu_time", int, "ms of processor time of tasks")
GC_TIME: Final = Attribute("spark.executor.gc_time", int, "ms of tasks stopped by the garbage collector")
SCHEDULER_DELAY: Final = Attribute("spark.scheduler_delay", int, "ms of tasks neither at work nor fetching results")
INPUT_BYTES: Final = Attribute("spark.input.bytes", int, "bytes read of files and tables")
INPUT_RECORDS: Final = Attribute("spark.input.records", int, "records read of files and tables")
OUTPUT_BYTES: Final = Attribute("spark.output.bytes", int, "bytes written to files and tables")
OUTPUT_RECORDS: Final = Attribute("spark.output.records", int, "records written to files and tables")
SHUFFLE_READ_BYTES: Final = Attribute("spark.shuffle.read.bytes", int, "bytes read of other stages")
SHUFFLE_READ_RECORDS: Final = Attribute("spark.shuffle.read.records", int, "records read of other stages")
SHUFFLE_WAIT: Final = Attribute("spark.shuffle.read.wait", int, "ms of tasks waiting for blocks of other stages")
SHUFFLE_WRITE_BYTES: Final = Attribute("spark.shuffle.write.bytes", int, "bytes left for other stages")
SHUFFLE_WRITE_RECORDS: Final = Attribute("spark.shuffle.write.records", int, "records left for other stages")
MEMORY_SPILLED: Final = Attribute("spark.spill.memory_bytes", int, "bytes in memory that had to be spilled")
DISK_SPILLED: Final = Attribute("spark.spill.disk_bytes", int, "bytes on disk that they took there")

PYTHON_FUNCTION: Final = Attribute("spark.python.function", str, "name of the function, as Python has it")
PYTHON_BATCHES: Final = Attribute("spark.python.batches", int, "batches or groups that it was handed in the task")
PYTHON_ROWS_IN: Final = Attribute("spark.python.input.records", int, "rows that it was handed")
PYTHON_ROWS_OUT: Final = Attribute("spark.python.output.records", int, "rows that it gave back")
PYTHON_TIME: Final = Attribute("spark.python.run_time", int, "ms at work in it, without waiting for its next batch")
PYTHON_CPU_TIME: Final = Attribute("spark.python.cpu_time", int, "ms of processor time at work in it")

_NUMBERS: Final = (
    RUN_TIME, CPU_TIME, GC_TIME, SCHEDULER_DELAY, INPUT_BYTES, INPUT_RECORDS, OUTPUT_BYTES, OUTPUT_RECORDS,
    SHUFFLE_READ_BYTES, SHUFFLE_READ_RECORDS, SHUFFLE_WAIT, SHUFFLE_WRITE_BYTES, SHUFFLE_WRITE_RECORDS,
    MEMORY_SPILLED, DISK_SPILLED,
)  # fmt: skip

APPLICATION_SPAN: Final = SpanName(
    "application",
    "one Spark application, from its start to its end",
    (APPLICATION, APPLICATION_ID, APPLICATION_ATTEMPT, SPARK_VERSION, EXIT_CODE, IS_INCOMPLETE),
)
QUERY_SPAN: Final = SpanName(
    "sql",
    "one SQL execution",
    (QUERY_ID, DESCRIPTION, DETAILS, PLANS, PLAN, PLAN_IS_CUT, IS_INCOMPLETE),
)
BATCH_SPAN: Final = SpanName(
    "batch",
    "one batch of a streaming query that has run jobs",
    (STREAM, STREAM_ID, STREAM_RUN_ID, BATCH_ID, BATCH_ROWS, IS_INCOMPLETE),
)
JOB_SPAN: Final = SpanName("job", "one Spark job", (JOB_ID, DESCRIPTION, GROUP, JOB_STAGES, JOB_SKIPPED, IS_INCOMPLETE))
STAGE_SPAN: Final = SpanName(
    "stage",
    "one attempt of a stage",
    (
        STAGE_ID, STAGE_ATTEMPT, STAGE_GROUP, TASKS, TASKS_ENDED, TASKS_FAILED, TASKS_KILLED, TASKS_SPECULATIVE,
        *_NUMBERS, IS_INCOMPLETE,
    ),
)  # fmt: skip
TASK_SPAN: Final = SpanName(
    "task",
    "one attempt of a task that failed, was tried again, was speculative, or took longest",
    (TASK_ID, TASK_INDEX, TASK_ATTEMPT, TASK_SPECULATIVE, EXECUTOR_ID, HOST, *_NUMBERS),
)
PYTHON_SPAN: Final = SpanName(
    "python",
    "what an observed Python function did in one task, all its calls together",
    (PYTHON_FUNCTION, PYTHON_BATCHES, PYTHON_ROWS_IN, PYTHON_ROWS_OUT, PYTHON_TIME, PYTHON_CPU_TIME, TASK_ID),
)
# Labels, as is the stage group. The name of the application is in the resource, which Prometheus makes a label of too.
LOSS: Final = Attribute("spark.executor.loss", str, "why an executor was lost, by kind", is_label=True)
RULE: Final = Attribute("spark.finding.rule", str, "which diagnosis", is_label=True)
SEVERITY: Final = Attribute("spark.finding.severity", str, "how bad: warning, info", is_label=True)

# Of a finding, which is an event of the span of what it was found in; rule and severity are labels too.
FINDING_EVENT: Final = "spark.finding"
FINDING_TEXT: Final = Attribute("spark.finding.text", str, "the conclusion, with its numbers, for a person")
FINDING_ADVICE: Final = Attribute("spark.finding.advice", str, "what to change, and with what")
FINDING_COST: Final = Attribute("spark.finding.cost", float, "ms of wall-clock time that it is estimated to cost")
FINDING_OPERATOR: Final = Attribute("spark.finding.operator", str, "the operator of a plan that it is about")
FINDING_NUMBERS: Final = Attribute("spark.finding.numbers", str, "the evidence as JSON; units are in its names")

# A task should take seconds: finest there. Shorter ones cost more to schedule than they do, longer ones starve others.
_TASK_SECONDS: Final = (
    0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0,
)  # fmt: skip
# Finest around 64 and 128 MiB, what Spark aims at for a partition of a shuffle and of files; coarse elsewhere.
_TASK_BYTES: Final = (
    *(float(4 * 2**10), float(64 * 2**10)),
    *(float(mebibytes * 2**20) for mebibytes in (1, 4, 16, 64, 128, 256, 1024, 4096, 16384)),
)


def _of_tasks(name: str, unit: str, meaning: str) -> Metric:
    buckets = _TASK_SECONDS if unit == "s" else _TASK_BYTES
    return Metric(f"spark.task.{name}", "histogram", unit, meaning, (STAGE_GROUP,), buckets)


TASK_DURATION: Final = _of_tasks("duration", "s", "From the launch of a task to its end")
TASK_RUN_TIME: Final = _of_tasks("run_time", "s", "How long a task was at work on its executor")
TASK_CPU_TIME: Final = _of_tasks("cpu_time", "s", "Processor time of a task in the JVM")
TASK_GC_TIME: Final = _of_tasks("gc_time", "s", "How long the garbage collector stopped a task")
TASK_DELAY: Final = _of_tasks("scheduler_delay", "s", "Time of a task neither at work nor fetching results")
TASK_SHUFFLE_READ: Final = _of_tasks("shuffle.read", "By", "What a task read of other stages, of those that read")
TASK_SHUFFLE_WRITE: Final = _of_tasks("shuffle.write", "By", "What a task left for other stages, of those that did")
TASK_SPILL: Final = _of_tasks("spill", "By", "What a task spilled to disk, of those that did")
TASK_INPUT: Final = _of_tasks("input", "By", "What a task read of files and tables, of those that did")
TASK_OUTPUT: Final = _of_tasks("output", "By", "What a task wrote to files and tables, of those that did")

STAGE_PYTHON_TIME: Final = Metric(
    "spark.stage.python_time", "histogram", "s", "Time of all tasks of a stage attempt in Python, where there was any",
    (STAGE_GROUP,), _TASK_SECONDS,
)  # fmt: skip

TASKS_FAILED_COUNT: Final = Metric(
    "spark.tasks.failed", "counter", "{task}", "Task attempts that failed; killed ones did not", (STAGE_GROUP,)
)
STAGES_FAILED: Final = Metric("spark.stages.failed", "counter", "{stage}", "Stage attempts that failed", (STAGE_GROUP,))
JOBS_FAILED: Final = Metric("spark.jobs.failed", "counter", "{job}", "Jobs that failed", ())
EXECUTORS_ADDED: Final = Metric("spark.executors.added", "counter", "{executor}", "Executors that registered", ())
EXECUTORS_LOST: Final = Metric(
    "spark.executors.lost", "counter", "{executor}", "Executors that went though nobody had sent them away", (LOSS,)
)
FINDINGS: Final = Metric(
    "spark.findings", "counter", "{finding}", "Conclusions that diagnoses came to", (RULE, SEVERITY)
)
TASKS_ACTIVE: Final = Metric("spark.tasks.active", "gauge", "{task}", "Tasks at work", ())
EXECUTORS_ACTIVE: Final = Metric("spark.executors.active", "gauge", "{executor}", "Executors that are there", ())
CORES_ACTIVE: Final = Metric("spark.cores.active", "gauge", "{core}", "Cores of the executors that are there", ())
STORAGE: Final = Metric(
    "spark.storage.memory", "gauge", "By", "Memory of executors that cached blocks take, by their last reports", ()
)

SPANS: Final = (APPLICATION_SPAN, QUERY_SPAN, BATCH_SPAN, JOB_SPAN, STAGE_SPAN, TASK_SPAN, PYTHON_SPAN)
ATTRIBUTES: Final = tuple(entry for entry in globals().copy().values() if isinstance(entry, Attribute))
METRICS: Final = tuple(entry for entry in globals().copy().values() if isinstance(entry, Metric))
