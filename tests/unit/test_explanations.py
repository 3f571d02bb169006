import pytest
from pyspark.errors import PySparkException

from app.errors import InputError, MachineError, QualityGateError, SparkAppError
from app.explanations import explained

READ = (
    "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///raw/a.json.gz. SQLSTATE: KD001\n"
    "\tat org.apache.spark...\nCaused by: org.apache.spark.SparkException: no\nCaused by: java.io.EOFException: cut off"
)


@pytest.mark.parametrize(
    ("error", "kind", "line"),
    [
        (OSError(28, "No space left on device"), MachineError, "the disk is full"),
        (PySparkException("java.io.IOException: No space left on device\n\tat x"), MachineError, "the disk is full"),
        (PySparkException("x\n/data (Permission denied)\ny"), MachineError, "no permission: /data (Permission denied)"),
        (PySparkException(READ), InputError, "cannot read file:///raw/a.json.gz: java.io.EOFException: cut off"),
    ],
)
def test_what_spark_and_the_machine_say_becomes_one_line(
    error: Exception, kind: type[SparkAppError], line: str
) -> None:
    """With the thing that it is about, and the exit code of its kind; the error itself is the cause."""
    with pytest.raises(kind) as raised, explained():
        raise error
    assert str(raised.value).startswith(line)
    assert "\n" not in str(raised.value)
    assert raised.value.__cause__ is error


@pytest.mark.parametrize("error", [PySparkException("something else"), QualityGateError("a"), ValueError("b")])
def test_what_is_not_understood_goes_on_unchanged(error: Exception) -> None:
    """No guess is made."""
    with pytest.raises(type(error)) as raised, explained():
        raise error
    assert raised.value is error
