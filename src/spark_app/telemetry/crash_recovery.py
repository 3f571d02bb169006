"""Ends the spans that a killed process left open, from the starts in the folder of its run."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from opentelemetry.sdk.metrics.export import MetricsData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from spark_app.telemetry.delivery import DELIVERY, metrics_key, note, span_key
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.instruments import Measurements, resource_of_series
from spark_app.telemetry.run_files import RunFiles
from spark_app.telemetry.run_files_reader import RunFilesReader, StoredSpan, attributes_of
from spark_app.vocabulary import names

Send = Callable[[Sequence[ReadableSpan], MetricsData], bool]
"""Takes spans and metrics, and returns whether they were accepted."""

UNSENT_SECONDS: Final = 10
"""A span that ended within this time before a kill may be unsent: twice the default of `OTEL_BSP_SCHEDULE_DELAY`."""
NO_ATTRIBUTES: Final[Mapping[str, str]] = MappingProxyType({})
_IDENTITY: Final = tuple(each.name for each in (names.PIPELINE, names.RUN_ID, names.INVOCATION_ID, names.RUN_SLICE))


@dataclass(frozen=True, slots=True)
class KilledRun:
    """A run whose process was killed.

    Attributes:
        pipeline: The pipeline of the run.
        identity: The attributes that identify the run.
        ended: The last sign of life of the run, a Unix time in seconds.
        spans: The spans of the run and its steps that were open, now ended and marked as killed.
        last: Spans that had ended so shortly before that they may be unsent.
        skipped: The number of lines of its files that cannot be read.
    """

    pipeline: str
    identity: Mapping[str, str]
    ended: float
    spans: tuple[ReadableSpan, ...]
    last: tuple[ReadableSpan, ...]
    skipped: int


def end(folder: Path, send: Send, *, errors: TelemetryErrors) -> KilledRun | None:
    """Ends and sends the spans that a killed process left open in the folder of a run; None without any.

    Spans that are not sampled are not sent; the run is counted all the same.

    Raises:
        ConnectionError: The endpoint did not accept them; the folder is unchanged.
    """
    killed = killed_run(folder)
    if killed is None:
        return None
    metrics = _metrics(killed)
    if not send([span for span in (*killed.spans, *killed.last) if _is_sampled(span)], metrics):
        raise ConnectionError("the OTLP endpoint rejected the final spans of the killed run")
    files = RunFiles(folder, errors=errors, segment_bytes=sys.maxsize)  # no rotation: it would drop open starts
    for span in killed.spans:
        files.write_end(span)
    files.write_metrics(metrics)
    files.close()
    if (folder / DELIVERY).exists():
        note(folder, "spans", map(span_key, (*killed.spans, *killed.last)))
        note(folder, "metrics", [metrics_key(metrics)])
    return killed


def _is_sampled(span: ReadableSpan) -> bool:
    return span.context is not None and span.context.trace_flags.sampled


def _metrics(killed: KilledRun) -> MetricsData:
    """The metrics that count the run as killed, in the series that its process has begun."""
    outcome, pipeline = {names.OUTCOME: "killed"}, {names.PIPELINE: killed.pipeline}
    measurements = Measurements(resource_of_series(killed.spans[0].resource, killed.pipeline))
    measurements.record(names.RUNS, 1, pipeline | outcome)
    measurements.record(names.LAST_FAILURE, killed.ended, pipeline | outcome)
    return measurements.collect() or MetricsData([])


def killed_run(folder: Path) -> KilledRun | None:
    """The run of a folder whose process was killed; None where every span that started has ended."""
    reader, last = RunFilesReader(folder), _last_write(folder)
    opened, unsent = {stored.span.span_id: stored for stored in reader.started()}, list[StoredSpan]()
    for stored in reader.ended():
        opened.pop(stored.span.span_id, None)
        if last - (stored.span.end_time_unix_nano or 0) / 1e9 < UNSENT_SECONDS:
            unsent.append(stored)
    if not opened:
        return None
    spans = tuple(_killed(stored, at=int(last * 1e9)) for stored in opened.values())
    attributes = dict(spans[0].attributes or {})
    identity = {key: str(attributes[key]) for key in _IDENTITY if key in attributes}
    pipeline = identity.get(names.PIPELINE.name, "unknown")
    return KilledRun(pipeline, identity, last, spans, tuple(map(ended_span, unsent)), reader.skipped)


def _last_write(folder: Path) -> float:
    """The last sign of life of a run, a Unix time in seconds; 0 where it has no files."""
    return max((file.stat().st_mtime for file in folder.glob("*.jsonl")), default=0)


def _killed(stored: StoredSpan, *, at: int) -> ReadableSpan:
    """A span that was open, ended by the kill."""
    is_run = (stored.span.name or "").startswith(f"{names.RUN_SPAN.prefix} ")
    outcome = {names.OUTCOME.name: "killed"} if is_run else {}
    end = max(stored.span.start_time_unix_nano or 0, at)
    return _readable(stored, end=end, status=Status(StatusCode.ERROR, "killed"), also=outcome)


def ended_span(stored: StoredSpan) -> ReadableSpan:
    """A span that had ended, as it stands in the file."""
    code, message = (stored.span.status.code, stored.span.status.message) if stored.span.status else (0, None)
    return _readable(stored, end=stored.span.end_time_unix_nano or 0, status=Status(StatusCode(code), message or None))


def _readable(stored: StoredSpan, *, end: int, status: Status, also: Mapping[str, str] = NO_ATTRIBUTES) -> ReadableSpan:
    """A span as exporters take it."""
    span, trace_id = stored.span, int.from_bytes(stored.span.trace_id or b"")
    flags = TraceFlags((span.flags or 0) & TraceFlags.SAMPLED)
    return ReadableSpan(
        name=span.name or "",
        context=_context(trace_id, span.span_id or b"", flags, is_remote=False),
        parent=_context(trace_id, span.parent_span_id, flags, is_remote=True) if span.parent_span_id else None,
        resource=Resource(stored.resource),
        attributes={**attributes_of(span.attributes), **also},
        events=[
            Event(event.name or "", attributes_of(event.attributes), event.time_unix_nano) for event in span.events
        ],
        kind=SpanKind.INTERNAL,
        status=status,
        start_time=span.start_time_unix_nano,
        end_time=end,
        instrumentation_scope=InstrumentationScope(names.SCOPE),
    )


def _context(trace_id: int, span_id: bytes, flags: TraceFlags, *, is_remote: bool) -> SpanContext:
    return SpanContext(trace_id, int.from_bytes(span_id), is_remote=is_remote, trace_flags=flags)
