"""Runs whose process was killed: what they began is completed from the notes of its starts."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from opentelemetry.sdk.metrics.export import MetricsData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from app.telemetry import names
from app.telemetry.files import RunFiles
from app.telemetry.instruments import Measurements
from app.telemetry.problems import Problems

Send = Callable[[Sequence[ReadableSpan], MetricsData], bool]
"""Takes spans and metrics, and gives back whether they were accepted."""

UNSENT_SECONDS: Final = 10
"""What ended so long before a kill may not have been sent: twice the default of `OTEL_BSP_SCHEDULE_DELAY`."""
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_TYPES: Final = {"stringValue": str, "intValue": int, "boolValue": bool, "doubleValue": float}


@dataclass(frozen=True, slots=True)
class Killed:
    """What a killed process left open of a run.

    Attributes:
        pipeline: The pipeline of the run.
        identity: The attributes that identify the run.
        ended: The last sign of life of the run, a Unix time in seconds.
        spans: The run and its steps that were noted as started and never as ended, ended now and marked killed.
        last: Steps that had ended, so shortly before that they may not have been sent.
    """

    pipeline: str
    identity: Mapping[str, str]
    ended: float
    spans: tuple[ReadableSpan, ...]
    last: tuple[ReadableSpan, ...]


def complete(folder: Path, send: Send, *, problems: Problems) -> Killed | None:
    """Ends and sends what a killed process has left open in the folder of a run; None where nothing was.

    Raises:
        ConnectionError: It was not accepted; all is as before.
    """
    killed = left_open(folder)
    if killed is None:
        return None
    metrics = _metrics(killed)
    if not send([*killed.spans, *killed.last], metrics):
        raise ConnectionError("the endpoint does not take its end")
    files = RunFiles(folder, problems=problems)
    for span in killed.spans:
        files.note_end(span)
    files.note_metrics(metrics)
    files.close()
    return killed


def _metrics(killed: Killed) -> MetricsData:
    """What counts it as killed, in the name of the process that was."""
    outcome, pipeline = {names.OUTCOME: "killed"}, {names.PIPELINE: killed.pipeline}
    measurements = Measurements(killed.spans[0].resource)
    measurements.record(names.RUNS, 1, pipeline | outcome)
    measurements.record(names.LAST_FAILURE, killed.ended, pipeline | outcome)
    return measurements.new() or MetricsData([])


def left_open(folder: Path) -> Killed | None:
    """What was begun in the folder of a run and never ended; None where nothing was."""
    started, ended = _spans(folder / "started.jsonl"), _spans(folder / "traces.jsonl")
    notes = [note for key, note in started.items() if key not in ended]
    if not notes:
        return None
    last = max(file.stat().st_mtime for file in folder.glob("*.jsonl"))
    spans = tuple(_killed(note, resource, at=int(last * 1e9)) for note, resource in notes)
    unsent = (told for told in ended.values() if last - int(told[0]["endTimeUnixNano"]) / 1e9 < UNSENT_SECONDS)
    attributes = dict(spans[0].attributes or {})
    identity = {key: str(attributes[key]) for key in _IDENTITY if key in attributes}
    pipeline = identity.get(names.PIPELINE.name, "unknown")
    return Killed(pipeline, identity, last, spans, tuple(_span(*told) for told in unsent))


_IDENTITY: Final = tuple(each.name for each in (names.PIPELINE, names.RUN_ID, names.INVOCATION_ID, names.RUN_DATE))


def _spans(file: Path) -> dict[str, tuple[dict[str, Any], Resource]]:
    """The spans of a file of OTLP JSON Lines by their ids, each with its resource; a torn last line is left out."""
    found: dict[str, tuple[dict[str, Any], Resource]] = {}
    for group in _groups(file):
        resource = Resource(_attributes(group["resource"].get("attributes", [])))
        for scope in group["scopeSpans"]:
            found |= {span["spanId"]: (span, resource) for span in scope["spans"]}
    return found


def _groups(file: Path) -> Iterator[dict[str, Any]]:
    if not file.exists():
        return
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            yield from json.loads(line)["resourceSpans"]
        except json.JSONDecodeError:
            continue


def _killed(note: dict[str, Any], resource: Resource, *, at: int) -> ReadableSpan:
    """What was noted as started, ended by the kill."""
    end: dict[str, Any] = {"endTimeUnixNano": max(int(note["startTimeUnixNano"]), at)}
    if note["name"].startswith(names.RUN_SPAN.prefix + " "):
        outcome = {"key": names.OUTCOME.name, "value": {"stringValue": "killed"}}
        end["attributes"] = [*note.get("attributes", []), outcome]
    return _span(note | end | {"status": {"code": StatusCode.ERROR.value, "message": "killed"}}, resource)


def _span(told: dict[str, Any], resource: Resource) -> ReadableSpan:
    """A span as it stands in a file."""
    trace_id, above, status = int(told["traceId"], 16), told.get("parentSpanId"), told.get("status", {})
    return ReadableSpan(
        name=told["name"],
        context=SpanContext(trace_id, int(told["spanId"], 16), is_remote=False, trace_flags=_SAMPLED),
        parent=SpanContext(trace_id, int(above, 16), is_remote=True, trace_flags=_SAMPLED) if above else None,
        resource=resource,
        attributes=_attributes(told.get("attributes", [])),
        events=[
            Event(event["name"], _attributes(event.get("attributes", [])), int(event["timeUnixNano"]))
            for event in told.get("events", [])
        ],
        kind=SpanKind.INTERNAL,
        status=Status(StatusCode(status.get("code", 0)), status.get("message")),
        start_time=int(told["startTimeUnixNano"]),
        end_time=int(told["endTimeUnixNano"]),
        instrumentation_scope=InstrumentationScope(names.SCOPE),
    )


def _attributes(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    return {pair["key"]: _TYPES[kind](value) for pair in pairs for kind, value in pair["value"].items()}
