"""The histories of streaming queries as bytes: a compact file of an event log holds them in place of their events."""

from collections import deque
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from spark_app.eventlog.model.stream_queries import MAX_STOPS, StreamQuery
from spark_app.eventlog.model.stream_samples import Samples, StreamSample
from spark_app.eventlog.model.stream_triggers import Trigger
from spark_app.vocabulary.spark_progress import Progress


class _History(Struct):
    id: str
    name: str | None
    run: str
    runs: int
    started: int | None
    ended: int | None
    error: str | None
    settings: dict[str, str]
    configured_ms: int | None = msgspec.field(name="told_ms")  # as compact files have it
    interval_ms: int | None
    samples: list[StreamSample]
    batches: int
    stops: list[tuple[int, int]]
    last: StreamSample | None
    progress: Progress | None
    is_restart: bool = False
    reported_at: int | None = None
    is_idle: bool = False
    longest_silence_ms: int | None = None


def encoded(queries: Mapping[str, StreamQuery]) -> bytes:
    """Bytes for `decoded`."""
    return msgspec.msgpack.encode([_of(query) for query in queries.values()])


def decoded(content: bytes) -> dict[str, StreamQuery]:
    """The streaming queries by their ids.

    Raises:
        ValueError: Another version of this program wrote the bytes.
    """
    return {each.id: _query(each) for each in msgspec.msgpack.decode(content, type=list[_History])}


def _of(query: StreamQuery) -> _History:
    return _History(
        query.id,
        query.name,
        query.run,
        query.runs,
        query.started,
        query.ended,
        query.error,
        dict(query.settings),
        query.trigger.configured_ms,
        query.trigger.interval_ms,
        query.history.all,
        query.history.batches,
        list(query.stops),
        query.last,
        query.progress,
        query.is_restart,
        query.reported_at,
        query.is_idle,
        query.longest_silence_ms,
    )


def _query(kept: _History) -> StreamQuery:
    return StreamQuery(
        kept.id,
        kept.name,
        kept.run,
        kept.runs,
        kept.started,
        kept.ended,
        kept.error,
        kept.settings,
        Trigger(configured_ms=kept.configured_ms, inferred_ms=kept.interval_ms),
        Samples(kept.samples, batches=kept.batches),
        deque(kept.stops, maxlen=MAX_STOPS),
        kept.last,
        kept.progress,
        kept.is_restart,
        kept.reported_at,
        kept.is_idle,
        kept.longest_silence_ms,
    )
