"""The waterfall of a report and the trace of its application are one tree."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from spark_app.report.limits import Limits
from spark_app.report.scope import scope
from spark_app.report.sections.timeline import Bar, timeline
from tests.eventlogs import walking
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line, job, packed, query, query_ended, stage, started, task

EVENT_LOGS: Final = Path(__file__).parents[3] / "eventlogs"
RECORDED: Final = sorted(
    path for folder in ("diagnoses", "streaming", "clusters") for path in (EVENT_LOGS / folder).glob("*.zst")
)
DRAWN: Final = {"application", "sql", "job", "stage", "batch"}
EVENT: Final = "org.apache.spark.sql.streaming.StreamingQueryListener$Query"
Drawn = dict[int, tuple[float, float, bool]]


def bars(bar: Bar) -> Iterator[Bar]:
    """A bar with all below it."""
    yield bar
    for child in bar.children:
        yield from bars(child)


def trees(lines: Iterator[bytes]) -> tuple[Drawn, Drawn]:
    """The bars and the spans by their ids: when they began and ended, and whether they failed."""
    app, spans = walking.read_lines(lines)
    limits = Limits(rows=1_000_000)
    drawn = {bar.id: (bar.started, bar.ended, bar.has_failed) for bar in bars(timeline(scope(app, None), limits).root)}
    traced = [span for span in spans if span.kind.prefix in DRAWN]
    return drawn, {span.ids.span_id: (span.started, span.ended, span.failure is not None) for span in traced}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_each_bar_is_a_span(path: Path) -> None:
    """With one id, one begin, one end and one outcome, in every recorded log."""
    drawn, traced = trees(walking.lines(path))
    assert drawn == traced


LOST: Final[dict[str, list[Line]]] = {
    "the end of a job and its stage, of a query that ended": [
        started(), query(0), job(0, [0], **{"spark.sql.execution.id": "0"}), stage(0), task(0, 0), query_ended(0),
        log.ended(),
    ],
    "the start of a stage": [
        started(), job(0, [0]), task(0, 0), stage(0, end=2900), log.job_ended(0), log.ended(),
    ],
    "the end of a batch that failed": [
        started(),
        {"Event": f"{EVENT}StartedEvent", "id": "q", "runId": "r", "name": "orders"},
        job(0, [], time=2000, **{
            "sql.streaming.queryId": "q", "streaming.sql.batchId": "7", "spark.jobGroup.id": "r",
        }),
        {"Event": f"{EVENT}TerminatedEvent", "id": "q", "runId": "r", "exception": "no"},
        log.ended(),
    ],
    "the start of an application whose clock was set back": [
        started(2500),
        {"Event": f"{EVENT}StartedEvent", "id": "q", "runId": "r", "name": "orders"},
        job(0, [], time=2600, **{
            "sql.streaming.queryId": "q", "streaming.sql.batchId": "7", "spark.jobGroup.id": "r",
        }),
        {"Event": f"{EVENT}ProgressEvent", "progress": {
            "id": "q", "runId": "r", "name": "orders", "timestamp": "1970-01-01T00:00:02.000Z", "batchId": 7,
            "batchDuration": 1500, "sources": [],
        }},
        log.ended(),
    ],
}  # fmt: skip


@pytest.mark.parametrize("lost", LOST)
def test_what_a_log_lacks_is_drawn_as_it_is_traced(lost: str) -> None:
    """A part without an end ends with the whole that it is of; a batch that failed is one."""
    drawn, traced = trees(packed(LOST[lost]))
    assert drawn == traced
