"""The parts of the JSON document that sections of a report make, and what the types of their fields say of values.

A section may add what only a page draws, by a subclass; `values.document` leaves that out.
"""

from datetime import datetime
from decimal import Decimal
from typing import Annotated

from msgspec import Meta, Struct

from spark_app.eventlog.diagnoses import excerpts
from spark_app.eventlog.document import MAX_NAME, Count, Known, Name
from spark_app.eventlog.model import connect
from spark_app.report.formatting import line, text
from spark_app.report.scope import Status
from spark_app.report.values import MAX_TEXT

ErrorText = Annotated[str, Meta(extra={"shown": lambda content: line(excerpts.error(content), MAX_NAME)})]
"""The message of an error, without its stack trace."""
TextIfAny = Annotated[str, Meta(extra={"shown": lambda content: text(content, MAX_TEXT) or None})]


class Figures(Struct):
    """Sums over all tasks; None where Spark did not report them.

    `core_hours` and `gib_hours` are those of executors while they were registered; `price` is of these, in `currency`,
    None where `prices` of the configuration has none.
    """

    duration_ms: Known
    jobs: Count
    stages: Count
    queries: Count
    tasks: Count
    failed_tasks: Count
    rows_read: Known
    bytes_read: Known
    rows_written: Known
    bytes_written: Known
    shuffled_bytes: Known
    spilled_bytes: Known
    gc_ratio: float | None
    cpu_ratio: float | None
    cores: Known
    cores_busy_ratio: float | None
    idle_ms: Known
    idle_ratio: float | None
    core_hours: float | None = None
    gib_hours: float | None = None
    price: Decimal | None = None
    currency: str | None = None


class TaskTimes(Struct):
    """How long the tasks of a stage took: 5 % of them at most `p5_ms`."""

    p5_ms: Count
    p25_ms: Count
    median_ms: Count
    p75_ms: Count
    p95_ms: Count
    longest_ms: Count


class Data(Struct):
    """What the tasks of a stage moved; None where a source counts no rows, or no bytes, as Spark for local Parquet."""

    rows_read: Known
    bytes_read: Known
    rows_written: Known
    bytes_written: Known
    shuffle_read_bytes: Count
    shuffle_written_bytes: Count
    spilled_bytes: Count


class Stage(Struct):
    """An attempt of a stage; `data` and `gc_ratio` are None where no task reported them."""

    id: Count
    attempt: Count
    name: Name
    status: Status
    error: ErrorText | None
    started: datetime | None
    duration_ms: Known
    tasks: Count
    ended_tasks: Count
    failed_tasks: Count
    killed_tasks: Count
    task_times: TaskTimes | None
    data: Data | None
    gc_ratio: float | None


class Query(Struct):
    """A SQL execution."""

    id: Count
    name: Name
    status: Status
    error: ErrorText | None
    started: datetime | None
    duration_ms: Known
    jobs: Count


class Stream(Struct):
    """A streaming query over all its batches; `lag_records`, `lag_ms`, `watermark` and `state_rows` are after the last.

    `phases_ms` has the parts of their work by Spark's names; `lag_ms` is of the topic that is furthest behind.
    """

    name: Name
    status: str
    error: ErrorText | None
    starts: Count
    trigger_interval_ms: Known
    busy_ratio: float | None
    batches: Count
    batches_without_rows: Known = None
    rows_read: Known = None
    rows_written: Known = None
    mean_batch_ms: Known = None
    longest_batch_ms: Known = None
    phases_ms: dict[Name, Count] = {}
    watermark: datetime | None = None
    lag_records: Known = None
    lag_ms: Known = None
    state_rows: Known = None


class Operation(Struct):
    """What a client of Spark Connect asked for: SQL, or a plan of a kind, with the outermost line of the client in it.

    It took `prepare_ms` until its plan was analyzed and ready, `wait_ms` from then until its first task was launched,
    and `run_ms` from then until it had run; null where it did not come so far, or has no tasks. `rows` went to the
    client.
    """

    id: Name
    user: Name | None
    session: Name
    name: Name
    kind: Name
    sql: TextIfAny | None
    call_site: Name | None
    status: connect.Status
    error: ErrorText | None
    started: datetime | None
    duration_ms: Known
    prepare_ms: Known
    wait_ms: Known
    run_ms: Known
    rows: Known
    queries: list[Count]


class ClientUser(Struct):
    """A user of a Spark Connect server, with what its tasks had of what the executors took.

    `user` is null for the rest: executors without a task, and tasks that no client asked for.
    """

    user: Name | None
    sessions: Count
    operations: Count
    failed_operations: Count
    wait_ms: Count
    core_hours: float | None
    gib_hours: float | None
    price: Decimal | None


class Connect(Struct):
    """The clients of a Spark Connect server: the most expensive users first, operations by their starts."""

    users: list[ClientUser]
    operations: list[Operation]
