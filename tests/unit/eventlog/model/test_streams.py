"""Queries and jobs of streaming queries belong to a batch, of one run; what runs none is no batch."""

from typing import Any, Final

import pytest

from spark_app.eventlog.model.outcome import ending_of
from tests.eventlogs import walking
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line, ended, job, job_ended, packed, query, query_ended, stage, started, task

STEP: Final = f"00-{'a' * 32}-{'b' * 16}-01"
EVENT: Final = "org.apache.spark.sql.streaming.StreamingQueryListener$Query"


def begun(run: str = "run-1", name: str | None = "copied") -> Line:
    """A run of the query begins."""
    return {"Event": f"{EVENT}StartedEvent", "id": "query-1", "runId": run, "name": name}


def over(run: str = "run-1", error: str | None = None) -> Line:
    """It ends."""
    return {"Event": f"{EVENT}TerminatedEvent", "id": "query-1", "runId": run, "exception": error}


def progress(batch: int, run: str = "run-1", **more: Any) -> Line:
    """A trigger is done: half a second, from second 2 of the epoch on."""
    fields = {"id": "query-1", "runId": run, "name": None, "timestamp": "1970-01-01T00:00:02.000Z", "batchId": batch}
    return {"Event": f"{EVENT}ProgressEvent", "progress": {**fields, "batchDuration": 1500, "sources": [], **more}}


def batch_job(number: int, batch: int, group: str = "run-1", **properties: Any) -> Line:
    """A job of a batch."""
    of = {"sql.streaming.queryId": "query-1", "streaming.sql.batchId": str(batch), "spark.jobGroup.id": group}
    return job(number, [], traceparent=STEP, **of, **properties)


def batches(lines: list[Line]) -> dict[str, tuple[Any, ...]]:
    """The batches in some lines: their times, and the run."""
    _, spans = walked(lines)
    return {
        f"{span.attributes['spark.streaming.query.run_id']} {span.attributes['spark.streaming.batch.id']}": (
            span.name, span.started, span.ended, span.failure and span.failure.type,
            span.attributes.get("spark.incomplete", False), span.attributes.get("spark.streaming.batch.rows"),
        )
        for span in spans
        if span.kind.prefix == "batch"
    }  # fmt: skip


def walked(lines: list[Line]) -> Any:
    """The spans of lines, which are a tree."""
    app, spans = walking.read_lines(packed(lines))
    walking.assert_is_forest(app, spans)
    return app, spans


DONE: Final = [started(), begun(), batch_job(0, 0), job_ended(0)]


def test_a_batch_has_the_times_of_its_trigger() -> None:
    """And the name of its query, and the rows of its sources together."""
    rows = [{"numInputRows": 3}, {"numInputRows": 4}]
    assert batches([*DONE, progress(0, sources=rows), over(), ended()]) == {
        "run-1 0": ("batch copied", 2000, 3500, None, False, 7)
    }


def test_jobs_and_queries_are_below_their_batch_and_not_below_the_step() -> None:
    """The step that started the stream may long have ended."""
    lines = [query(0, time=2000), batch_job(0, 0, **{"spark.sql.execution.id": "0"}), batch_job(1, 0), progress(0)]
    _, spans = walked([started(), begun(), *lines, job_ended(0), job_ended(1), query_ended(0), ended()])
    (batch,) = [span for span in spans if span.kind.prefix == "batch"]
    below = [span.kind.prefix for span in spans if span.ids.parent_id == batch.ids.span_id]
    assert sorted(below) == ["job", "sql"]


def test_a_query_that_ended_before_its_job_was_told_is_below_its_batch() -> None:
    """As where a stream is stopped in the midst of a batch: the query's own description says which one it ran for."""
    fields = {"jobGroupId": "run-1", "description": "copied\nid = query-1\nrunId = run-1\nbatch = 7"}
    lines = [query(0, time=2000) | fields, query_ended(0), batch_job(0, 7, **{"spark.sql.execution.id": "0"}), over()]
    _, spans = walked([started(), begun(), *lines, job_ended(0), ended()])
    (batch,) = [span for span in spans if span.kind.prefix == "batch"]
    below = {span.ids.parent_id: span for span in spans}
    assert batch.attributes["spark.streaming.batch.id"] == 7
    assert below[batch.ids.span_id].kind.prefix == "sql"
    assert below[below[batch.ids.span_id].ids.span_id].kind.prefix == "job"


def test_rows_that_are_not_told_are_absent() -> None:
    """Not 0."""
    for last in (progress(0, sources=[]), progress(0, sources=[{}])):
        assert batches([*DONE, last, ended()])["run-1 0"][-1] is None


