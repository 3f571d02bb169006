from typing import Any, Final

import pytest

from spark_app.vocabulary import names
from spark_app.vocabulary.names import Metric
from spark_app.vocabulary.stream_measurements import measurements
from tests.unit.vocabulary.stream_progresses import TOPIC, progress, source

MIDNIGHT: Final = 1767225600.0
"""2026-01-01 in UTC."""


def measured(**changes: Any) -> dict[tuple[Metric, tuple[str, ...]], float]:
    """What a progress with other values measures, by metric and labels."""
    return {(each.metric, tuple(each.labels.values())): each.value for each in measurements(progress(**changes))}


def test_a_micro_batch_has_its_duration_its_end_and_its_phases() -> None:
    """Phases are those of the catalogue, so that a new key of Spark is no new series; the whole is no phase."""
    values = measured()
    assert values[names.STREAM_BATCHES, ()] == 1
    assert values[names.STREAM_BATCH_DURATION, ()] == 2
    assert values[names.STREAM_LAST_BATCH, ()] == MIDNIGHT + 2
    phases = {labels[0]: value for (metric, labels), value in values.items() if metric == names.STREAM_PHASE_DURATION}
    assert phases == {"addBatch": 1.5, "commitOffsets": 0.1, "latestOffset": 0.05, "other": 0.005}


def test_state_is_that_of_all_operators() -> None:
    """Rows, memory, commits and late rows are added up over the stateful operators."""
    values = measured()
    assert values[names.STREAM_STATE_ROWS, ()] == 75
    assert values[names.STREAM_STATE_MEMORY, ()] == 5600
    assert values[names.STREAM_STATE_COMMIT, ()] == pytest.approx(0.42)
    assert values[names.STREAM_LATE, ()] == 3


def test_memory_of_a_state_that_spark_does_not_measure_is_unknown() -> None:
    """Spark 4.0 reports 0 bytes of a bounded RocksDB with any number of rows; an operator without rows adds no zero."""
    states = [{"operatorName": "dedupe", "numRowsTotal": rows, "memoryUsedBytes": 0} for rows in (7000, 0)]
    values = measured(stateOperators=states)
    assert (names.STREAM_STATE_MEMORY, ()) not in values
    assert values[names.STREAM_STATE_ROWS, ()] == 7000


def test_a_query_without_state_measures_none() -> None:
    """Neither 0 rows of state nor 0 late rows: nothing could be late."""
    stateful = {names.STREAM_STATE_ROWS, names.STREAM_STATE_MEMORY, names.STREAM_STATE_COMMIT, names.STREAM_LATE}
    assert stateful.isdisjoint({metric for metric, _ in measured(stateOperators=[])})


def test_rates_of_nothing_are_not_measured() -> None:
    """A micro-batch without rows, which only advances the watermark, has no rate, and the first has no input rate."""
    rates = {names.STREAM_INPUT_RATE: 20.5, names.STREAM_PROCESSED_RATE: 50.0}
    assert {metric: value for (metric, _), value in measured().items() if metric in rates} == rates
    without_rows = measured(sources=source(None, None, 0), inputRowsPerSecond=0.0, processedRowsPerSecond=0.0)
    assert rates.keys().isdisjoint({metric for metric, _ in without_rows})
    assert (names.STREAM_INPUT_RATE, ()) not in measured(inputRowsPerSecond=0.0)


def test_watermark_delay_is_the_distance_from_the_newest_event() -> None:
    """It is unknown without events, and before the first watermark, which Spark gives as the epoch."""
    assert measured()[names.STREAM_WATERMARK_DELAY, ()] == 600
    for event_time in (
        {"watermark": "2025-12-31T23:49:50.000Z"},
        {"max": "2025-12-31T23:59:50.000Z", "watermark": "1970-01-01T00:00:00.000Z"},
        {},
    ):
        assert (names.STREAM_WATERMARK_DELAY, ()) not in measured(eventTime=event_time)


def test_records_with_unknown_fields_are_counted_where_the_query_observes_them() -> None:
    """Over all topics; a query that does not look for them has no count, not one of 0."""
    assert measured()[names.STREAM_UNKNOWN_FIELDS, ()] == 2
    both = {"rows": {"unknown_fields": 2}, "rows of clicks": {"unknown_fields": 1}}
    assert measured(observedMetrics=both)[names.STREAM_UNKNOWN_FIELDS, ()] == 3
    assert (names.STREAM_UNKNOWN_FIELDS, ()) not in measured(observedMetrics={})
    assert (names.STREAM_UNKNOWN_FIELDS, ()) not in measured(observedMetrics={"rows": None})


def test_lag_in_records_is_measured_by_topic() -> None:
    """Of the topics whose source says so."""
    sources = source({TOPIC: {"0": 9}, "clicks": {"0": 7}}, {TOPIC: {"0": 9}, "clicks": {"0": 2}})
    values = measured(sources=sources)
    lags = {labels: value for (metric, labels), value in values.items() if metric == names.STREAM_LAG_RECORDS}
    assert lags == {(TOPIC,): 0, ("clicks",): 5}
    assert names.STREAM_LAG_RECORDS not in {metric for metric, _ in measured(sources=source(None, {"logOffset": 3}))}
