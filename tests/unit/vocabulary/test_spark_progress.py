import json
import time
from typing import Any, Final

import msgspec
import pytest

from spark_app.vocabulary.spark_progress import offsets, parse, unix_time
from tests.unit.vocabulary.stream_progresses import INPUT, TOPIC, progress, source

MIDNIGHT: Final = 1767225600.0
"""2026-01-01 in UTC."""
FILES: Final = source(None, {"logOffset": 3})
READ_ALL: Final = source({TOPIC: {"0": 5}}, {TOPIC: {"0": 5}})


def logged(**columns: tuple[str, Any]) -> dict[str, Any]:
    """An observed row as an event log has it: the values by their columns, with types."""
    fields = [{"name": name, "type": kind} for name, (kind, _) in columns.items()]
    return {"values": [value for _, value in columns.values()], "schema": {"type": "struct", "fields": fields}}


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"timestamp": "today", "batchId": 1, "durationMs": {"addBatch": 1}}', '{"batchId": []}']
)
def test_a_text_that_is_no_progress_is_refused(text: str) -> None:
    """Whoever reads it decides what that means: the listener of the queries logs it."""
    with pytest.raises(msgspec.MsgspecError):
        parse(text)


def test_a_trigger_without_a_micro_batch_is_no_micro_batch() -> None:
    """Spark reports it with the figures of the last one."""
    assert progress().has_batch
    assert not progress(durationMs={"latestOffset": 3, "triggerExecution": 4}).has_batch


def test_a_clock_that_was_set_back_gives_no_negative_time() -> None:
    """Spark measures with the clock of the machine."""
    found = progress(batchDuration=-5, durationMs={"addBatch": -5, "walCommit": 2})
    assert (found.duration_ms, found.phases_ms, found.ended - found.started) == (0, {"addBatch": 0, "walCommit": 2}, 0)


def test_an_event_log_and_a_listener_say_the_same() -> None:
    """In a log offsets are texts, rates may be `NaN`, and observed rows have values, and a schema with their names."""
    live = progress(observedMetrics={INPUT: {"newest": MIDNIGHT + 0.5, "records": 3}})
    sources = source(json.dumps({TOPIC: {"0": 80, "1": 50}}), json.dumps({TOPIC: {"0": 60, "1": 40}}))
    row = logged(newest=("double", MIDNIGHT + 0.5), records=("long", 3))
    log = progress(sources=sources, inputRowsPerSecond="NaN", observedMetrics={INPUT: row})
    assert (log.lag, log.observed, log.lag_seconds) == (live.lag, live.observed, live.lag_seconds)
    assert log.input_rate is None
    as_timestamp = progress(observedMetrics={INPUT: logged(newest=("timestamp", 1000 * MIDNIGHT + 500))})
    assert as_timestamp.newest_records == {TOPIC: MIDNIGHT + 0.5}


@pytest.mark.parametrize("row", [None, {"values": [1], "schema": None}, {"values": 1, "schema": {}}])
def test_a_row_that_cannot_be_read_observed_nothing(row: object) -> None:
    """A log may be damaged, and a row may have no schema."""
    assert progress(observedMetrics={INPUT: row}).observed == {INPUT: {}}


@pytest.mark.parametrize(
    ("latest", "end", "lag"),
    [
        ({TOPIC: {"0": 80, "1": 50}}, {TOPIC: {"0": 60, "1": 40}}, {TOPIC: 30}),
        ({TOPIC: {"0": 60}}, {TOPIC: {"0": 60}}, {TOPIC: 0}),
        ({TOPIC: {"0": 60, "1": 5}}, {TOPIC: {"0": 60}}, {TOPIC: 5}),
        ({TOPIC: {"0": 9}, "clicks": {"0": 7}}, {TOPIC: {"0": 9}, "clicks": {"0": 2}}, {TOPIC: 0, "clicks": 5}),
        ({TOPIC: {"0": 9}, "a new topic": {"0": 7}}, {TOPIC: {"0": 9}}, {TOPIC: 0}),
        (f'{{"{TOPIC}": {{"0": 80}}}}', f'{{"{TOPIC}": {{"0": 60}}}}', {TOPIC: 20}),
        (None, {TOPIC: {"0": 60}}, None),
        (None, {"logOffset": 3}, None),
        ({"sourceVersion": 1, "index": 3}, {"sourceVersion": 1, "index": 2}, None),
        (4, 3, None),
        ("4", "3", None),
        ('{"logOffset": null}', "nothing that {", None),
    ],
    ids=[
        "kafka", "equal", "a new partition", "two topics", "a new topic", "as text", "no latest offset", "files",
        "a Delta table", "a number", "a number as text", "other text",
    ],
)  # fmt: skip
def test_lag_in_records_is_the_distance_of_offsets(latest: object, end: object, lag: dict[str, int] | None) -> None:
    """A source that does not say how much there is has no lag, not one of 0."""
    assert progress(sources=source(latest, end)).lag == lag


