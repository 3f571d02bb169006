"""The part of the catalogue that Spark tells: spans and attributes made of event logs.

Spark has no semantic conventions of OpenTelemetry's; these names follow those of its own event log and REST API.
"""

from typing import Final

from app.telemetry.names import APPLICATION, Attribute, SpanName

APPLICATION_ID: Final = Attribute("spark.app.id", str, "id of the application, drawn by the cluster manager")
APPLICATION_ATTEMPT: Final = Attribute("spark.app.attempt.id", str, "which attempt of the application, where there are")
SPARK_VERSION: Final = Attribute("spark.version", str, "version of Spark that wrote the log")
EXIT_CODE: Final = Attribute("spark.app.exit_code", int, "exit code of the driver, from Spark 4.1 on")
IS_INCOMPLETE: Final = Attribute("spark.incomplete", bool, "true where the log has no end of it: it ends with the log")

QUERY_ID: Final = Attribute("spark.sql.execution.id", int, "number of the SQL execution within the application")
DESCRIPTION: Final = Attribute("spark.job.description", str, "what the program calls its work")
GROUP: Final = Attribute("spark.jobGroup.id", str, "the group that the program put its jobs in")
DETAILS: Final = Attribute("spark.sql.details", str, "the call that began the query, cut to a bounded length")
PLANS: Final = Attribute("spark.sql.plans", int, "how many plans it had; adaptive execution replaces plans")
PLAN: Final = Attribute("spark.sql.plan", str, "the plan that ran, as an indented tree with what each operator counted")
PLAN_IS_CUT: Final = Attribute("spark.sql.plan.truncated", bool, "true where the plan is longer than what is kept")

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
        STAGE_ID, STAGE_ATTEMPT, TASKS, TASKS_ENDED, TASKS_FAILED, TASKS_KILLED, TASKS_SPECULATIVE,
        *_NUMBERS, IS_INCOMPLETE,
    ),
)  # fmt: skip
TASK_SPAN: Final = SpanName(
    "task",
    "one attempt of a task that failed, was tried again, was speculative, or took longest",
    (TASK_ID, TASK_INDEX, TASK_ATTEMPT, TASK_SPECULATIVE, EXECUTOR_ID, HOST, *_NUMBERS),
)
SPANS: Final = (APPLICATION_SPAN, QUERY_SPAN, BATCH_SPAN, JOB_SPAN, STAGE_SPAN, TASK_SPAN)
ATTRIBUTES: Final = tuple(entry for entry in globals().copy().values() if isinstance(entry, Attribute))
