"""What spans and logs say about an exception: bounded, and never raising."""

import traceback
from typing import Final

from spark_app.redaction import redacted
from spark_app.vocabulary.names import EXCEPTION_CUT, EXCEPTION_MESSAGE, EXCEPTION_STACKTRACE, EXCEPTION_TYPE

MAX_MESSAGE: Final = 4096
MAX_STACKTRACE: Final = 16_384


def described(error: BaseException) -> dict[str, str | bool]:
    """The attributes of an exception, in OpenTelemetry's names.

    The text of an exception of py4j is fetched from the JVM, which may be gone.
    """
    message = message_of(error)
    attributes: dict[str, str | bool] = {
        EXCEPTION_TYPE.name: type_of(error),
        EXCEPTION_MESSAGE.name: message[:MAX_MESSAGE],
        # Frames only: the usual rendering repeats the message, in full.
        EXCEPTION_STACKTRACE.name: redacted("".join(traceback.format_tb(error.__traceback__)))[-MAX_STACKTRACE:],
    }
    if len(message) > MAX_MESSAGE:
        attributes[EXCEPTION_CUT.name] = True
    return attributes


def message_of(error: BaseException) -> str:
    """The text of an exception without secrets; a note where `str` raises."""
    try:
        return redacted(str(error))
    except Exception as failure:  # noqa: BLE001 - any code may run in there
        return f"(no message: str() raised {type(failure).__name__})"


def summary_of(error: BaseException) -> str:
    """The class and the text of an exception; Spark's hold plans and stacks of Java, so a long one is cut."""
    message = message_of(error)
    cut = f"{message[:MAX_MESSAGE]} ... ({len(message):,} characters)"
    return f"{type(error).__name__}: {cut if len(message) > MAX_MESSAGE else message}"


def type_of(error: BaseException) -> str:
    """The class of an exception with its module, except for built-in ones."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
