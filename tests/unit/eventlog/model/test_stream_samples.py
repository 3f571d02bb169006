"""A sample holds exact sums of its batches; what no batch says is unknown, and never 0."""

import datetime

from spark_app.eventlog.model.stream_samples import MAX_HOT, StateSkew, StreamSample, together
from spark_app.vocabulary.spark_progress import Progress, SinkProgress, SourceProgress, StateOperatorProgress

UTC = datetime.UTC


def progress(batch: int, *, rows: int | None = None, lag: int | None = None, **fields: object) -> Progress:
    """A batch of 400 ms that starts at its second."""
    latest = None if lag is None else f'{{"orders":{{"0":{100 + lag}}}}}'
    known: dict[str, object] = {
        "sources": [SourceProgress(rows=rows, end='{"orders":{"0":100}}', latest=latest)],
        "durations_ms": {"triggerExecution": 400, "addBatch": 300, "walCommit": 50},
    }
    at = datetime.datetime.fromtimestamp(batch, UTC)
    return Progress(query="q", run="r", triggered_at=at, batch=batch, batch_ms=400, **(known | fields))  # type: ignore[arg-type]


def sample(batch: int, **fields: object) -> StreamSample:
    """The sample of one batch."""
    return StreamSample.of(progress(batch, **fields), {}, None)  # type: ignore[arg-type]


def test_a_sample_adds_what_is_a_sum_and_keeps_the_last_of_what_is_a_level() -> None:
    """The whole trigger is no part of the work."""
    state = [
        StateOperatorProgress(name="dedupe", rows=5, updated=5, commit_ms=7),
        StateOperatorProgress(name="dedupe", rows=9, updated=4),
    ]
    total = together([sample(0, rows=3, lag=9, state=state[:1]), sample(1, rows=4, lag=2, state=state[1:])])
    assert total is not None
    assert (total.batches, total.duration_ms, total.longest_ms, total.rows, total.lag) == (
        2,
        800,
        400,
        7,
        {"orders": 2},
    )
    assert total.phases_ms == {"addBatch": 600, "walCommit": 100}
    held = total.state["0 dedupe"]
    assert (held.rows, held.updated, held.commit_ms, held.removed) == (9, 9, 7, None)


def test_what_no_batch_says_is_unknown() -> None:
    """Rows of a source that does not count, a sink that logs -1, a watermark before the first one, a lag of files."""
    event_time = {"watermark": "1970-01-01T00:00:00.000Z"}
    unknown = together([sample(0, event_time=event_time, sink=SinkProgress(rows=-1)), sample(1, event_time=event_time)])
    assert unknown is not None
    assert (unknown.rows, unknown.rows_out, unknown.watermark, unknown.newest, unknown.lag) == (None,) * 5
    assert (unknown.empty, unknown.source_rows) == (0, [None])


def test_a_sample_knows_the_longest_time_without_a_batch() -> None:
    """However samples are put together: a night without data is not lost in a sum."""
    early, late = together([sample(0), sample(1), sample(90)]), together([sample(100), sample(102)])
    assert early is not None
    assert late is not None
    assert (early.pause, late.pause, sample(0).pause) == ((1400, 90_000), (100_400, 102_000), None)
    total = together([early, late])
    assert total is not None
    assert total.pause == (1400, 90_000)


def test_samples_are_not_changed_by_their_sum() -> None:
    """Whoever adds them needs them again."""
    first = sample(0, rows=3, state=[StateOperatorProgress(name="dedupe", rows=5, updated=5)])
    together([first, sample(1, rows=4, state=[StateOperatorProgress(name="dedupe", rows=6, updated=1)])])
    assert (first.batches, first.rows, first.phases_ms["addBatch"], first.state["0 dedupe"].updated) == (1, 3, 300, 5)


def test_the_partitions_that_are_hot_most_often_are_kept() -> None:
    """Of thousands."""
    total = StateSkew()
    for number in range(1000):
        total.add(StateSkew(1, 10, 5, 5, {7 if number % 2 else number: 1}))
    assert (total.stages, max(total.hot, key=lambda partition: total.hot[partition])) == (1000, 7)
    assert total.hot[7] == 500
    assert len(total.hot) <= MAX_HOT
