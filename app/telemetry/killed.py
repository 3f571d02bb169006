"""Runs whose process was killed: what they began is completed from the notes of its starts."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from app.telemetry import names

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
    """

    pipeline: str
    identity: Mapping[str, str]
    ended: float
    spans: tuple[ReadableSpan, ...]


def left_open(folder: Path) -> Killed | None:
    """What was begun in the folder of a run and never ended; None where nothing was."""
    started, ended = _spans(folder / "started.jsonl"), _spans(folder / "traces.jsonl")
    notes = [note for key, note in started.items() if key not in ended]
    if not notes:
        return None
    last = max(file.stat().st_mtime for file in folder.glob("*.jsonl"))
    spans = tuple(_ended(note, resource, at=int(last * 1e9)) for note, resource in notes)
    attributes = dict(spans[0].attributes or {})
    identity = {key: str(attributes[key]) for key in _IDENTITY if key in attributes}
    return Killed(identity.get(names.PIPELINE.name, "unknown"), identity, last, spans)


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


def _ended(note: dict[str, Any], resource: Resource, *, at: int) -> ReadableSpan:
    trace_id, began = int(note["traceId"], 16), int(note["startTimeUnixNano"])
    above = note.get("parentSpanId")
    attributes = _attributes(note.get("attributes", []))
    if note["name"].startswith(names.RUN_SPAN.prefix + " "):
        attributes[names.OUTCOME.name] = "killed"
    return ReadableSpan(
        name=note["name"],
        context=SpanContext(trace_id, int(note["spanId"], 16), is_remote=False, trace_flags=_SAMPLED),
        parent=SpanContext(trace_id, int(above, 16), is_remote=True, trace_flags=_SAMPLED) if above else None,
        resource=resource,
        attributes=attributes,
        kind=SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR, "killed"),
        start_time=began,
        end_time=max(began, at),
        instrumentation_scope=InstrumentationScope(names.SCOPE),
    )


def _attributes(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    return {pair["key"]: _TYPES[kind](value) for pair in pairs for kind, value in pair["value"].items()}
