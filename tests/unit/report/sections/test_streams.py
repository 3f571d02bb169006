"""Streaming queries over time: what they did, when they were idle and when they did not run, in bounded size."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.eventlog.reader import Reading, read
from spark_app.report import page, run_info
from spark_app.report.charts import Chart
from spark_app.report.limits import Limits
from spark_app.report.scope import scope
from spark_app.report.sections.streams import Stream, Streams, streams
from tests.eventlogs.record import VERSIONS
from tests.eventlogs.record_streams import of_version
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line
from tests.unit.report import made
from tests.unit.report.conftest import TRACE, Read, record_of

BEGUN: Final = [log.started(), made.stream_event("Started", name="orders", timestamp="1970-01-01T00:00:10.000Z")]


def section(reading: Reading, **limits: int) -> Streams:
    """The section of a whole application."""
    return streams(scope(reading.app, None), Limits(**limits))


def stream(read: Read, lines: Iterable[Line]) -> Stream:
    """The one query in lines that end after 100 seconds."""
    (only,) = section(read([*BEGUN, *lines, log.ended(100_000)])).shown
    return only


def chart(shown: Stream, title: str) -> Chart:
    """The chart with a title."""
    (found,) = [each for each in shown.charts if each.title == title]
    return found


def every_second(first: int, last: int, **more: Any) -> list[Line]:
    """Batches of 500 ms, one a second, from one second to before another."""
    return [made.stream_batch(second - 10, second * 1000, **more) for second in range(first, last)]


def test_an_application_without_streams_has_no_section(reading: Read, tmp_path: Path) -> None:
    """Nor a tab for it."""
    done = reading([log.started(), log.ended()])
    assert section(done).shown == []
    assert b'id="streams"' not in page.write(done, output=tmp_path / "r.html").path.read_bytes()


def test_sums_are_over_all_batches(reading: Read) -> None:
    """Of a query that counts what it reads; what it does not count is not known."""
    shown = stream(reading, every_second(10, 20))
    assert shown.total is not None
    assert (shown.total.batches, shown.rows_read, shown.rows_written, shown.lag_records) == (10, 100, None, None)
    assert shown.rate == pytest.approx(20)
    assert {each.title for each in shown.charts} == {"Rows per second", "Time of a batch"}


def test_a_query_whose_first_batch_fails_is_listed(reading: Read, tmp_path: Path) -> None:
    """With its error, and without numbers that nobody knows."""
    done = reading([*BEGUN, made.stream_event("Terminated", exception="no worker"), log.ended(100_000)])
    (shown,) = section(done).shown
    assert (shown.status, shown.total, shown.charts, shown.idle) == ("failed", None, [], [])
    content = page.write(done, output=tmp_path / "r.html").path.read_text(encoding="utf-8")
    assert "no worker" in content
    assert "No batch has ended since the start at 1970-01-01 00:00:10Z" in content


def test_rows_per_second_are_of_the_time_between_batches(reading: Read) -> None:
    """Waiting for a trigger is no idle time: the rows came in meanwhile."""
    shown = stream(reading, every_second(10, 100))
    assert chart(shown, "Rows per second").high == pytest.approx(10)
    assert shown.idle == []


def test_a_time_without_batches_is_idle_and_no_zero(reading: Read) -> None:
    """The line ends where the last batch does, and the last batch before it has the rate of the others."""
    shown = stream(reading, [*every_second(10, 20), *every_second(60, 100)])
    (idle,) = shown.idle
    assert idle == pytest.approx(((19.5 - 10) / 90 * 100, (60 - 19.5) / 90 * 100), abs=0.01)
    rates = chart(shown, "Rows per second")
    assert rates.high == pytest.approx(10)
    assert "100" not in rates.series[0].path.split("M")[1].replace("H100", "")
    assert rates.series[0].path.count("M") == 2


def test_an_idle_time_within_a_sample_is_not_lost(reading: Read) -> None:
    """A month has more batches than there are samples; a pause is drawn all the same."""
    early = [made.stream_batch(number, 10_000 + 20 * number, ms=10) for number in range(1500)]
    late = [made.stream_batch(1500 + number, 70_000 + 20 * number, ms=10) for number in range(1501)]
    shown = stream(reading, [*early, *late])
    assert len(shown.query.history.all) < 600
    (idle,) = [(left, width) for left, width in shown.idle if width > 5]
    assert idle == pytest.approx(((40 - 10) / 90 * 100, 30 / 90 * 100), abs=0.1)


def test_a_time_between_two_runs_is_no_idle_time(reading: Read) -> None:
    """The query did not run; nor does it after its end."""
    again = made.stream_event("Started", run="run-2", name="orders", timestamp="1970-01-01T00:01:00.000Z")
    batches = every_second(60, 80, run="run-2")
    ended = made.stream_event("Terminated", run="run-2", exception="boom")
    shown = stream(reading, [*every_second(10, 20), made.stream_event("Terminated"), again, *batches, ended])
    assert (shown.status, shown.mood, shown.idle) == ("failed", "bad", [])
    assert len(shown.stops) == 1
    assert shown.stops[0] == pytest.approx(((19.5 - 10) / 69.5 * 100, 40.5 / 69.5 * 100), abs=0.01)


def test_the_phases_of_a_batch_add_up_to_its_time(reading: Read) -> None:
    """What Spark names none of its parts is the rest."""
    times = chart(stream(reading, every_second(10, 20)), "Time of a batch")
    last = {series.name: series.last for series in times.series}
    assert (last["work"], last["checkpoint"], last["other"], times.high) == (400, 460, 500, 500)


def test_lag_watermark_and_state_are_drawn_where_they_are_known(reading: Read) -> None:
    """By topic; behind the clock at the end of each batch; over all stateful operators."""
    source = {"numInputRows": 1, "endOffset": '{"t":{"0":5}}', "latestOffset": '{"t":{"0":12}}'}
    more: dict[str, Any] = {
        "sources": [source],
        "eventTime": {"max": "1970-01-01T00:00:09.000Z", "watermark": "1970-01-01T00:00:04.000Z"},
        "stateOperators": [{"numRowsTotal": 5, "memoryUsedBytes": 7}, {"numRowsTotal": 6, "memoryUsedBytes": 8}],
    }
    shown = stream(reading, [made.stream_batch(0, 10_000, **more)])
    assert shown.lag_records == 7
    last = {each.title: {series.name: series.last for series in each.series} for each in shown.charts}
    assert last["Lag in records"] == {"t": 7}
    assert last["Event time behind the clock"] == {"newest event": 1500, "watermark": 6500}
    assert last["Rows in the state"] == {"rows": 11}
    assert last["Memory of the state"] == {"memory": 15}


def test_memory_of_a_state_that_spark_does_not_measure_is_not_drawn(reading: Read) -> None:
    """Spark 4.0 reports 0 bytes of a bounded RocksDB: the batches before them have the last known value."""
    states = [[{"numRowsTotal": 7000, "memoryUsedBytes": memory}] for memory in (9, 0)]
    known, unknown = (made.stream_batch(n, 10_000 * n, stateOperators=state) for n, state in enumerate(states, start=1))
    shown = stream(reading, [known, unknown])
    charts = {each.title: each for each in shown.charts}
    assert {series.name: series.last for series in charts["Memory of the state"].series} == {"memory": 9}
    assert shown.state("memory_bytes") is None
    assert shown.state_rows == 7000


def test_batches_that_violate_expectations_are_marked(reading: Read) -> None:
    """A query whose rows have met all of them, or that has none, has no chart of violations."""

    def judged(second: int, violations: int) -> Line:
        row = {"values": [9, violations, 0], "schema": {"fields": [{"name": name} for name in ("checked", "a", "b")]}}
        return made.stream_batch(second, second * 1000, observedMetrics={"expectations events": row})

    shown = stream(reading, [judged(second, 2 if second == 15 else 0) for second in range(10, 20)])
    (violations,) = chart(shown, "Violations of expectations").series
    assert (violations.last, chart(shown, "Violations of expectations").high) == (0, 2)
    assert shown.total is not None
    assert shown.total.violations == 2
    for lines in ([judged(10, 0), judged(11, 0)], every_second(10, 12)):
        assert "Violations of expectations" not in [each.title for each in stream(reading, lines).charts]


def test_lag_in_time_is_drawn_where_the_newest_record_was_observed(reading: Read, tmp_path: Path) -> None:
    """By topic, also of files, which say nothing of records; a topic without a record has none."""
    row = {"values": [4.5], "schema": {"fields": [{"name": "newest", "type": "double"}]}}
    quiet = row | {"values": [None]}
    more: dict[str, Any] = {"observedMetrics": {"input files": row, "input quiet": quiet, "rows": row}}
    shown = stream(reading, [made.stream_batch(0, 10_000, **more)])
    assert (shown.lag_records, shown.lag_ms) == (None, 6000)
    assert shown.topics == [("files", None, 6000), ("quiet", None, 0)]
    last = {series.name: series.last for series in chart(shown, "Lag in time").series}
    assert last == {"files": 6000, "quiet": 0}
    done = reading([*BEGUN, made.stream_batch(0, 10_000, **more), log.ended(100_000)])
    content = page.write(done, output=tmp_path / "r.html").path.read_text(encoding="utf-8")
    assert re.search(r'lag of <span class="foreign">files</span>\s*6\.0 s', content)


def test_a_query_is_as_it_ended(reading: Read) -> None:
    """What the log does not tell is not made up."""
    batches = every_second(10, 20)
    assert stream(reading, batches).status == "ended with the application"
    assert stream(reading, [*batches, made.stream_event("Terminated")]).status == "stopped"
    (open_one,) = section(reading([*BEGUN, *batches])).shown
    assert open_one.status == "no end in the log"


def test_a_month_is_drawn_with_as_many_points_as_an_hour(reading: Read, tmp_path: Path) -> None:
    """The page has a bounded size, however many batches there were."""
    month = (made.stream_batch(number, 10_000 + 60_000 * number) for number in range(43_000))
    done = reading([*BEGUN, *month])
    (shown,) = section(done).shown
    assert shown.total is not None
    assert shown.total.batches == 43_000
    assert all(series.path.count("H") <= 2 * Limits().points for each in shown.charts for series in each.series)
    assert page.write(done, output=tmp_path / "r.html").path.stat().st_size < 150_000


def test_only_some_queries_are_listed_and_the_page_says_so(reading: Read, tmp_path: Path) -> None:
    """Those that failed and those with the most batches, in the order of the log."""
    lines = [
        made.stream_batch(batch, 10_000 + 1000 * batch, query=f"q-{number}", run=f"r-{number}")
        for number in range(120)
        for batch in range(1 + number % 3)
    ]
    ended = made.stream_event("Terminated", query="q-0", run="r-0", exception="boom")
    done = reading([log.started(), *lines, ended, log.ended(100_000)])
    shown = section(done, streams=3)
    assert [each.query.id for each in shown.shown] == ["q-0", "q-2", "q-5"]
    assert shown.total == 120
    assert b"100 of 120 streaming queries" in page.write(done, output=tmp_path / "r.html").path.read_bytes()


def test_a_run_has_the_queries_that_had_batches_for_it(reading: Read, run_folder: Path) -> None:
    """An application may serve several runs: the jobs of a batch carry the trace of the run that started the query."""
    record_of(run_folder)
    own = {"sql.streaming.queryId": "query-1", "streaming.sql.batchId": "0", "spark.jobGroup.id": "run-1"}
    job = log.job(0, [], traceparent=f"00-{TRACE}-{'b' * 16}-01", time=10_100, **own)
    other = made.stream_batch(0, 10_000, query="query-2", run="run-2")
    done = reading(
        [*BEGUN, job, log.job_ended(0, time=10_200), made.stream_batch(0, 10_000), other, log.ended(100_000)]
    )
    assert section(done).total == 2
    (shown,) = streams(scope(done.app, run_info.read(run_folder)), Limits()).shown
    assert shown.query.id == "query-1"


def test_a_run_without_a_batch_has_the_query_of_its_name(reading: Read, run_folder: Path) -> None:
    """As where its first batch fails: no job tells the trace."""
    record_of(run_folder, pipeline="orders")
    other = made.stream_event("Started", query="query-2", run="run-2", name="other")
    done = reading([*BEGUN, other, log.ended(100_000)])
    (shown,) = streams(scope(done.app, run_info.read(run_folder)), Limits()).shown
    assert shown.name == "orders"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stream_of_any_spark_is_drawn(version: str) -> None:
    """A stranger's query, from its log alone: what was read, how long it took, its event time and its state."""
    (shown,) = section(read(of_version(version))).shown
    titles = [each.title for each in shown.charts]
    assert titles[:3] == ["Rows per second", "Time of a batch", "Event time behind the clock"]
    assert titles[3:] == ["Rows in the state", "Memory of the state"]
    assert shown.total is not None
    assert (shown.name, shown.total.rows, shown.status) == ("counts", 80, "stopped")


def test_a_name_of_any_kind_breaks_no_page(reading: Read, tmp_path: Path) -> None:
    """Names, ids, topics and errors come from whoever wrote the program."""
    text = made.HOSTILE
    offsets = {
        "numInputRows": 1,
        "endOffset": json.dumps({text: {"0": 5}}),
        "latestOffset": json.dumps({text: {"0": 9}}),
    }
    batch = made.stream_batch(0, 10_000, query=text, run=text, name=text, sources=[offsets])
    ended = made.stream_event("Terminated", query=text, run=text, exception=text)
    content = page.write(reading([log.started(), batch, ended, log.ended(20_000)]), output=tmp_path / "r.html").path
    assert "<script>document" not in content.read_text(encoding="utf-8")