@pytest.mark.parametrize("offset", [None, "8", '{"logOffset":3}', "{", {"a": 1}, 5])
def test_offsets_of_other_sources_are_none_of_kafka(offset: object) -> None:
    """They count no records."""
    assert offsets(offset) is None


def test_duplicates_are_those_that_operators_dropped() -> None:
    """Without such an operator they are unknown."""
    assert progress().rows_duplicate == 7
    assert progress(stateOperators=[]).rows_duplicate is None


def test_rows_written_are_those_observed_or_those_of_the_sink() -> None:
    """The sink of Delta and of files says -1, which is no number of rows."""
    assert progress().rows_written is None
    assert progress(sink={"numOutputRows": 90}).rows_written == 90
    assert progress(observedMetrics={"written": {"rows": 80}}).rows_written == 80


def test_rows_read_are_unknown_if_a_source_does_not_say() -> None:
    """A part of the sources would look like all of them."""
    assert progress(sources=[*source(None, None, 3), *source(None, None, 4)]).rows_read == 7
    assert progress(sources=[*source(None, None, 3), *source(None, None, None)]).rows_read is None


@pytest.mark.parametrize(
    ("observed", "newest"),
    [
        ({INPUT: {"newest": "2026-01-01 00:00:00"}}, {TOPIC: MIDNIGHT}),
        ({INPUT: {"newest": "2026-01-01T01:00:00.500+01:00"}}, {TOPIC: MIDNIGHT + 0.5}),
        ({INPUT: {"newest": MIDNIGHT + 0.25}}, {TOPIC: MIDNIGHT + 0.25}),
        ({INPUT: {"newest": None}}, {TOPIC: None}),
        ({INPUT: None}, {}),
        ({INPUT: {"records": 5}}, {}),
        ({INPUT: {"newest": "yesterday"}}, {}),
    ],
    ids=["timestamp", "ISO 8601", "Unix time", "no record", "no row", "not observed", "no time"],
)
def test_the_newest_record_of_each_topic_is_observed(observed: object, newest: dict[str, float | None]) -> None:
    """Spark writes a timestamp in the zone of the session, which is UTC, without saying so."""
    assert progress(observedMetrics=observed).newest_records == newest


def test_a_time_without_a_zone_is_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the driver runs: the zone of the session is UTC."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        assert unix_time("2026-01-01 00:00:00") == MIDNIGHT
    time.tzset()


def test_what_is_unread_is_known_by_offsets_or_by_a_batch_without_records_of_a_topic() -> None:
    """A trigger takes records of each source that has any; of a source that gave some, more may be there."""
    assert progress().is_unread == {TOPIC: True}
    assert progress(sources=READ_ALL).is_unread == {TOPIC: False}
    assert progress(sources=FILES).is_unread == {}
    observed = {"input clicks": {"newest": None}, INPUT: {"newest": "2026-01-01 00:00:00"}}
    assert progress(sources=FILES, observedMetrics=observed).is_unread == {"clicks": False}


def test_lag_in_seconds_is_the_age_of_the_newest_record_when_the_batch_ended() -> None:
    """It is 0 where nothing is unread, and unknown where nothing was observed, or the record is from the future."""
    assert progress().lag_seconds == {TOPIC: 10}
    assert progress(sources=READ_ALL).lag_seconds == {TOPIC: 0}
    assert progress(sources=FILES).lag_seconds == {TOPIC: 10}
    assert progress(observedMetrics={}).lag_seconds == {}
    assert progress(observedMetrics={INPUT: {"newest": MIDNIGHT + 60}}).lag_seconds == {}
    quiet = {INPUT: {"newest": None}}
    assert progress(sources=FILES, observedMetrics=quiet).lag_seconds == {TOPIC: 0}