def test_a_trigger_that_found_nothing_is_no_batch() -> None:
    """Its progress has the number of the batch that comes next."""
    again = [progress(1), batch_job(1, 1), job_ended(1), progress(1), progress(1)]
    lines = [*DONE, progress(0), progress(1), *again, ended()]
    assert list(batches(lines)) == ["run-1 0", "run-1 1"]
    assert list(batches([started(), begun(), progress(0), progress(1), over(), ended()])) == []


def test_a_query_that_begins_again_has_another_run() -> None:
    """The same batch, once stopped in its midst and once done."""
    lines = [
        *DONE, over(), begun("run-2"), batch_job(1, 0, "run-2"), job_ended(1, time=3200), progress(0, "run-2"),
        ended(),
    ]  # fmt: skip
    assert batches(lines) == {
        "run-1 0": ("batch copied", 2000, 3000, None, False, None),
        "run-2 0": ("batch copied", 2000, 3500, None, False, None),
    }


def test_a_group_of_the_program_does_not_hide_the_run() -> None:
    """Inside `foreachBatch` a program may set what it wants."""
    assert list(batches([started(), begun(), batch_job(0, 0, "mine"), job_ended(0), progress(0), ended()])) == [
        "run-1 0"
    ]


def test_where_the_log_does_not_tell_of_the_run_it_is_the_group() -> None:
    """As of a log that is compacted."""
    lines = [started(), batch_job(0, 0), job_ended(0), progress(0, name="copied"), ended()]
    assert batches(lines) == {"run-1 0": ("batch copied", 2000, 3500, None, False, None)}


def test_a_query_that_fails_has_a_batch_that_failed() -> None:
    """It ends with the last that is known of it."""
    lines = [*DONE[:-1], job_ended(0, time=2700, error="[A_B] x"), over(error="[A_B] x"), ended()]
    assert batches(lines) == {"run-1 0": ("batch copied", 2000, 2700, "A_B", False, None)}


def test_a_batch_that_was_stopped_holds_all_of_its_tasks() -> None:
    """Also where the listener bus has dropped the ends of its stage and of its job."""
    job_of_stage = batch_job(0, 0) | {"Stage IDs": [4]}
    lines = [*DONE[:2], job_of_stage, stage(4), task(0, 4, seconds=0.4), over(), ended()]
    assert batches(lines) == {"run-1 0": ("batch copied", 2000, 2600, None, False, None)}


def test_a_batch_at_work_when_the_log_ends_is_incomplete() -> None:
    """Nothing is known of how it ends."""
    assert batches([started(), begun(name=None), batch_job(0, 0)]) == {
        "run-1 0": ("batch unnamed", 2000, 2000, None, True, None)
    }


@pytest.mark.parametrize("batch", ["", "x", "-1"])
def test_a_batch_without_number_is_none(batch: str) -> None:
    """The job is below its step, like any other."""
    line = batch_job(0, 0)
    line["Properties"]["streaming.sql.batchId"] = batch
    app, spans = walked([started(), begun(), line, job_ended(0), ended()])
    assert app.batches == {}
    assert next(span for span in spans if span.kind.prefix == "job").ids.parent_id == int("b" * 16, 16)


def test_queries_of_a_batch_are_below_it() -> None:
    """Also those that began before its first job; it begins with them where its trigger is unknown."""
    lines = [
        started(), begun(), query(0, time=1900), query(1, root=0, time=1950),
        batch_job(0, 0, **{"spark.sql.execution.id": "1"}), job_ended(0), query_ended(1), query_ended(0, time=3100),
        over(error="[A_B] x"), ended(),
    ]  # fmt: skip
    assert batches(lines) == {"run-1 0": ("batch copied", 1900, 3100, "A_B", False, None)}


def test_a_query_that_its_program_stops_has_not_failed() -> None:
    """The batch in hand is interrupted, and fails with whatever that breaks; a query that fails does so itself."""
    fields = {"jobGroupId": "run-1", "description": "copied\nid = query-1\nrunId = run-1\nbatch = 1"}
    interrupted = [
        query(0, time=4000) | fields, batch_job(1, 1), job_ended(1, time=4500, error="InterruptedException"),
        query_ended(0, time=4600, error="java.lang.InterruptedException"),
    ]  # fmt: skip
    stopped = log.application([*DONE, progress(0), *interrupted, over(), ended()])
    assert ending_of(stopped).outcome == "ended"
    assert ending_of(stopped).failed_jobs == 0
    failed = log.application([*DONE, progress(0), *interrupted, over(error="x"), ended()])
    assert (ending_of(failed).outcome, ending_of(failed).failed_jobs) == ("failed", 1)
