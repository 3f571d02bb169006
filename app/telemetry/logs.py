"""Standard logging into OTLP log records, with the ids of the span they were made in, and nothing on the terminal."""

import contextlib
import logging
import time
from collections.abc import Mapping
from typing import Final

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import get_current
from opentelemetry.sdk._logs import LoggerProvider

from app.redaction import redacted
from app.telemetry.exceptions import described
from app.telemetry.files import Current
from app.telemetry.problems import Problems

LOGGER: Final = "app"
_SDK_LOGGERS: Final = ("opentelemetry", "grpc")
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"asctime", "message", "taskName"}
_SEVERITIES: Final[Mapping[int, tuple[SeverityNumber, str]]] = {
    logging.CRITICAL: (SeverityNumber.FATAL, "FATAL"),
    logging.ERROR: (SeverityNumber.ERROR, "ERROR"),
    logging.WARNING: (SeverityNumber.WARN, "WARN"),
    logging.INFO: (SeverityNumber.INFO, "INFO"),
    logging.NOTSET: (SeverityNumber.DEBUG, "DEBUG"),
}


class Handler(logging.Handler):
    """Makes an OTLP log record of each standard one; docs/decisions/0004 says why it is our own."""

    def __init__(self, provider: LoggerProvider, *, current: Current, problems: Problems) -> None:
        """Log records go to a provider; what the current run says about itself is added to each."""
        super().__init__()
        self._provider = provider
        self._current = current
        self._problems = problems

    def emit(self, record: logging.LogRecord) -> None:
        """Passes a record on; one that cannot be passed on is told."""
        self._problems.guard(f"a log record of {record.name} line {record.lineno} is lost", self._pass_on, record)

    def _pass_on(self, record: logging.LogRecord) -> None:
        number, text = severity(record.levelno)
        log = LogRecord(
            timestamp=int(record.created * 1e9),
            observed_timestamp=time.time_ns(),
            context=get_current(),
            severity_number=number,
            severity_text=text,
            body=redacted(record.getMessage()),
            attributes={**self._current.attributes, **_attributes(record)},
        )
        self._provider.get_logger(record.name).emit(log)


def severity(level: int) -> tuple[SeverityNumber, str]:
    """OpenTelemetry's number and text for a level of standard logging."""
    return next(severity for floor, severity in _SEVERITIES.items() if level >= floor)


def _attributes(record: logging.LogRecord) -> dict[str, str | bool | int | float]:
    extra = {
        key: value
        for key, value in vars(record).items()
        if key not in _STANDARD and isinstance(value, str | bool | int | float)
    }
    error = record.exc_info[1] if record.exc_info else None
    return extra if error is None else {**extra, **described(error)}


def quiet_sdk(problems: Problems) -> None:
    """Sends what the SDK logs to a list of problems, for good.

    For good, because a thread that is left behind with a hanging endpoint may still log when the process ends.
    """
    for name in _SDK_LOGGERS:
        _redirect(logging.getLogger(name), [problems], level=logging.WARNING, propagate=False)


class Redirected:
    """Our logger goes to a handler until closed: global state of `logging`."""

    def __init__(self, handler: Handler) -> None:
        """Redirects it."""
        logger = logging.getLogger(LOGGER)
        self._undo = contextlib.ExitStack()
        self._undo.callback(_redirect, logger, logger.handlers[:], level=logger.level, propagate=logger.propagate)
        _redirect(logger, [handler], level=logging.INFO, propagate=False)

    def close(self) -> None:
        """Puts it back."""
        self._undo.close()


def _redirect(logger: logging.Logger, handlers: list[logging.Handler], *, level: int, propagate: bool) -> None:
    logger.handlers[:] = handlers
    logger.setLevel(level)
    logger.propagate = propagate
