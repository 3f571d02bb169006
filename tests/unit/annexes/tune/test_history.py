import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pytest
from msgspec.structs import replace

from spark_app.annexes.tune.history import predicted, proposals
from spark_app.eventlog.comparison.profile import RunProfile
from tests.unit.eventlog.made import Run, Stage, Task

MIB: Final = 1 << 20
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def run(
    *, shuffled: int | None = None, peak: int | None = None, spilled: int = 0, settings: Mapping[str, str] = NOTHING
) -> RunProfile:
    """A run of one stage of 10 s on two cores; sizes in MiB."""
    stage = Stage("sum", 0, 10_000, [Task(0, 10_000, cpu=9000)])
    profile = Run(10_000, [stage], settings={"spark.master": "yarn", **settings}).summary
    (group,) = profile.groups
    group = replace(group, volume=replace(group.volume, disk_spilled=spilled))
    return replace(
        profile,
        groups=[group],
        largest_shuffle_bytes=None if shuffled is None else shuffled * MIB,
        peak_heap_bytes=None if peak is None else peak * MIB,
    )


def test_a_forecast_is_the_prediction_interval_of_the_next_run() -> None:
    """Worked by hand: logarithms of three runs with deviation 0.1, t(2) = 2.920, for one more run."""
    runs = [replace(run(), peak_heap_bytes=round(1e9 * math.exp(each))) for each in (-0.1, 0.0, 0.1)]
    found = predicted(runs, "highest use of the heap")
    half = 2.920 * 0.1 * math.sqrt(1 + 1 / 3)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((1e9 * math.exp(-half), 1e9 * math.exp(half)), rel=1e-6)


def test_fewer_than_three_runs_forecast_nothing() -> None:
    """Nor do runs without the figure."""
    assert proposals([run(shuffled=1), run(shuffled=1)]) == []
    assert predicted([run(), run(), run(peak=1)], "highest use of the heap") is None


def test_a_heap_that_no_run_used_becomes_smaller() -> None:
    """The upper bound of the forecast and a quarter, in steps of 128 MiB; the forecast is about what it will use."""
    (found,) = proposals([run(peak=1000, settings={"spark.executor.memory": "8g"})] * 3)
    assert (found.setting, found.value, found.now) == ("spark.executor.memory", "1408m", "8g")
    assert found.forecast.high == pytest.approx(1000 * MIB, rel=0.1)
    assert found.why == "no run used more than 12% of the heap, and none spilled"


def test_a_heap_that_runs_spilled_from_stays() -> None:
    """What it used less of would make it spill more."""
    assert proposals([run(peak=1000, spilled=1, settings={"spark.executor.memory": "8g"})] * 3) == []


def test_a_full_heap_becomes_larger() -> None:
    """By what the next run may use."""
    (found,) = proposals([run(peak=1000, settings={"spark.executor.memory": "1g"})] * 3)
    assert (found.setting, found.value) == ("spark.executor.memory", "1408m")


def test_small_partitions_become_fewer_and_spilling_ones_more() -> None:
    """By the size that the largest shuffle may have."""
    (fewer,) = proposals([run(shuffled=10)] * 3)
    assert (fewer.setting, fewer.value, fewer.now) == ("spark.sql.shuffle.partitions", "2", None)
    (more,) = proposals([run(shuffled=40_000, spilled=5)] * 3)
    assert more.value == "670"
    assert more.why.startswith("3 of 3 runs spilled")
    assert proposals([run(shuffled=40_000)] * 3) == []


def test_idle_executors_become_fewer() -> None:
    """The busy ones and one more."""
    (found,) = proposals([run(settings={"spark.executor.instances": "10"})] * 3)
    assert (found.setting, found.value, found.figure) == ("spark.executor.instances", "7", "time of tasks")
