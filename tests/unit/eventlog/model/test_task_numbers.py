import msgspec
import pytest

from spark_app.eventlog.comparison.profile import Volume
from spark_app.eventlog.model.task_numbers import NUMBERS, Totals, add, attributes, moved, seconds, summed
from spark_app.eventlog.parse.events import TaskMetrics
from spark_app.report.parts import Data
from spark_app.vocabulary import spark_names as names

LOGGED = {
    "Executor Run Time": 2_000,
    "Executor CPU Time": 3_000_000,
    "JVM GC Time": 4,
    "Executor Deserialize Time": 5,
    "Executor Deserialize CPU Time": 6,
    "Result Serialization Time": 7,
    "Result Size": 8,
    "Memory Bytes Spilled": 9,
    "Disk Bytes Spilled": 10,
    "Shuffle Read Metrics": {
        "Remote Bytes Read": 11,
        "Local Bytes Read": 100,
        "Total Records Read": 12,
        "Fetch Wait Time": 13,
    },
    "Shuffle Write Metrics": {"Shuffle Bytes Written": 14, "Shuffle Records Written": 15},
    "Input Metrics": {"Bytes Read": 16, "Records Read": 17},
    "Output Metrics": {"Bytes Written": 18, "Records Written": 19},
}
TASK = Totals(
    run_ms=2_000, cpu_ns=3_000_000, gc_ms=4, deserialize_ms=5, deserialize_cpu_ns=6, serialize_ms=7, result_bytes=8,
    memory_spilled=9, disk_spilled=10, shuffle_read_bytes=111, shuffle_read_records=12, shuffle_wait_ms=13,
    shuffle_write_bytes=14, shuffle_write_records=15, input_bytes=16, input_records=17, output_bytes=18,
    output_records=19, output_tasks=1, scheduler_delay_ms=20,
)  # fmt: skip


def of_tasks(*logged: object) -> Totals:
    """The sums of tasks with these numbers in the event log."""
    totals = Totals()
    for each in logged:
        add(totals, msgspec.convert(each, TaskMetrics), 20)
    return totals


def test_each_number_of_a_task_is_counted_once_under_its_name() -> None:
    """Whatever part of the event it stands in; a second task adds as much again."""
    assert of_tasks(LOGGED) == TASK
    assert of_tasks(LOGGED, LOGGED) == summed([TASK, TASK])
    assert summed([TASK, TASK]).run_ms == 4_000


def test_a_cpu_time_that_no_task_reports_is_unknown() -> None:
    """It is 0 only where Spark said so."""
    silent = {"Executor Run Time": 1}
    assert of_tasks(silent).cpu_ns is None
    assert (of_tasks(silent, LOGGED).cpu_ns, of_tasks(LOGGED | {"Executor CPU Time": 0}).cpu_ns) == (3_000_000, 0)
    assert summed([Totals(), Totals()]).cpu_ns is None
    assert attributes(Totals())[names.CPU_TIME] is None


def test_spans_and_assistants_read_the_same_numbers() -> None:
    """Spans in milliseconds, assistants in seconds."""
    assert (attributes(TASK)[names.CPU_TIME], seconds(TASK)["cpu"]) == (3, 0.003)
    assert (attributes(TASK)[names.RUN_TIME], seconds(TASK)["run"]) == (2_000, 2.0)
    assert attributes(TASK)[names.SHUFFLE_READ_BYTES] == moved(TASK)["shuffle_read_bytes"] == 111


@pytest.mark.parametrize(("records", "size", "known"), [(0, 5, (None, 5)), (5, 0, (5, None)), (0, 0, (0, 0))])
def test_what_a_source_does_not_count_is_unknown(records: int, size: int, known: tuple[int | None, int | None]) -> None:
    """Some count bytes only, and some rows only."""
    found = moved(Totals(output_records=records, output_bytes=size))
    assert (found["rows_written"], found["bytes_written"]) == known


def test_the_document_and_the_run_profile_take_their_numbers_from_the_table() -> None:
    """Each of their fields is in it."""
    assert set(moved(Totals())) == set(Data.__struct_fields__)
    assert set(Volume.__struct_fields__) <= set(NUMBERS)
