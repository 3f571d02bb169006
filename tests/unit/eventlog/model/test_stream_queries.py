"""A streaming query has a history of all its batches, in bounded memory."""

import datetime
from itertools import pairwise
from typing import Any, Final

from spark_app.eventlog.model.stream_queries import MAX_STOPS, StreamQuery
from spark_app.eventlog.model.stream_samples import MAX_SAMPLES, together
from spark_app.eventlog.parse.events import QueryStarted, QueryTerminated
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line
from tests.unit.eventlog.model.test_stream_samples import progress

EVENT: Final = "org.apache.spark.sql.streaming.StreamingQueryListener$Query"


def line(batch: int, run: str = "run-1", **more: Any) -> Line:
    """A batch of the query has ended."""
    fields = {"id": "query-1", "runId": run, "name": "orders", "timestamp": "1970-01-01T00:00:02.000Z"}
    ran: Line = {"batchId": batch, "batchDuration": 400, "durationMs": {"addBatch": 300, "walCommit": 40}}
    return {"Event": f"{EVENT}ProgressEvent", "progress": {**fields, **ran, **more}}


def started(run: str = "run-1", time: str = "1970-01-01T00:00:01.000Z") -> Line:
    """A run begins."""
    return {"Event": f"{EVENT}StartedEvent", "id": "query-1", "runId": run, "name": "orders", "timestamp": time}


def ended(run: str = "run-1", error: str | None = None) -> Line:
    """A run ends."""
    return {"Event": f"{EVENT}TerminatedEvent", "id": "query-1", "runId": run, "exception": error}


def query_of(*lines: Line) -> StreamQuery:
    """The one streaming query in some lines."""
    (query,) = log.application([log.started(), *lines]).streams.queries.values()
    return query


def test_batches_count_whether_they_ran_jobs_or_not() -> None:
    """As where a sink keeps nothing."""
    query = query_of(started(), line(0), line(1), ended(error="no"))
    assert [sample.batches for sample in query.history.all] == [1, 1]
    assert (query.name, query.runs, query.started, query.error) == ("orders", 1, 1000, "no")


def test_a_trigger_that_found_nothing_is_no_batch() -> None:
    """Spark before 3.5 reports it like a batch, with the number of the next one."""
    idle: Line = {"durationMs": {"latestOffset": 2}}
    query = query_of(started(), line(0), line(1, **idle), line(1), line(2, **idle))
    assert [sample.phases_ms for sample in query.history.all] == [{"addBatch": 300, "walCommit": 40}] * 2


def test_a_batch_counts_once() -> None:
    """Also where the log has its end twice."""
    query = query_of(started(), line(0), line(0, batchDuration=500), line(1))
    assert sum(sample.batches for sample in query.history.all) == 2


def test_a_restart_goes_on_with_the_history() -> None:
    """Its first batch may be the last of the run before, once more; the end of the old run may come late."""
    query = query_of(started(), line(0), line(1), started("run-2"), ended(), line(1, "run-2"))
    assert (query.runs, query.run, query.ended) == (2, "run-2", None)
    assert sum(sample.batches for sample in query.history.all) == 3


def test_the_time_between_two_runs_is_known() -> None:
    """From the last event of one to the start of the next; only the last of many, in bounded memory."""
    again = started("run-2", "1970-01-01T00:00:09.000Z")
    assert list(query_of(started(), line(0), ended(), again, line(1, "run-2")).stops) == [(2400, 9000)]
    query = StreamQuery("query-1")
    for number in range(1000):
        begun = datetime.datetime.fromtimestamp(10 * number, datetime.UTC)
        query.begin(QueryStarted("query-1", f"{number}", started_at=begun))
        query.end(QueryTerminated("query-1", f"{number}"), 10_000 * number + 5000)
    assert (len(query.stops), query.stops[-1]) == (MAX_STOPS, (9_985_000, 9_990_000))


def test_a_log_that_lacks_the_start_has_the_history_all_the_same() -> None:
    """As one that was compacted."""
    query = query_of(line(7), line(8))
    assert (query.runs, query.started, sum(sample.batches for sample in query.history.all)) == (1, None, 2)


def test_a_property_of_its_jobs_tells_the_trigger() -> None:
    """The events of Spark do not."""
    properties = {"sql.streaming.queryId": "query-1", "streaming.sql.batchId": "0"}
    job = log.job(0, [], **properties, **{"spark.sparkApp.streaming.trigger": "10 seconds"})
    query = query_of(started(), job, line(0))
    assert (query.trigger.interval_ms, query.trigger.is_inferred) == (10_000, False)


def test_settings_are_those_of_the_last_batch() -> None:
    """What the session of the query has changed."""
    batch = {"jobGroupId": "run-1", "description": "orders\nid = query-1\nrunId = run-1\nbatch = 0"}
    query = query_of(started(), log.query(0) | batch | {"modifiedConfigs": {"spark.a": "b"}}, line(0))
    assert query.settings == {"spark.a": "b"}


def test_a_month_of_batches_needs_no_more_room_than_an_hour() -> None:
    """The sums stay exact, and the samples in order."""
    query, number = StreamQuery("query-1"), 10_000
    for batch in range(number):
        query.add(progress(batch, rows=batch), None)
    samples = query.history.all
    assert len(samples) <= 2 * MAX_SAMPLES
    assert sum(sample.batches for sample in samples) == number
    assert sum(sample.rows or 0 for sample in samples) == sum(range(number))
    assert all(one.ended <= other.started for one, other in pairwise(samples))
    total = together(samples)
    assert total is not None
    assert (total.started, total.ended, total.rows) == (0, 1000 * number - 600, sum(range(number)))
