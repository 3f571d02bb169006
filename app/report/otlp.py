"""Spans and log records of a run's folder: OTLP JSON Lines, as app.telemetry.files writes them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

ERROR: Final = 2
Value = str | float | bool


class _Value(Struct, rename="camel"):
    string_value: str | None = None
    int_value: int | str | None = None
    double_value: float | None = None
    bool_value: bool | None = None


class _Attribute(Struct):
    key: str
    value: _Value = field(default_factory=_Value)


class _Event(Struct):
    name: str = ""
    attributes: list[_Attribute] = field(default_factory=list)


class _Status(Struct):
    code: int = 0
    message: str = ""


class _Span(Struct, rename="camel"):
    trace_id: str
    span_id: str
    name: str
    start_time_unix_nano: str
    end_time_unix_nano: str = "0"
    parent_span_id: str = ""
    attributes: list[_Attribute] = field(default_factory=list)
    events: list[_Event] = field(default_factory=list)
    status: _Status = field(default_factory=_Status)


class _Record(Struct, rename="camel"):
    time_unix_nano: str = "0"
    severity_number: int = 0
    severity_text: str = ""
    body: _Value = field(default_factory=_Value)
    span_id: str = ""


class _Scope(Struct):
    name: str = ""


class _ScopeSpans(Struct):
    spans: list[_Span] = field(default_factory=list)


class _ScopeLogs(Struct, rename="camel"):
    scope: _Scope = field(default_factory=_Scope)
    log_records: list[_Record] = field(default_factory=list)


class _ResourceSpans(Struct, rename="camel"):
    scope_spans: list[_ScopeSpans] = field(default_factory=list)


class _ResourceLogs(Struct, rename="camel"):
    scope_logs: list[_ScopeLogs] = field(default_factory=list)


class _Traces(Struct, rename="camel"):
    resource_spans: list[_ResourceSpans] = field(default_factory=list)


class _Logs(Struct, rename="camel"):
    resource_logs: list[_ResourceLogs] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Step:
    """A span of our own: a run or a step of it; times in milliseconds since the epoch, no end where it was killed."""

    trace_id: str
    span_id: int
    parent_id: int | None
    name: str
    started: float
    ended: float | None
    has_failed: bool
    message: str | None
    attributes: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class LogLine:
    """A log record: its time in milliseconds since the epoch, its span if it has one."""

    time: float
    severity: str
    level: int
    logger: str
    message: str
    span_id: int | None


def steps(folder: Path) -> list[Step]:
    """The spans of a run in the order of their starts: those that ended, and those that only began."""
    known = {step.span_id: step for step in _steps(folder / "started.jsonl")}
    known |= {step.span_id: step for step in _steps(folder / "traces.jsonl")}
    return sorted(known.values(), key=lambda step: step.started)


def logs(folder: Path) -> list[LogLine]:
    """The log records of a run, as they were written."""
    decoder = msgspec.json.Decoder(_Logs)
    found = []
    for line in _lines(folder / "logs.jsonl"):
        try:
            batch = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        scopes = [scope for resource in batch.resource_logs for scope in resource.scope_logs]
        found += [_log_line(record, scope.scope.name) for scope in scopes for record in scope.log_records]
    return found


def _steps(file: Path) -> Iterator[Step]:
    decoder = msgspec.json.Decoder(_Traces)
    for line in _lines(file):
        try:
            batch = decoder.decode(line)
            scopes = [scope for resource in batch.resource_spans for scope in resource.scope_spans]
            yield from [_step(span) for scope in scopes for span in scope.spans]
        except (msgspec.MsgspecError, ValueError):
            continue


def _lines(file: Path) -> list[bytes]:
    """The whole lines of a file; none where there is no such file. A killed run may leave half of one."""
    return file.read_bytes().splitlines() if file.is_file() else []


def _step(span: _Span) -> Step:
    end, failure = int(span.end_time_unix_nano), _attributes(span.events[-1].attributes) if span.events else {}
    return Step(
        trace_id=span.trace_id,
        span_id=int(span.span_id, 16),
        parent_id=int(span.parent_span_id, 16) if span.parent_span_id else None,
        name=span.name,
        started=int(span.start_time_unix_nano) / 1e6,
        ended=end / 1e6 if end else None,
        has_failed=span.status.code == ERROR,
        message=str(failure.get("exception.message") or span.status.message) or None,
        attributes=_attributes(span.attributes),
    )


def _attributes(attributes: list[_Attribute]) -> dict[str, Value]:
    found = {attribute.key: _content(attribute.value) for attribute in attributes}
    return {key: value for key, value in found.items() if value is not None}


def _content(value: _Value) -> Value | None:
    if value.int_value is not None:
        return int(value.int_value)
    return next((held for held in (value.string_value, value.double_value, value.bool_value) if held is not None), None)


def _log_line(record: _Record, logger: str) -> LogLine:
    return LogLine(
        time=int(record.time_unix_nano) / 1e6,
        severity=record.severity_text,
        level=record.severity_number,
        logger=logger,
        message=record.body.string_value or "",
        span_id=int(record.span_id, 16) if record.span_id else None,
    )
