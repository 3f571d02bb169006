import re
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from spark_app.errors import ConfigError, InputError, MachineError, SparkAppError
from spark_app.spark.stream_errors import STREAM_FAULTS, FailedQuery, batch_failure, stream_failure

FAILED = FailedQuery("streaming.events", "kafka:9092", ("user_events", "clicks"), "/checkpoints/streaming.events")


class OfJava(PySparkException):
    """An error as PySpark raises it: Java's stack trace beside a text with the plan of the query."""

    def __init__(self, trace: str) -> None:
        super().__init__("[STREAM_FAILED] Query [id = 1] terminated with exception: x")
        self._stackTrace = trace


def caused_by(*causes: str, plan: str = "") -> OfJava:
    """The end of a query with a chain of causes."""
    outer = f"org.apache.spark.sql.streaming.StreamingQueryException: x\n=== Streaming Query ===\n{plan}\n\tat a.B(C:1)"
    return OfJava("\n".join([outer, *(f"Caused by: {cause}\n\tat a.B.c(D.scala:1)\n\t... 3 more" for cause in causes)]))


@pytest.mark.parametrize(
    ("causes", "kind", "line", "is_transient"),
    [
        (
            ("org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server",),
            InputError,
            "streaming.events: Kafka at kafka:9092 has no topic user_events or clicks; create it",
            True,
        ),
        (
            ("java.util.concurrent.TimeoutException: Cannot fetch record for offset 7 in 60000 milliseconds",),
            InputError,
            "streaming.events: no broker of Kafka at kafka:9092 answers: Cannot fetch record for offset 7 in .*; start",
            True,
        ),
        (
            ("java.lang.X: y", "java.io.IOException: No space left on device"),
            MachineError,
            "streaming.events: the disk is full: java.io.IOException: No space left on device; free some space",
            True,
        ),
        (
            ("a.B: [STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided\nPlease check",),
            ConfigError,
            r"streaming.events: its checkpoint /checkpoints/streaming.events does not fit it: a.B: \[STATE_STORE_.*",
            False,
        ),
        (
            ("io.delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND] Files were added",),
            MachineError,
            "streaming.events: another writer changed the same rows .*; start the query again",
            True,
        ),
        (
            ("a.X: Job aborted: ExecutorLostFailure (executor 1 exited caused by one of the running tasks)",),
            MachineError,
            "streaming.events: executors were lost: .*; see why in",
            True,
        ),
        (
            ("org.apache.spark.SparkException: Python worker failed to connect back.",),
            MachineError,
            "streaming.events: a Python worker did not start within 10 s; give the machine",
            True,
        ),
    ],
)
def test_what_ends_a_query_becomes_one_line(
    causes: tuple[str, ...],
    kind: type[SparkAppError],
    line: str,
    is_transient: bool,  # noqa: FBT001
) -> None:
    """With the query, the place, what to do, and whether a new start may help; integration tests have the broker's."""
    failure = stream_failure(caused_by(*causes), FAILED)
    assert failure is not None
    assert re.match(line, str(failure.error)), failure.error
    assert "\n" not in str(failure.error)
    assert (type(failure.error), failure.is_transient) == (kind, is_transient)


def test_the_plan_of_a_query_is_no_cause() -> None:
    """A query may filter by the words of an error, as those about logs do."""
    plan = "Filter (message = No space left on device)"
    assert stream_failure(caused_by("java.lang.X: y", plan=plan), FAILED) is None
    assert stream_failure(caused_by(f"java.lang.X: y\n\nDriver stacktrace:\n{plan}"), FAILED) is None


def test_an_error_without_causes_is_read_itself() -> None:
    """What `start` raises has none."""
    failure = stream_failure(OfJava("a.B: [STREAMING_CHECKPOINT_MISSING_METADATA_FILE] Checkpoint\n\tat x"), FAILED)
    assert failure is not None
    assert "STREAMING_CHECKPOINT_MISSING_METADATA_FILE" in str(failure.error)
    assert stream_failure(OSError(28, "No space left on device"), FAILED) is not None


def test_an_unknown_error_stays_what_it_is() -> None:
    """A guess would mislead."""
    assert stream_failure(caused_by("java.lang.NullPointerException: y"), FAILED) is None
    assert stream_failure(ValueError("y"), FAILED) is None


class OfBatch(StreamingQueryException):
    """The end of a query in a micro-batch, as PySpark raises it."""

    def __init__(self, trace: str, start: str, end: str) -> None:
        super().__init__("[STREAM_FAILED] Query [id = 1] terminated with exception: x")
        self._stackTrace = trace
        self._origin = SimpleNamespace(startOffset=lambda: start, endOffset=lambda: end)


@pytest.mark.parametrize(
    ("cause", "line"),
    [
        (
            'org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.\n== DataFrame ==\n"div" was',
            r"SparkArithmeticException: \[DIVIDE_BY_ZERO\] Division by zero\.; look at these records",
        ),
        (
            'a.PythonException: Traceback (most recent call last):\n  File "carts.py", line 1\nValueError: no cart',
            "failed: ValueError: no cart; look at these records",
        ),
        (
            "org.apache.spark.sql.streaming.CommitValidationFailed: [NOT_COMMITTED] 4 stores",
            r"failed: org\.apache\.spark\.sql\.streaming\.CommitValidationFailed: \[NOT_COMMITTED\] 4 stores; look",
        ),
    ],
)
def test_an_unknown_error_names_the_records_of_its_batch(cause: str, line: str) -> None:
    """One line with the query, the offsets, the cause and what to do, also where nothing was read before."""
    trace = caused_by("a.b.SparkException: Exception thrown in awaitResult:", cause)._stackTrace
    failure = batch_failure(OfBatch(trace, '[{"clicks":{"0":5}}]', '[{"clicks":{"0":9}}]'), FAILED)
    assert re.search(line, str(failure)), failure
    assert "\n" not in str(failure)
    begins = 'streaming.events: its micro-batch from [{"clicks":{"0":5}}] to [{"clicks":{"0":9}}] failed: '
    assert str(failure).startswith(begins)
    assert str(failure).endswith("start it over: spark-app streaming reset events")
    first = batch_failure(OfBatch(trace, "[-]", '[{"logOffset":0}]'), FAILED)
    assert 'from the beginning to [{"logOffset":0}]' in str(first)


def test_an_error_before_a_micro_batch_is_of_none() -> None:
    """It stays what it is."""
    assert batch_failure(OfBatch("a.X: y", "[-]", "[-]"), FAILED) is None
    assert batch_failure(caused_by("a.X: y"), FAILED) is None


def test_a_line_holds_no_secret() -> None:
    """What Java says may hold a password."""
    cause = "org.apache.kafka.common.KafkaException: Failed to construct kafka consumer: password=sesame"
    failure = stream_failure(caused_by(cause), FAILED)
    assert failure is not None
    assert "sesame" not in str(failure.error)


def test_every_line_names_the_query_and_says_what_to_do_last() -> None:
    """What happened, where, what to do; a fault that passes by itself may need no more than time."""
    assert [fault.pattern for fault in STREAM_FAULTS if not fault.line.startswith("{query}: ")] == []
    assert [fault.pattern for fault in STREAM_FAULTS if "; " not in fault.line and not fault.is_transient] == []
