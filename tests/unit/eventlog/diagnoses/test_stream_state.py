"""Rules about state fire on what their text says, and not on what looks like it."""

from collections.abc import Sequence

import pytest

from spark_app.eventlog.model.stream_samples import StateSkew
from spark_app.telemetry.spark_progress import Progress
from tests.unit.eventlog.diagnoses.stream_cases import application, batch, event_time, found, state

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


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


def test_the_same_partition_is_the_longest() -> None:
    """In each batch."""
    app = application([batch(number) for number in range(20)], skew=StateSkew(1, 900, 100, 700, {3: 1}))
    finding = found(app)["skewed_state"]
    assert "partition 3 was the longest in 100 % of them" in finding.text
    assert finding.cost_ms == 20 * 700


def test_tasks_that_take_about_the_same_are_not_skewed() -> None:
    """One is always the longest."""
    app = application([batch(number) for number in range(20)], skew=StateSkew(1, 300, 100, 200, {3: 1}))
    assert found(app) == {}


def partitions(number: int, *, updated: int = 10) -> list[Progress]:
    """Batches with so many partitions of state, which take a second of tasks to commit."""
    held = state(1000, partitions=number, commit_ms=1000)
    held.updated = updated
    return [batch(batch_number, state=[held]) for batch_number in range(20)]


def test_many_partitions_cost_their_commits() -> None:
    """On two slots, but for one partition of each slot."""
    app = application(partitions(200), settings={"spark.sql.shuffle.partitions": "200", PROVIDER: ROCKSDB})
    finding = found(app)["many_state_partitions"]
    assert finding.cost_ms == pytest.approx(20 * 1000 / 2 * (1 - 2 / 200))
    assert "spark.sql.shuffle.partitions (now 200)" in finding.advice
    assert CHANGELOG in finding.advice


def test_many_partitions_cost_the_median_task_of_their_stages() -> None:
    """Of 40 stages with a median task of 30 ms, 198 of 200 partitions are too many; commits alone are the least."""
    app = application(partitions(200), skew=StateSkew(2, 80, 60, 0, {}))
    finding = found(app)["many_state_partitions"]
    assert finding.cost_ms == pytest.approx(20 * 60 * 198 / 2)
    assert finding.cost_low_ms == pytest.approx(20 * 1000 / 2 * (1 - 2 / 200))


def test_a_changelog_is_not_proposed_to_whoever_has_it() -> None:
    """Nor to whoever has no RocksDB."""
    for settings in ({}, {PROVIDER: ROCKSDB, CHANGELOG: "true"}):
        finding = found(application(partitions(200), settings=settings))["many_state_partitions"]
        assert CHANGELOG not in finding.advice


@pytest.mark.parametrize(
    ("number", "updated", "cores"), [(8, 10, 2), (200, 200_000, 2), (200, 10, 64)], ids=["few", "full", "many cores"]
)
def test_partitions_that_are_worth_it_are_not_too_many(number: int, updated: int, cores: int) -> None:
    """Each has its rows, or its core."""
    app = application(partitions(number, updated=updated), cores=cores)
    assert "many_state_partitions" not in found(app)
