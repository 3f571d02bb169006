import time
from pathlib import Path
from typing import Final

import pytest

from spark_app.runs import stream_status
from spark_app.runs.liveness import LIVENESS_LOCK, hold_liveness_lock
from spark_app.runs.stream_status import StreamStatus, idle, progressed
from spark_app.vocabulary.stream_lag import Lag
from tests.unit.vocabulary.stream_progresses import progress, source

FILES: Final = source(None, {"logOffset": 1})
QUERY: Final = StreamStatus("streaming.events", "running", run_id="r")


def test_a_status_is_that_of_the_last_batch() -> None:
    """With the counts of the run, and one more micro-batch."""
    status = progressed(progressed(QUERY, progress(), {"read": 100}), progress(), {"read": 200, "late": 6})
    assert (status.batches, status.counts) == (2, {"read": 200, "late": 6})
    assert (status.input_rate, status.batch_ms, status.state_rows) == (20.5, 2000, 75)
    assert (status.lag_records, status.lag_seconds) == (30, 10)
    assert status.watermark == "2025-12-31T23:49:50.000Z"


def test_rows_written_are_of_the_time_of_their_batch() -> None:
    """Those of each batch, as they are counted: Spark reports none for a query whose function writes."""
    first = progressed(QUERY, progress(), {"published": 10})
    second = progressed(first, progress(), {"published": 16})
    assert (first.output_rate, second.output_rate) == (5, 3)
    assert progressed(QUERY, progress(), {"read": 1}).output_rate is None


def test_what_spark_does_not_report_is_unknown() -> None:
    """Files have no offsets, a query without state has none, and the start of Unix time is no watermark."""
    first = {"watermark": "1970-01-01T00:00:00.000Z"}
    bare = progress(sources=FILES, eventTime=first, stateOperators=[], observedMetrics={}, inputRowsPerSecond=0.0)
    status = progressed(QUERY, bare, {})
    assert (status.lag_records, status.lag_seconds, status.state_rows) == (None, None, None)
    assert (status.watermark, status.input_rate) == (None, None)


def test_a_query_that_finds_nothing_to_read_has_no_lag_and_no_rates() -> None:
    """Also where its source does not say how much there is; before its first micro-batch nothing is known."""
    status = idle(progressed(QUERY, progress(sources=FILES), {"published": 10}))
    assert (status.lag_records, status.lag_seconds) == (0, 0)
    assert (status.input_rate, status.processed_rate, status.output_rate) == (None, None, None)
    assert idle(QUERY) == QUERY


def test_the_record_of_a_run_has_what_is_known() -> None:
    """What is unknown is missing, and no 0."""
    known = stream_status.facts(progressed(QUERY, progress(), {}))
    assert known == {"batches": 1, "restarts": 0, "lag_records": 30, "lag_seconds": 10}
    assert stream_status.facts(QUERY) == {"batches": 0, "restarts": 0}


def test_a_status_that_cannot_be_written_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The query goes on."""
    (tmp_path / "file").touch()
    stream_status.write(tmp_path / "file", QUERY)
    assert "cannot write the status" in caplog.text


def test_queries_run_while_their_process_lives(tmp_path: Path) -> None:
    """In the order of their names; one that ended is not shown, nor one that was killed and left its lock file."""
    for name in ("b", "a", "killed"):
        (tmp_path / name).mkdir()
        stream_status.write(tmp_path / name, StreamStatus(f"streaming.{name}", "idle", run_id=name))
    (tmp_path / "killed" / LIVENESS_LOCK).touch()
    assert stream_status.running(tmp_path) == []
    with hold_liveness_lock(tmp_path / "a", note=print), hold_liveness_lock(tmp_path / "b", note=print):
        assert [status.pipeline for status in stream_status.running(tmp_path)] == ["streaming.a", "streaming.b"]


def test_queries_that_were_announced_are_starting(tmp_path: Path) -> None:
    """Until their own runs say more, also if these have ended; the announcement of a killed process is gone."""
    (tmp_path / f"{stream_status.ANNOUNCED}killed").write_text("streaming.x", encoding="utf-8")
    with stream_status.announced(tmp_path, ["streaming.a", "streaming.b"]):
        found = [(each.pipeline, each.state) for each in stream_status.running(tmp_path)]
        assert found == [("streaming.a", "starting"), ("streaming.b", "starting")]
        (tmp_path / "a").mkdir()
        begun = StreamStatus("streaming.a", "failed", run_id="a", started_at=time.time() + 1)
        stream_status.write(tmp_path / "a", begun)
        assert [each.pipeline for each in stream_status.running(tmp_path)] == ["streaming.b"]
    assert stream_status.running(tmp_path) == []
    assert list(tmp_path.glob(f"{stream_status.ANNOUNCED}*")) == []


def test_lag_of_kafka_is_what_its_brokers_say() -> None:
    """Unknown is unknown, and no 0: while they do not answer, and in time where one timestamp is not known."""
    status = stream_status.lagging(StreamStatus("streaming.events", "running"), Lag({"a": 3, "b": 0}, {"a": 90}), 100)
    assert (status.lag_records, status.lag_seconds) == (3, 10)
    unknown = stream_status.lagging(status, None, 100)
    assert (unknown.lag_records, unknown.lag_seconds) == (None, None)
    partly = stream_status.lagging(status, Lag({"a": 3, "b": 1}, {"a": 90, "b": None}), 100)
    assert (partly.lag_records, partly.lag_seconds) == (4, None)
