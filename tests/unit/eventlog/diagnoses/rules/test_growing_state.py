from collections.abc import Sequence

import pytest

from spark_app.eventlog.model.stream_samples import StateSkew
from spark_app.vocabulary.spark_progress import Progress
from tests.unit.eventlog.diagnoses.cases import PROVIDER, ROCKSDB
from tests.unit.eventlog.diagnoses.stream_cases import application, batch, event_time, found, state


def growing(rows: Sequence[int], *, removed: int | None = 0, watermark: int | None = None) -> list[Progress]:
    """Batches after which the state has so many rows; their events get newer by half an hour each."""
    return [
        batch(
            number,
            state=[state(count, removed=removed)],
            event_time={} if watermark is None else event_time(30 * number, 30 * number - watermark),
        )
        for number, count in enumerate(rows, start=40)
    ]


STEADY = range(0, 250_000, 10_000)


def test_state_that_only_grows_is_found_with_its_remedy() -> None:
    """By the operator that holds it."""
    finding = found(application(growing(STEADY)))["growing_state"]
    assert "the state of dedupe grew by 240,000 rows to 240,000" in finding.text
    assert "dropDuplicatesWithinWatermark" in finding.advice
    assert PROVIDER in finding.advice


@pytest.mark.parametrize(("memory", "known"), [(5000, {"state_memory_bytes": 5000}), (0, {})])
def test_growing_state_has_its_memory_where_spark_measures_it(memory: int, known: dict[str, int]) -> None:
    """It reports 0 bytes where it does not."""
    batches = [batch(number, state=[state(rows, memory_bytes=memory)]) for number, rows in enumerate(STEADY, start=40)]
    numbers = found(application(batches))["growing_state"].numbers
    assert {name: value for name, value in numbers.items() if name == "state_memory_bytes"} == known


def test_rocksdb_is_not_proposed_to_whoever_has_it() -> None:
    """The settings of the session say so."""
    assert PROVIDER not in found(application(growing(STEADY), settings={PROVIDER: ROCKSDB}))["growing_state"].advice


def test_a_watermark_that_has_passed_the_first_rows_removes_nothing() -> None:
    """As where its column is not in the key."""
    assert "though the watermark has passed" in found(application(growing(STEADY, watermark=60)))["growing_state"].text


@pytest.mark.parametrize(
    "batches",
    [
        growing(STEADY, watermark=1200),
        growing(STEADY, removed=5),
        growing(STEADY, removed=None),
        growing([min(60_000 * number, 240_000) for number in range(25)]),
        growing(range(0, 25_000, 1000)),
        growing([*range(0, 240_000, 10_000), 200_000]),
        growing(STEADY)[:15],
    ],
    ids=["watermark far behind", "removes", "unknown", "all keys are there", "few rows", "shrinks", "few batches"],
)
def test_state_that_may_be_well_is_not_reported(batches: list[Progress]) -> None:
    """For the reason that the name says."""
    assert "growing_state" not in found(application(batches))


def test_tasks_that_take_about_the_same_are_not_skewed() -> None:
    """One is always the longest."""
    app = application([batch(number) for number in range(20)], skew=StateSkew(1, 300, 100, 200, {3: 1}))
    assert found(app) == {}
