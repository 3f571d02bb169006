"""Standard logging becomes OTLP log records with the ids of the current span and run; none reach the terminal."""

import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, Final

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import get_current
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor, ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk.resources import Resource
from opentelemetry.semconv.attributes.code_attributes import CODE_FILE_PATH, CODE_LINE_NUMBER

from spark_app.redaction import redacted
from spark_app.telemetry import python_logs
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.exceptions import described
from spark_app.telemetry.run_scope import current_run

LOGGER: Final = "spark_app"
_SDK_LOGGERS: Final = ("opentelemetry", "grpc")
_NOT_OF_PIPELINES: Final = (LOGGER, *_SDK_LOGGERS, "py4j", "urllib3", "asyncio")
"""Loggers that have the handler already, or belong to what sends telemetry and to the bridge to the JVM."""
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"asctime", "message", "taskName"}
_SEVERITIES: Final[Mapping[int, tuple[SeverityNumber, str]]] = {
    logging.CRITICAL: (SeverityNumber.FATAL, "FATAL"),
    logging.ERROR: (SeverityNumber.ERROR, "ERROR"),
    logging.WARNING: (SeverityNumber.WARN, "WARN"),
    logging.INFO: (SeverityNumber.INFO, "INFO"),
    logging.NOTSET: (SeverityNumber.DEBUG, "DEBUG"),
}


class Handler(logging.Handler):
    """Emits an OTLP log record for each standard one; docs/decisions/0004 says why it is not the SDK's handler."""

    def __init__(self, provider: LoggerProvider, *, errors: TelemetryErrors) -> None:
        """Log records go to a provider, with the attributes of the run whose code logs."""
        super().__init__()
        self._provider = provider
        self._errors = errors

    def emit(self, record: logging.LogRecord) -> None:
        """Emits a record; one that cannot be rendered is added to the errors."""
        self._errors.guard(f"a log record of {record.name} line {record.lineno} is lost", self._emit, record)

    def _emit(self, record: logging.LogRecord) -> None:
        run, (number, text) = current_run(), severity(record.levelno)
        log = LogRecord(
            timestamp=int(record.created * 1e9),
            observed_timestamp=time.time_ns(),
            context=get_current(),
            severity_number=number,
            severity_text=text,
            body=redacted(record.getMessage()),
            attributes={**(run.attributes if run else {}), **_attributes(record)},
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
    } | {CODE_FILE_PATH: record.pathname, CODE_LINE_NUMBER: record.lineno}
    error = record.exc_info[1] if record.exc_info else None
    return extra if error is None else {**extra, **described(error)}


class FileLogProcessor(LogRecordProcessor):
    """Writes log records to the file of the run whose code logs; those of no run are only sent."""

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        """Writes one record."""
        run = current_run()
        if run is not None and run.files is not None:
            run.files.write_log(_readable(log_record))

    def shutdown(self) -> None:
        """Nothing is buffered."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is buffered."""
        return True


def _readable(record: ReadWriteLogRecord) -> ReadableLogRecord:
    """A record as exporters take it."""
    return ReadableLogRecord(
        log_record=record.log_record,
        resource=record.resource or Resource.get_empty(),
        instrumentation_scope=record.instrumentation_scope,
        limits=record.limits,
    )


def quiet_sdk(errors: TelemetryErrors) -> None:
    """Sends the log of the SDK to a list of errors, permanently.

    Permanently, because a thread that still waits for a hanging endpoint may log when the process ends.
    """
    for name in _SDK_LOGGERS:
        _redirect(logging.getLogger(name), [errors], level=logging.WARNING, propagate=False)


class Redirected:
    """Until it is closed, the logger `app` has the handler of the newest that is open: global state of `logging`.

    That handler takes what all other loggers of the process let through, too, such as those of a user's pipelines.
    """

    _open: ClassVar[list["Redirected"]] = []
    _restore: ClassVar[Callable[[], None]]

    def __init__(self, handler: Handler) -> None:
        """Replaces the handlers of the logger."""
        if not self._open:
            logger = logging.getLogger(LOGGER)
            level, propagate = logger.level, logger.propagate
            Redirected._restore = partial(_redirect, logger, logger.handlers[:], level=level, propagate=propagate)
            python_logs.install(Redirected._take)
        self._handler = handler
        self._open.append(self)
        self._use()

    def close(self) -> None:
        """Gives the logger to the newest that is still open; after the last, the logger is as it was before all."""
        self._open.remove(self)
        if self._open:
            self._open[-1]._use()
        else:
            python_logs.remove(Redirected._take)
            Redirected._restore()

    @staticmethod
    def _take(record: logging.LogRecord) -> None:
        """Gives the newest handler a record of a logger that it is not a handler of."""
        if record.name.partition(".")[0] not in _NOT_OF_PIPELINES and Redirected._open:
            Redirected._open[-1]._handler.handle(record)

    def _use(self) -> None:
        _redirect(logging.getLogger(LOGGER), [self._handler], level=logging.INFO, propagate=False)


def _redirect(logger: logging.Logger, handlers: list[logging.Handler], *, level: int, propagate: bool) -> None:
    logger.handlers[:] = handlers
    logger.setLevel(level)
    logger.propagate = propagate
