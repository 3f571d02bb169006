"""Excerpts of errors, without their stack traces and without secrets."""

import re
from typing import Final

from spark_app.eventlog.model.failures import TRACEBACK
from spark_app.redaction import excerpt

_CAUSE: Final = "Caused by: "
_GATEWAY: Final = re.compile(r"(?s).*^py4j\.protocol\.Py4JJavaError: .*?^: ", re.MULTILINE)
"""What stands before the error of Java in that of a Python program that has called it."""


def error(text: str) -> str:
    """The message of an error: the last line of a Python traceback; the first line and the last cause of a Java one."""
    text = _GATEWAY.sub("", text, count=1)
    _, _, trace = text.partition(TRACEBACK)
    raised = next((line for line in trace.splitlines() if line.strip() and not line.startswith(" ")), "")
    message, _, stack = text.partition("\n\tat ")
    causes = [line for line in stack.splitlines() if line.startswith(_CAUSE)]
    return excerpt(raised or "; ".join([message, *(line.removeprefix(_CAUSE) for line in causes[-1:])]))
