"""Reads the files of a run with OpenTelemetry's own messages: spans, with or without an end, and log records.

All segments of a file are read, the oldest first. A line that is torn, foreign or empty is skipped and counted: a
process or a disk may fail at any byte.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar

from opentelemetry.proto_json.common.v1.common import AnyValue, KeyValue
from opentelemetry.proto_json.logs.v1.logs import LogRecord, LogsData
from opentelemetry.proto_json.trace.v1.trace import Span, Status, TracesData

from spark_app.telemetry.run_files import LOGS, STARTED, TRACES, segments

T = TypeVar("T")

TRACE_ID_BYTES: Final = 16
SPAN_ID_BYTES: Final = 8
"""Source: OTLP, `trace.proto`; no backend takes ids of another length."""


@dataclass(frozen=True, slots=True)
class StoredSpan:
    """A span of a file, with the attributes of its resource."""

    span: Span
    resource: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StepSpan:
    """The span of a run or of a step; times in milliseconds since the epoch, no end while the span is open."""

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


class RunFilesReader:
    """Reads the files of one run.

    Attributes:
        skipped: How many lines were skipped so far.
    """

    def __init__(self, folder: Path) -> None:
        """Nothing is read yet."""
        self._folder = folder
        self.skipped = 0

    def started(self) -> Iterator[StoredSpan]:
        """The spans that started, without their ends; those that ended long ago may be missing."""
        return self.records(STARTED, _spans)

    def ended(self) -> Iterator[StoredSpan]:
        """The spans that ended."""
        return self.records(TRACES, _spans)

    def steps(self) -> list[StepSpan]:
        """The spans in the order of their starts, those that ended and those that are open."""
        steps = {stored.span.span_id: _step(stored.span) for stored in chain(self.started(), self.ended())}
        return sorted(steps.values(), key=lambda step: step.started)

    def logs(self) -> list[LogLine]:
        """The log records in the order they were written."""
        return list(self.records(LOGS, _logs))

    def records(self, name: str, decode: Callable[[bytes], list[T]]) -> Iterator[T]:
        """The records of a file; `decode` raises ValueError for a line that is no record."""
        for line in chain.from_iterable(map(_lines, segments(self._folder, name))):
            try:
                records = decode(line)
            except (RecursionError, TypeError, ValueError):
                records = []
            self.skipped += not records
            yield from records


def _lines(segment: Path) -> list[bytes]:
    """The lines of a segment; none where an open run has deleted it."""
    try:
        return segment.read_bytes().splitlines()
    except FileNotFoundError:
        return []


def attributes_of(pairs: list[KeyValue]) -> dict[str, Any]:
    """Attributes by their names, without values of kinds that the catalogue does not have."""
    values = {pair.key or "": None if pair.value is None else _value(pair.value) for pair in pairs}
    return {key: value for key, value in values.items() if value is not None}


def _value(value: AnyValue) -> Any:
    if value.array_value is not None:
        return tuple(_value(each) for each in value.array_value.values)
    kinds = (value.string_value, value.int_value, value.double_value, value.bool_value)
    return next((each for each in kinds if each is not None), None)


def _spans(line: bytes) -> list[StoredSpan]:
    groups = TracesData.from_json(line).resource_spans
    return [
        StoredSpan(span, attributes_of(group.resource.attributes if group.resource else []))
        for group in groups
        for scope in group.scope_spans
        for span in scope.spans
        if len(span.trace_id or b"") == TRACE_ID_BYTES and len(span.span_id or b"") == SPAN_ID_BYTES
    ]


def _logs(line: bytes) -> list[LogLine]:
    scopes = [scope for group in LogsData.from_json(line).resource_logs for scope in group.scope_logs]
    return [_log(record, (scope.scope and scope.scope.name) or "") for scope in scopes for record in scope.log_records]


def _step(span: Span) -> StepSpan:
    return StepSpan(
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
