import pytest

from spark_app.eventlog.model.stream_samples import StateSkew
from spark_app.vocabulary.spark_progress import Progress
from tests.unit.eventlog.diagnoses.cases import PROVIDER, ROCKSDB
from tests.unit.eventlog.diagnoses.stream_cases import application, batch, found, state

CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


def partitions(number: int, *, updated: int = 10, batches: int = 20) -> list[Progress]:
    """Batches with so many partitions of state, which take a second of tasks to commit."""
    held = state(1000, partitions=number, commit_ms=1000)
    held.updated = updated
    return [batch(batch_number, state=[held]) for batch_number in range(batches)]


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


@pytest.mark.parametrize(
    ("batches", "number", "updated", "is_found"),
    [(5, 200, 1000, True), (1, 200, 1000, True), (1, 80, 10, False), (5, 16, 10, False), (5, 200, 100_000, False)],
    ids=["five", "one", "one, fewer partitions", "five, fewer partitions", "five, more rows"],
)
def test_few_batches_have_to_be_clearer(batches: int, number: int, updated: int, *, is_found: bool) -> None:
    """A backfill of five batches may run for an hour; on two slots, 200 partitions are many for it."""
    app = application(partitions(number, updated=updated, batches=batches))
    assert ("many_state_partitions" in found(app)) == is_found
