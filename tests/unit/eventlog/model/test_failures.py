"""What Spark leaves of an error in texts becomes its type and its message."""

import pytest

from spark_app.eventlog.model.failures import OUTPUT_LOST, failure_of, failure_of_task
from spark_app.eventlog.parse.events import TaskEndReason

PYTHON = (
    "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):\n"
    '  File "/jobs/job.py", line 76, in fails\n    raise LookupError(f"no number {number}")\n'
    "LookupError: no number 0\n SQLSTATE: 38000"
)
LOST = "Job aborted due to stage failure: Task 1 in stage 2.0 failed 4 times, most recent failure: Lost task 1.3 in"


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012", "DIVIDE_BY_ZERO"),
        (f"{LOST} stage 2.0 (TID 9) (h): org.apache.spark.SparkRuntimeException: [A.B] x", "A.B"),
        (f"{LOST} stage 2.0 (TID 9) (h): java.lang.RuntimeException: on purpose\n\tat a.B.c(D.java:1)\n",
         "java.lang.RuntimeException"),
        (f"{LOST} stage 2.0 (TID 9) (h): org.apache.spark.api.python.PythonException: {PYTHON}", "LookupError"),
        ("Could not execute broadcast in 1 secs. You can increase the timeout", None),
        ("<script>", None),
    ],
)  # fmt: skip
def test_the_type_is_the_most_telling_one(text: str, type_: str | None) -> None:
    """The user's own class, else Spark's condition, else the class in Java; where there is none, none."""
    failure = failure_of(text)
    assert failure is not None
    assert failure.type == type_


def test_no_secret_is_told() -> None:
    """Spans and findings show what a program says of its databases, and many people read these."""
    failure = failure_of("java.sql.SQLException: refused: jdbc:db://me:hunter2@h?password=hunter2")
    assert failure is not None
    assert failure.message == "java.sql.SQLException: refused: jdbc:db://(redacted)@h?password=(redacted)"


def test_no_text_is_no_failure() -> None:
    """An empty message stands for success."""
    assert failure_of("") is None
    assert failure_of(None) is None


def test_an_error_of_python_says_what_was_raised_and_where() -> None:
    """First its message, then the traceback; nothing of what Spark puts around it."""
    failure = failure_of(PYTHON)
    assert failure is not None
    assert failure.message == (
        'no number 0\n  File "/jobs/job.py", line 76, in fails\n    raise LookupError(f"no number {number}")'
    )


def test_of_a_long_traceback_the_end_is_kept() -> None:
    """The user's own line is the last."""
    frames = "".join(f'  File "/lib/a.py", line {number}, in a\n    a()\n' for number in range(200))
    failure = failure_of(f"Traceback (most recent call last):\n{frames}mine.errors.TooMuch: 7 of them\nat most 6\n")
    assert failure is not None
    assert failure.type == "mine.errors.TooMuch"
    assert failure.message.startswith("7 of them\nat most 6\n…")
    assert failure.message.endswith("line 199, in a\n    a()")
    assert len(failure.message) <= 1000


def test_of_exceptions_in_a_chain_the_last_counts() -> None:
    """The others are its causes."""
    first = PYTHON.removesuffix("\n SQLSTATE: 38000")
    failure = failure_of(
        f"{first}\n\nDuring handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "/jobs/job.py", line 80, in b\n    raise SystemExit\nSystemExit\n'
    )
    assert failure is not None
    assert failure.type == "SystemExit"


@pytest.mark.parametrize(
    ("reason", "type_", "message"),
    [
        (TaskEndReason("TaskKilled", kill="another attempt succeeded"), "TaskKilled", "another attempt succeeded"),
        (
            TaskEndReason("ExecutorLostFailure", loss="timed out"),
            "ExecutorLostFailure",
            "timed out",
        ),
        (TaskEndReason("FetchFailed", message="no such file"), "FetchFailed", "no such file"),
        (TaskEndReason("Resubmitted"), "Resubmitted", OUTPUT_LOST),
        (TaskEndReason("ExceptionFailure", "java.lang.Error", "no"), "java.lang.Error", "no"),
        (TaskEndReason("ExceptionFailure", "java.lang.Error", ""), "java.lang.Error", ""),
    ],
)
def test_a_task_that_raised_nothing_has_sparks_own_reason(reason: TaskEndReason, type_: str, message: str) -> None:
    """It was killed, lost, or could not fetch."""
    failure = failure_of_task(reason)
    assert (failure.type, failure.message) == (type_, message)
