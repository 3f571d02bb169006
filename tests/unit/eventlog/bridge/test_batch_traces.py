"""The spans of a micro-batch leave together, when it has ended: none without its parent, and not more than a bound."""

import dataclasses
from typing import Final

import pytest

from spark_app.eventlog.bridge import batch_traces
from spark_app.eventlog.bridge.batch_traces import BatchTraces
from spark_app.eventlog.span_ids import SpanIds
from spark_app.eventlog.spans import SparkSpan
from spark_app.vocabulary.names import SpanName
from spark_app.vocabulary.spark_names import APPLICATION_SPAN, BATCH_SPAN, JOB_SPAN, STAGE_SPAN, TASK_SPAN

LEFT_OUT: Final = "spark.streaming.batch.spans.left_out"
ROOT: Final = SparkSpan(BATCH_SPAN, "batch", SpanIds(1, 1, None, is_of_batch=True), 0, 9, {})


def below(parent: SparkSpan, number: int, kind: SpanName = JOB_SPAN) -> SparkSpan:
    """A span whose parent is another."""
    ids = parent.ids.child(number)
    return dataclasses.replace(parent, kind=kind, name=f"span {number}", ids=ids)


@pytest.fixture
def sent() -> list[SparkSpan]:
    """What has left."""
    return []


@pytest.fixture
def traces(sent: list[SparkSpan]) -> BatchTraces:
    """Nothing is held."""
    return BatchTraces(sent.append)


def test_nothing_of_a_batch_leaves_before_it_has_ended(traces: BatchTraces, sent: list[SparkSpan]) -> None:
    """A killed program has sent no part of the micro-batch in hand; then all of it comes, each after its parent."""
    job = below(ROOT, 2)
    stage = below(job, 3, STAGE_SPAN)
    for span in (below(stage, 4, TASK_SPAN), stage, job):
        traces.put(span)
    assert sent == []
    traces.put(ROOT)
    assert [span.ids.span_id for span in sent] == [1, 2, 3, 4]
    assert LEFT_OUT not in sent[0].attributes


def test_what_ends_after_its_batch_leaves_at_once(traces: BatchTraces, sent: list[SparkSpan]) -> None:
    """A task that was killed ends after it, and its parents are there."""
    traces.put(ROOT)
    traces.put(below(ROOT, 5, TASK_SPAN))
    assert [span.ids.span_id for span in sent] == [1, 5]


def test_spans_of_other_traces_pass(traces: BatchTraces, sent: list[SparkSpan]) -> None:
    """An application waits for nothing."""
    application = SparkSpan(APPLICATION_SPAN, "application", SpanIds(7, 8, None), 0, 9, {})
    job = below(application, 9)
    traces.put(job)
    assert sent == [job]


def test_a_trace_is_bounded_and_says_so(
    traces: BatchTraces, sent: list[SparkSpan], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks make room for jobs; what has no parent in the trace is left out with it, and all of it is counted."""
    monkeypatch.setattr(batch_traces, "MAX_SPANS", 10)
    jobs = [below(ROOT, number) for number in range(2, 22)]
    tasks = [below(jobs[0], 100 + number, TASK_SPAN) for number in range(20)]
    orphan = below(below(ROOT, 50), 51)
    for span in (*tasks, orphan, *jobs, ROOT):
        traces.put(span)
    ids = {span.ids.span_id for span in sent}
    assert len(sent) <= 10
    assert all(span.ids.parent_id in ids for span in sent[1:])
    assert sent[0].attributes[LEFT_OUT] == 42 - len(sent)
    assert sum(span.kind is TASK_SPAN for span in sent) == 5
    traces.put(below(jobs[-1], 200))
    assert sent[-1].ids.span_id != 200


def test_batches_that_never_end_are_forgotten(
    traces: BatchTraces, sent: list[SparkSpan], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order in which they came."""
    monkeypatch.setattr(batch_traces, "MAX_OPEN", 2)
    roots = [dataclasses.replace(ROOT, ids=ROOT.ids._replace(trace_id=trace)) for trace in (1, 2, 3)]
    for root in roots:
        traces.put(below(root, 5))
    for root in roots:
        traces.put(root)
    assert [(span.ids.trace_id, span.ids.span_id) for span in sent] == [(1, 1), (2, 1), (2, 5), (3, 1), (3, 5)]
