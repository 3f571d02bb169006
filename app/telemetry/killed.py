"""Runs whose process was killed: what they began is completed from the notes of its starts."""

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

from app.telemetry import names
from app.telemetry.files import RunFiles
from app.telemetry.instruments import Measurements
from app.telemetry.lines import RunLines, Told, attributes_of
from app.telemetry.problems import Problems

Send = Callable[[Sequence[ReadableSpan], MetricsData], bool]
"""Takes spans and metrics, and gives back whether they were accepted."""

UNSENT_SECONDS: Final = 10
"""What ended so long before a kill may not have been sent: twice the default of `OTEL_BSP_SCHEDULE_DELAY`."""
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_IDENTITY: Final = tuple(each.name for each in (names.PIPELINE, names.RUN_ID, names.INVOCATION_ID, names.RUN_DATE))


@dataclass(frozen=True, slots=True)
class Killed:
    """What a killed process left open of a run.

    Attributes:
        pipeline: The pipeline of the run.
        identity: The attributes that identify the run.
        ended: The last sign of life of the run, a Unix time in seconds.
        spans: The run and its steps that were noted as started and never as ended, ended now and marked killed.
        last: Steps that had ended, so shortly before that they may not have been sent.
        skipped: Lines of its files that cannot be read; what they told is not known.
    """

    pipeline: str
    identity: Mapping[str, str]
    ended: float
    spans: tuple[ReadableSpan, ...]
    last: tuple[ReadableSpan, ...]
    skipped: int


def end(folder: Path, send: Send, *, problems: Problems) -> Killed | None:
    """Ends and sends what a killed process has left open in the folder of a run; None where nothing was.

    Spans that were not to be sent are not sent; the run is counted all the same.

    Raises:
        ConnectionError: It was not accepted; all is as before.
    """
    killed = left_open(folder)
    if killed is None:
        return None
    metrics = _metrics(killed)
    if not send([span for span in (*killed.spans, *killed.last) if _is_sampled(span)], metrics):
        raise ConnectionError("the endpoint does not take its end")
    files = RunFiles(folder, problems=problems)
    for span in killed.spans:
        files.note_end(span)
    files.note_metrics(metrics)
    files.close()
    return killed


def _is_sampled(span: ReadableSpan) -> bool:
    return span.context is not None and span.context.trace_flags.sampled


def _metrics(killed: Killed) -> MetricsData:
    """What counts it as killed, in the name of the process that was."""
    outcome, pipeline = {names.OUTCOME: "killed"}, {names.PIPELINE: killed.pipeline}
    measurements = Measurements(killed.spans[0].resource)
    measurements.record(names.RUNS, 1, pipeline | outcome)
    measurements.record(names.LAST_FAILURE, killed.ended, pipeline | outcome)
    return measurements.new() or MetricsData([])


def left_open(folder: Path) -> Killed | None:
    """What was begun in the folder of a run and never ended; None where nothing was."""
    lines = RunLines(folder)
    started, ended = ({told.span.span_id: told for told in each} for each in (lines.started(), lines.ended()))
    notes = [told for key, told in started.items() if key not in ended]
    if not notes:
        return None
    last = max(file.stat().st_mtime for file in folder.glob("*.jsonl"))
    spans = tuple(_killed(told, at=int(last * 1e9)) for told in notes)
    unsent = (told for told in ended.values() if last - (told.span.end_time_unix_nano or 0) / 1e9 < UNSENT_SECONDS)
    attributes = dict(spans[0].attributes or {})
    identity = {key: str(attributes[key]) for key in _IDENTITY if key in attributes}
    pipeline = identity.get(names.PIPELINE.name, "unknown")
    return Killed(pipeline, identity, last, spans, tuple(map(_ended, unsent)), lines.skipped)


def _killed(told: Told, *, at: int) -> ReadableSpan:
    """What was noted as started, ended by the kill."""
    is_run = (told.span.name or "").startswith(f"{names.RUN_SPAN.prefix} ")
    outcome = {names.OUTCOME.name: "killed"} if is_run else {}
    end = max(told.span.start_time_unix_nano or 0, at)
    return _readable(told, end=end, status=Status(StatusCode.ERROR, "killed"), also=outcome)


def _ended(told: Told) -> ReadableSpan:
    """What ended by itself, as it stands in the file."""
    code, message = (told.span.status.code, told.span.status.message) if told.span.status else (0, None)
    return _readable(told, end=told.span.end_time_unix_nano or 0, status=Status(StatusCode(code), message or None))


def _readable(told: Told, *, end: int, status: Status, also: Mapping[str, str] = NOTHING) -> ReadableSpan:
    """A span as exporters take it."""
    span, trace_id = told.span, int.from_bytes(told.span.trace_id or b"")
    flags = TraceFlags((span.flags or 0) & TraceFlags.SAMPLED)
    return ReadableSpan(
        name=span.name or "",
        context=_context(trace_id, span.span_id or b"", flags, is_remote=False),
        parent=_context(trace_id, span.parent_span_id, flags, is_remote=True) if span.parent_span_id else None,
        resource=Resource(told.resource),
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
