"""What Spark and the machine say, turned into one line that names the thing."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from app.errors import InputError, MachineError, SparkAppError


@contextmanager
def explained() -> Iterator[None]:
    """Turns what Spark and the machine say into one line that names the thing."""
    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        explained = _explanation(error)
        if explained is None:
            raise
        raise explained from error


def _explanation(error: Exception) -> SparkAppError | None:
    text = str(error)
    if "No space left on device" in text:
        return MachineError("the disk is full: free some space and run again; nothing was half published")
    if "Permission denied" in text:
        return MachineError(f"no permission: {_line(text, 'Permission denied')}")
    unread = re.search(r"\[FAILED_READ_FILE\S*\] Encountered error while reading file (\S+?)\.?\s", text)
    if unread:
        causes = re.findall(r"^Caused by: (.+)$", text, re.MULTILINE)
        return InputError(f"cannot read {unread[1]}" + (f": {causes[-1]}" if causes else ""))
    return None


def _line(text: str, word: str) -> str:
    return next((line.strip() for line in text.splitlines() if word in line), word)[:500]
