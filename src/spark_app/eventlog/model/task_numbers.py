"""The numbers of tasks: one table of where a task reports each, and of what it is called elsewhere.

The fields of `Totals` are the rows of the table. Sums over tasks, the attributes of spans, the counters of the bridge,
the keys of the document and the names for assistants come from it. A field ends with its unit, or is a count or bytes;
`events.TaskMetrics` has the keys of the event log.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Final, get_type_hints

from spark_app.eventlog.parse.events import TaskMetrics
from spark_app.vocabulary import spark_names as names
from spark_app.vocabulary.names import Attribute, Metric


@dataclass(frozen=True, slots=True)
class Number:
    """A row of the table.

    Attributes:
        source: What a task adds: an expression of its `metrics`, of their parts `read`, `write`, `input` and `output`,
            and of its scheduler delay, `delay_ms`.
        attribute: Of the span of a stage.
        metric: The counter of a stage group, or of an application if it has no labels.
        key: In the document, of a stage.
        beside: The number of the same rows or bytes: where a source counts only that, this one is unknown.
        words: What assistants read, among the seconds of a stage.
    """

    source: str
    attribute: Attribute | None = None
    metric: Metric | None = None
    key: str = ""
    beside: str = ""
    words: str = ""


@dataclass(slots=True)
class Totals:
    """Sums over tasks that reported metrics.

    The CPU time is None where no task has reported one; `result_bytes` is what they sent to the driver.
    """

    run_ms: Annotated[int, Number("metrics.run_ms", names.RUN_TIME, names.TASK_RUN_TIME, words="run")] = 0
    cpu_ns: Annotated[int | None, Number("metrics.cpu_ns", names.CPU_TIME, names.TASK_CPU_TIME, words="cpu")] = None
    gc_ms: Annotated[int, Number("metrics.gc_ms", names.GC_TIME, names.TASK_GC_TIME, words="garbage_collection")] = 0
    shuffle_wait_ms: Annotated[int, Number("read.wait_ms", names.SHUFFLE_WAIT, words="waiting_for_shuffle")] = 0
    scheduler_delay_ms: Annotated[
        int, Number("delay_ms", names.SCHEDULER_DELAY, names.TASK_DELAY, words="scheduler_delay")
    ] = 0
    input_records: Annotated[
        int, Number("input.records", names.INPUT_RECORDS, key="rows_read", beside="input_bytes")
    ] = 0
    input_bytes: Annotated[
        int, Number("input.bytes", names.INPUT_BYTES, names.TASK_INPUT, "bytes_read", "input_records")
    ] = 0
    shuffle_read_records: Annotated[int, Number("read.records", names.SHUFFLE_READ_RECORDS)] = 0
    shuffle_read_bytes: Annotated[
        int,
        Number(
            "read.remote_bytes + read.local_bytes",
            names.SHUFFLE_READ_BYTES,
            names.TASK_SHUFFLE_READ,
            "shuffle_read_bytes",
        ),
    ] = 0
    shuffle_write_records: Annotated[int, Number("write.records", names.SHUFFLE_WRITE_RECORDS)] = 0
    shuffle_write_bytes: Annotated[
        int, Number("write.bytes", names.SHUFFLE_WRITE_BYTES, names.TASK_SHUFFLE_WRITE, "shuffle_written_bytes")
    ] = 0
    output_records: Annotated[
        int, Number("output.records", names.OUTPUT_RECORDS, key="rows_written", beside="output_bytes")
    ] = 0
    output_bytes: Annotated[
        int, Number("output.bytes", names.OUTPUT_BYTES, names.TASK_OUTPUT, "bytes_written", "output_records")
    ] = 0
    memory_spilled: Annotated[int, Number("metrics.memory_spilled", names.MEMORY_SPILLED)] = 0
    disk_spilled: Annotated[
        int, Number("metrics.disk_spilled", names.DISK_SPILLED, names.TASK_SPILL, "spilled_bytes")
    ] = 0
    deserialize_ms: Annotated[int, Number("metrics.deserialize_ms", words="deserializing")] = 0
    deserialize_cpu_ns: Annotated[int, Number("metrics.deserialize_cpu_ns")] = 0
    serialize_ms: Annotated[int, Number("metrics.serialize_ms")] = 0
    result_bytes: Annotated[int, Number("metrics.result_bytes")] = 0
    output_tasks: Annotated[int, Number("output.bytes > 0")] = 0


def _table() -> dict[str, Number]:
    hints = get_type_hints(Totals, include_extras=True)
    return {each.name: hints[each.name].__metadata__[0] for each in fields(Totals)}


NUMBERS: Final[Mapping[str, Number]] = _table()
"""The rows by the names of the fields."""
PER_SECOND: Final = {"ms": 1000, "ns": 10**9}
"""How many of the unit at the end of a name make a second."""


def unit_of(name: str) -> int:
    """How many of the unit of a number make one of its counter: seconds, or as they are."""
    return PER_SECOND.get(name.rpartition("_")[2], 1)


def _adder() -> Callable[[Totals, TaskMetrics, int], None]:
    """The function that adds a task, made of the table once: a loop over it would take most of the time of reading."""
    optional = {each.name for each in fields(Totals) if each.default is None}
    lines = [
        f"if (more := {number.source}) is not None: totals.{name} = (totals.{name} or 0) + more"
        if name in optional
        else f"totals.{name} += {number.source}"
        for name, number in NUMBERS.items()
    ]
    parts = "read, write, input, output = metrics.shuffle_read, metrics.shuffle_write, metrics.input, metrics.output"
    made: dict[str, Callable[[Totals, TaskMetrics, int], None]] = {}
    exec("\n    ".join(["def add(totals, metrics, delay_ms):", parts, *lines]), made)
    return made["add"]


add: Final = _adder()
"""Adds what one task did, with its scheduler delay."""


def summed(several: Iterable[Totals]) -> Totals:
    """The sums of some sums."""
    known = [*several]
    values = {name: [value for each in known if (value := getattr(each, name)) is not None] for name in NUMBERS}
    return Totals(**{name: sum(each) for name, each in values.items() if each})


def attributes(totals: Totals) -> dict[Attribute, int | None]:
    """What the span of a stage says: times in milliseconds."""
    return {
        number.attribute: value // 1_000_000 if value and name.endswith("_ns") else value
        for name, number in NUMBERS.items()
        if number.attribute is not None
        for value in [getattr(totals, name)]
    }


def seconds(totals: Totals) -> dict[str, float | None]:
    """The times in seconds, as assistants read them."""
    return {
        number.words: None if value is None else round(value / unit_of(name), 3)
        for name, number in NUMBERS.items()
        if number.words
        for value in [getattr(totals, name)]
    }


def moved(totals: Totals) -> dict[str, int | None]:
    """What tasks moved, by the keys of the document; None where a source counts only rows, or only bytes."""
    return {
        number.key: None if number.beside and not value and getattr(totals, number.beside) else value
        for name, number in NUMBERS.items()
        if number.key
        for value in [getattr(totals, name)]
    }
