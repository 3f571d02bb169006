import datetime
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from spark_app.eventlog.reader import Reading, read
from spark_app.runs import run_record
from tests.unit.eventlog.log import Line
from tests.unit.report import made
from tests.unit.run_records import example_record

TRACE = "a" * 32
Read = Callable[[Iterable[Line]], Reading]


@pytest.fixture
def reading(tmp_path: Path) -> Read:
    """Reads a log of some lines."""
    return lambda lines: read(made.written(tmp_path / "log", list(lines)))


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """The folder of a spark-app run with traces and logs, without a run record."""
    folder = tmp_path / "runs" / "20240101T000000Z-etl.x-2024-01-01-aaaaaa"
    folder.mkdir(parents=True)
    spans = [span("1", "", "run etl.x", 1000, None), span("2", "1", "step write t", 2000, None)]
    (folder / "started.jsonl").write_text("".join(line("resourceSpans", "scopeSpans", "spans", each) for each in spans))
    ended = span("2", "1", "step write t", 2000, 3000)
    (folder / "traces.jsonl").write_text(line("resourceSpans", "scopeSpans", "spans", ended) + '{"resourceSpans":[{"sc')
    content = [record(9, "all is well"), record(13, "rows came late"), record(13, "rows came late")]
    (folder / "logs.jsonl").write_text(
        "".join(line("resourceLogs", "scopeLogs", "logRecords", each) for each in content)
    )
    return folder


def record_of(folder: Path, **content: Any) -> None:
    """Writes what a run says of itself: it began a second after the epoch, and took four."""
    began = datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC)
    usual = {"pipeline": "etl.x", "started_at": began, "seconds": 4.0, "trace_id": TRACE, "event_log": None}
    run_record.write(example_record(folder, **(usual | content)), note=pytest.fail)


def span(number: str, parent: str, name: str, start: int, end: int | None) -> Line:
    """A span as OTLP has it; times in milliseconds."""
    content = {"traceId": TRACE, "spanId": number.zfill(16), "name": name, "startTimeUnixNano": str(start * 1_000_000)}
    content |= {"parentSpanId": parent.zfill(16)} if parent else {}
    return content | ({} if end is None else {"endTimeUnixNano": str(end * 1_000_000)})


def record(severity: int, text: str) -> Line:
    """A log record as OTLP has it, of the step."""
    content = {"timeUnixNano": "2500000000", "severityNumber": severity, "severityText": "WARN"}
    return content | {"body": {"stringValue": text}, "spanId": "2".zfill(16)}


def line(resource: str, scope: str, kind: str, content: Line) -> str:
    """A line of OTLP JSON."""
    return json.dumps({resource: [{scope: [{kind: [content]}]}]}) + "\n"
