from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from spark_app.errors import ConfigError, InputError, MachineError, QualityGateError, SparkAppError
from spark_app.spark.known_errors import translate_errors

READ = (
    "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///raw/my a.json.gz. SQLSTATE: KD001\n"
    "\tat org.apache.spark...\nCaused by: org.apache.spark.SparkException: no\nCaused by: java.io.EOFException: cut off"
)


@pytest.mark.parametrize(
    ("error", "kind", "line"),
    [
        (OSError(28, "No space left on device", "/runs/a"), MachineError, "the disk is full, .*: .*'/runs/a'"),
        (
            PySparkException("java.io.IOException: No space left on device\n\tat x"),
            MachineError,
            "the disk is full, .*device$",
        ),
        (PySparkException("No space left on device\n/a (No space left on device)"), MachineError, "the disk .*: /a "),
        (PySparkException("x: Disk quota exceeded"), MachineError, "the disk is full"),
        (
            PySparkException("java.io.IOException: Mkdirs failed to create file:/w/t"),
            MachineError,
            "cannot write: .*file:/w/t$",
        ),
        (
            PySparkException("[DELTA_CANNOT_CREATE_LOG_PATH] Cannot create file:/w/t"),
            MachineError,
            "cannot write: .*/w/t$",
        ),
        (PySparkException("x\n/w/t (Read-only file system)\n"), MachineError, "cannot write: /w/t "),
        (PySparkException('No FileSystem for scheme "s3"'), ConfigError, 'this Spark has no jar .* scheme "s3"$'),
        (
            PySparkException("An error\n: a.B: No FileSystem for scheme"),
            ConfigError,
            "this .*a path: a.B: No FileSystem",
        ),
        (PySparkException("Class org.x.S3AFileSystem not found"), ConfigError, "this Spark has no jar .*S3AFileSystem"),
        (
            PySparkException("x\n/data (Permission denied)\ny"),
            MachineError,
            r"no permission: /data \(Permission denied\)",
        ),
        (PySparkException(READ), InputError, "cannot read file:///raw/my a.json.gz: java.io.EOFException: cut off"),
    ],
)
def test_what_spark_and_the_machine_say_becomes_one_line(
    error: Exception, kind: type[SparkAppError], line: str
) -> None:
    """With the thing that it is about, and the exit code of its kind; the error itself is the cause."""
    with pytest.raises(kind, match=f"^{line}") as raised, translate_errors(Path("spark.jsonl")):
        raise error
    assert "\n" not in str(raised.value)
    assert raised.value.__cause__ is error


@pytest.mark.parametrize("error", [PySparkException("something else"), QualityGateError("a"), ValueError("b")])
def test_what_is_not_understood_goes_on_unchanged(error: Exception) -> None:
    """No guess is made."""
    with pytest.raises(type(error)) as raised, translate_errors(Path("spark.jsonl")):
        raise error
    assert raised.value is error
