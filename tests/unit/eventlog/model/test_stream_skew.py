"""The skew of a stage with state is what its longest task takes more than the others while cores are idle."""

from typing import Any

from spark_app.eventlog.model.stream_skew import has_state, skew_of
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import stage, task

RDD: dict[str, Any] = {"RDD ID": 1, "Name": "StateStoreRDD", "Number of Partitions": 3}


def of_a_stage(seconds: list[float], *, rdd: dict[str, Any] = RDD, cores: int = 4) -> Any:
    """A stage whose tasks take so long."""
    tasks = [task(number, length) for number, length in enumerate(seconds)]
    app = log.application(stage(tasks, seconds=max(seconds), cores=cores, **{"RDD Info": [rdd]}))
    return app.stages[0, 0]


def test_the_longest_partition_is_hot() -> None:
    """By its number, which is that of its task."""
    skew = skew_of(of_a_stage([0.2, 2.2, 0.4]))
    assert skew is not None
    assert (skew.stages, skew.longest_ms, skew.median_ms, skew.hot) == (1, 2200, 400, {1: 1})
    assert 0 < skew.excess_ms <= 1800


def test_a_long_task_costs_nothing_while_all_cores_work() -> None:
    """As with one core."""
    skew = skew_of(of_a_stage([0.2, 2.2, 0.4], cores=1))
    assert skew is None or skew.excess_ms == 0


def test_a_stage_without_state_has_no_skew_of_state() -> None:
    """The reader of a state writes none."""
    other = of_a_stage([0.2, 2.2], rdd=RDD | {"Name": "MapPartitionsRDD"})
    assert (has_state(other), skew_of(other)) == (False, None)


def test_one_partition_is_not_skewed() -> None:
    """There is no other to compare it with."""
    assert skew_of(of_a_stage([2.2])) is None
