"""What the span of a micro-batch says beyond its times: rows, phases, state, lag, and links to its producers."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from spark_app.eventlog.span_ids import SpanContext, context_of
from spark_app.vocabulary import spark_names as names
from spark_app.vocabulary.names import Attribute
from spark_app.vocabulary.spark_progress import Progress, StateOperatorProgress, offsets, sum_of_known

MAX_LINKS: Final = 32
"""The most links of a span: a sample of 16 contexts for each of two topics."""
MAX_NUMBER: Final = 2**60
"""A larger number is of no batch; OTLP has 64 bits for one."""


class Links(NamedTuple):
    """The contexts that a batch links to, each once.

    Attributes:
        contexts: The spans of producers.
        traced: Records with a `traceparent`; None where nothing was observed.
        left_out: How many of them the contexts were not taken from: outside of the sample, malformed, or over the cap.
    """

    contexts: tuple[SpanContext, ...] = ()
    traced: int | None = None
    left_out: int = 0


def links(progress: Progress | None) -> Links:
    """The links of a batch, from each observation with `traceparents`, an array of texts, and their number `traced`."""
    rows = filter(None, (progress.observed or {}).values()) if progress is not None else ()
    contexts, linked, traced = dict[SpanContext, None](), 0, None
    for texts, count in filter(None, map(_sample, rows)):
        traced = (traced or 0) + count
        for context in filter(None, map(context_of, texts)):
            if len(contexts) < MAX_LINKS or context in contexts:
                contexts[context] = None
                linked += 1
    return Links(tuple(contexts), traced, max(0, (traced or 0) - linked))


def _sample(values: Mapping[str, Any]) -> tuple[list[str], int] | None:
    texts, traced = values.get("traceparents"), _number(values.get("traced"))
    if not isinstance(texts, list):
        return None if traced is None else ([], traced)
    known = [text for text in texts if isinstance(text, str)]
    return known, len(texts) if traced is None else traced


def attributes(progress: Progress | None, links: Links) -> Mapping[Attribute, str | int | None]:
    """What Spark reported about a batch; None for what it does not know."""
    if progress is None:
        return {}
    return {
        **{attribute: _number(progress.durations_ms.get(phase)) for phase, attribute in names.BATCH_PHASES.items()},
        names.BATCH_ROWS: _number(progress.rows_read),
        names.BATCH_ROWS_WRITTEN: _number(progress.rows_written),
        names.BATCH_ROWS_LATE: _sum(progress.state, "dropped"),
        names.BATCH_VIOLATIONS: _number(progress.violations),
        names.WATERMARK: _instant(progress.watermark),
        names.STATE_ROWS: _sum(progress.state, "rows"),
        names.STATE_BYTES: _sum(progress.state, "memory_bytes"),
        names.STATE_COMMIT_TIME: _sum(progress.state, "commit_ms"),
        names.LAG: None if progress.lag is None else _number(sum(progress.lag.values())),
        names.RECORDS_TRACED: links.traced,
        names.LINKS_LEFT_OUT: links.left_out or None,
        **_messaging(progress),
    }


def _messaging(progress: Progress) -> dict[Attribute, str | int | None]:
    """OpenTelemetry's names of a batch of messages, where all of the rows are messages of Kafka."""
    read = [offsets(source.end) for source in progress.sources]
    topics = sorted({topic for offset in read for topic in offset or ()})
    if not topics or None in read:
        return {}
    return {
        names.MESSAGING_SYSTEM: "kafka",
        names.MESSAGING_OPERATION: "process",
        names.MESSAGING_DESTINATION: topics[0] if len(topics) == 1 else None,
        names.MESSAGING_COUNT: _number(progress.rows_read),
    }


def _number(value: Any) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= MAX_NUMBER else None


def _sum(state: list[StateOperatorProgress], name: str) -> int | None:
    return _number(sum_of_known(_number(getattr(operator, name)) for operator in state))


def _instant(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    try:
        instant = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
