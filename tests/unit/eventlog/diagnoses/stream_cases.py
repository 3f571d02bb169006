"""Streaming queries with some batches, and what is found in them."""

import datetime
from collections.abc import Iterable
from typing import Any, Final

from spark_app.eventlog.diagnoses import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.stream_queries import StreamQuery
from spark_app.eventlog.model.stream_samples import StateSkew
from spark_app.vocabulary.spark_progress import Progress, SourceProgress, StateOperatorProgress
from tests.unit.eventlog import log

SHIPPED: Final = Thresholds()
EPOCH: Final = datetime.datetime.fromtimestamp(0, datetime.UTC)
DAY: Final = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def batch(
    number: int, *, at: float | None = None, seconds: float = 0.4, rows: int | None = 5000, **fields: Any
) -> Progress:
    """A batch; one starts every second, works nearly all of its time, and reads enough rows."""
    started = datetime.datetime.fromtimestamp(float(number) if at is None else at, datetime.UTC)
    ms = round(seconds * 1000)
    known: dict[str, Any] = {"sources": [source(rows)], "durations_ms": {"addBatch": ms - 20, "walCommit": 20}}
    return Progress(
        query="q", run="r", triggered_at=started, name="orders", batch=number, batch_ms=ms, **(known | fields)
    )


def source(rows: int | None, lag: int | None = None, name: str = "orders") -> SourceProgress:
    """A source, and what a batch has read of it."""
    latest = None if lag is None else f'{{"{name}":{{"0":{lag}}}}}'
    return SourceProgress(description=name, rows=rows, end=f'{{"{name}":{{"0":0}}}}', latest=latest)


def event_time(minute: int, watermark: int | None) -> dict[str, str]:
    """The event time and the watermark of a batch, in minutes of a day; before the first one it is the epoch."""
    told = {"max": minute, "watermark": watermark}
    return {
        name: (EPOCH if at is None else DAY + datetime.timedelta(minutes=at)).isoformat() for name, at in told.items()
    }


def state(rows: int, *, name: str = "dedupe", removed: int | None = 0, **fields: Any) -> StateOperatorProgress:
    """A stateful operator after a batch."""
    return StateOperatorProgress(name=name, rows=rows, removed=removed, updated=10, **fields)


def application(
    batches: Iterable[Progress],
    *,
    settings: dict[str, str] | None = None,
    trigger_ms: int | None = None,
    skew: StateSkew | None = None,
    cores: int = 2,
) -> Application:
    """An application with some cores and one streaming query."""
    app = log.application([log.started(), log.executor(cores=cores), log.ended(100_000)])
    query = app.streams.queries["q"] = StreamQuery("q", settings=settings or {})
    query.trigger.configured_ms = trigger_ms
    for progress in batches:
        query.add(progress, skew)
    return app


def found(app: Application, limits: Thresholds = SHIPPED) -> dict[str, Finding]:
    """What is found in its query, by rule, whatever it costs."""
    (query,) = app.streams.queries.values()
    return {finding.rule: finding for finding in diagnose.of_stream(app, query, query.history.all, limits)}
