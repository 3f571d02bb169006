"""What the files of a run hold, read back by OpenTelemetry's own messages: spans, with or without an end, and logs.

A line that is torn, foreign or says nothing is left out and counted: a process or a disk may end at any byte.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from opentelemetry.proto_json.common.v1.common import AnyValue, KeyValue
from opentelemetry.proto_json.logs.v1.logs import LogRecord, LogsData
from opentelemetry.proto_json.trace.v1.trace import Span, Status, TracesData

from app.telemetry.files import LOGS, STARTED, TRACES

T = TypeVar("T")

TRACE_ID_BYTES: Final = 16
SPAN_ID_BYTES: Final = 8
"""Source: OTLP, `trace.proto`; no backend takes ids of another length."""


@dataclass(frozen=True, slots=True)
class Told:
    """A span as a file has it, and the attributes of who told it."""

    span: Span
    resource: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """A run or a step of it; times in milliseconds since the epoch, no end where it was killed."""

    trace_id: str
    span_id: int
    parent_id: int | None
    name: str
    started: float
    ended: float | None
    has_failed: bool
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LogLine:
    """A log record: its time in milliseconds since the epoch, its span if it has one."""

    time: float
    severity: str
    level: int
    logger: str
    message: str
    span_id: int | None


class RunLines:
    """Reads the files of one run; `skipped` lines were left out so far."""

    def __init__(self, folder: Path) -> None:
        """Reads nothing yet."""
        self._folder = folder
        self.skipped = 0

    def started(self) -> Iterator[Told]:
        """The spans that began, without their ends."""
        return self._read(STARTED, _spans)

    def ended(self) -> Iterator[Told]:
        """The spans that ended."""
        return self._read(TRACES, _spans)

    def steps(self) -> list[Step]:
        """The spans in the order of their starts: those that ended, and those that only began."""
        known = {told.span.span_id: _step(told.span) for told in (*self.started(), *self.ended())}
        return sorted(known.values(), key=lambda step: step.started)

    def logs(self) -> list[LogLine]:
        """The log records, as they were written."""
        return list(self._read(LOGS, _logs))

    def _read(self, name: str, of: Callable[[bytes], list[T]]) -> Iterator[T]:
        file = self._folder / name
        for line in file.read_bytes().splitlines() if file.is_file() else ():
            try:
                found = of(line)
            except (RecursionError, TypeError, ValueError):
                found = []
            self.skipped += not found
            yield from found


def attributes_of(pairs: list[KeyValue]) -> dict[str, Any]:
    """Attributes by their names; a value of a kind that our own do not have is left out."""
    found = {pair.key or "": None if pair.value is None else _value(pair.value) for pair in pairs}
    return {key: value for key, value in found.items() if value is not None}


def _value(told: AnyValue) -> Any:
    if told.array_value is not None:
        return tuple(_value(each) for each in told.array_value.values)
    kinds = (told.string_value, told.int_value, told.double_value, told.bool_value)
    return next((value for value in kinds if value is not None), None)


def _spans(line: bytes) -> list[Told]:
    groups = TracesData.from_json(line).resource_spans
    return [
        Told(span, attributes_of(group.resource.attributes if group.resource else []))
        for group in groups
        for scope in group.scope_spans
        for span in scope.spans
        if len(span.trace_id or b"") == TRACE_ID_BYTES and len(span.span_id or b"") == SPAN_ID_BYTES
    ]


def _logs(line: bytes) -> list[LogLine]:
    scopes = [scope for group in LogsData.from_json(line).resource_logs for scope in group.scope_logs]
    return [_log(record, (scope.scope and scope.scope.name) or "") for scope in scopes for record in scope.log_records]


def _step(span: Span) -> Step:
    return Step(
        trace_id=(span.trace_id or b"").hex(),
        span_id=int.from_bytes(span.span_id or b""),
        parent_id=int.from_bytes(span.parent_span_id) if span.parent_span_id else None,
        name=span.name or "",
        started=(span.start_time_unix_nano or 0) / 1e6,
        ended=span.end_time_unix_nano / 1e6 if span.end_time_unix_nano else None,
        has_failed=span.status is not None and span.status.code == Status.StatusCode.STATUS_CODE_ERROR,
        attributes=attributes_of(span.attributes),
    )


def _log(record: LogRecord, logger: str) -> LogLine:
    return LogLine(
        time=(record.time_unix_nano or 0) / 1e6,
        severity=record.severity_text or "",
        level=int(record.severity_number or 0),
        logger=logger,
        message=(record.body and record.body.string_value) or "",
        span_id=int.from_bytes(record.span_id) if record.span_id else None,
    )
