"""What Spark and the machine say, turned into one line that names the thing."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_app.errors import ConfigError, InputError, MachineError, SparkAppError
from spark_app.spark.jvm import is_dead
from spark_app.telemetry.exceptions import message_of

MAX_CHARACTERS: Final = 500
DISK_FULL: Final = r"No space left on device|Disk quota exceeded"
# What is said, what kind of failure that is, and what it means, which stands before the line that says it.
KNOWN_ERRORS: Final[tuple[tuple[str, type[SparkAppError], str], ...]] = (
    (DISK_FULL, MachineError, "the disk is full, free some space and run again"),
    (r"Permission denied", MachineError, "no permission"),
    (r"Read-only file system|Mkdirs failed to create|DELTA_CANNOT_CREATE_LOG_PATH", MachineError, "cannot write"),
    (r"No FileSystem for scheme|Class \S*FileSystem not found", ConfigError, "this Spark has no jar for such a path"),
)
UNREAD: Final = re.compile(r"\[FAILED_READ_FILE\S*\] Encountered error while reading file (.+?)\.(?:\s+[A-Z]|\s*\n|$)")


@contextmanager
def translate_errors(log: Path) -> Iterator[None]:
    """Turns what Spark and the machine say into one line that names the thing.

    Args:
        log: What the JVM says is in this file.
    """
    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        explained = _explanation(error, log)
        if explained is None:
            raise
        raise explained from error


def _explanation(error: Exception, log: Path) -> SparkAppError | None:
    if (isinstance(error, ConnectionError) or not isinstance(error, OSError)) and is_dead():
        return MachineError(f"Java ended in the middle of the work, killed or crashed: see the end of {log}")
    text = message_of(error)
    unread = UNREAD.search(text)
    if unread:
        causes = re.findall(r"^Caused by: (.+)$", text, re.MULTILINE)
        return InputError(f"cannot read {unread[1]}" + (f": {causes[-1]}" if causes else ""))
    for pattern, kind, meaning in KNOWN_ERRORS:
        if re.search(pattern, text):
            return kind(f"{meaning}: {_line(text, pattern)}")
    return None


def _line(text: str, pattern: str) -> str:
    """The line that says it; one with a path, if there is one."""
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if re.search(pattern, line)]
    return max(lines, key=lambda line: "/" in line)[:MAX_CHARACTERS]
