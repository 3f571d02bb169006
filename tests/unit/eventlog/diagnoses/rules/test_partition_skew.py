import pytest

from spark_app.eventlog.diagnoses import settings_advice
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import EVERY_COST, GIB, SHUFFLED, found, settings, shuffle, stage, task

MIB = 1024**2


def test_skew_costs_the_time_in_which_cores_were_idle() -> None:
    """Eight tasks of a second on four cores, one of them of 41: 40 more than the median, three of four cores idle."""
    tasks = [*(task(number, 1) for number in range(7)), task(7, 41, begin=1)]
    finding = found(stage(tasks, seconds=42))["partition_skew"]
    assert finding.cost_ms == 42_000 - (7 + 41) * 1000 / 4
    assert (finding.stage, finding.severity) == ((0, 0), "warning")
    assert finding.numbers["longest_task_ms"] == 41_000
    assert finding.numbers["median_task_ms"] == 1000
    assert "Stage 0 (collect at job.py:7)" in finding.text


def test_skew_that_delays_nothing_is_none() -> None:
    """A long task beside which all other cores have work until it ends costs no time."""
    others = [task(number, 1, begin=number // 3) for number in range(123)]
    assert not found(stage([*others, task(123, 41)], seconds=41))


def test_skew_of_a_short_task_is_none() -> None:
    """A task of 1.9 s is nobody's problem, were it 190 times the others, and whatever else may be one."""
    tasks = [*(task(number, 0.01) for number in range(7)), task(7, 1.9)]
    assert not found(stage(tasks, seconds=1.9), EVERY_COST)


@pytest.mark.parametrize(("seconds", "is_skewed"), [(31, False), (32, True)])
def test_a_task_is_skewed_from_316_hundredths_of_the_median_on(seconds: int, *, is_skewed: bool) -> None:
    """The ratio must be exceeded, and is enough where the time is worth a finding."""
    tasks = [*(task(number, 10) for number in range(7)), task(7, seconds)]
    assert ("partition_skew" in found(stage(tasks, seconds=seconds + 10), EVERY_COST)) == is_skewed


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"sql_adaptive_enabled": "false"}, "spark.sql.adaptive.enabled is false: set it to true"),
        ({"sql_adaptive_skewJoin_enabled": "false"}, "spark.sql.adaptive.skewJoin.enabled is false: set it to true"),
        ({}, "only above spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes (default 256MB): lower it"),
    ],
    ids=["adaptive execution is off", "splitting is off", "its threshold is too high"],
)
def test_skew_of_a_join_names_what_keeps_spark_from_splitting_it(properties: dict[str, str], words: str) -> None:
    """The switch that is off; with none, the threshold."""
    tasks = [*(task(number, 1, **shuffle(5)) for number in range(7)), task(7, 41, **shuffle(500))]
    begin, executor, job, *rest = stage(tasks, seconds=42, **SHUFFLED)
    job = {**job, "Properties": {"spark.sql.execution.id": "4"}}
    query = log.query(4) | {"sparkPlanInfo": {"nodeName": "SortMergeJoin", "simpleString": ""}}
    lines = [begin, settings(**properties), executor, query, job, *rest]
    assert words in found(lines)["partition_skew"].advice
    group = [begin, settings(**properties), executor, log.query(4), job, *rest]
    assert found(group)["partition_skew"].advice.startswith("A few keys hold most rows")


@pytest.mark.parametrize(
    ("other", "own", "words"),
    [
        (shuffle(MIB, 10), shuffle(40 * MIB, 400), "it had 40.0 MiB and 400 records, the others 1.0 MiB and 10"),
        (shuffle(MIB, 10), shuffle(MIB, 400), "it had 1.0 MiB and 400 records"),
        (shuffle(MIB, 10), shuffle(9 * MIB, 10), "it had 9.0 MiB and 10 records"),
        (shuffle(MIB, 10), shuffle(MIB, 10), "it was slower, with no more data than the others (1.0 MiB)"),
        ({}, {}, "the log does not contain the data size of the tasks"),
    ],
)
def test_skew_tells_data_from_slowness(other: dict[str, int], own: dict[str, int], words: str) -> None:
    """More bytes or more records are the cause; as many of both are not; none are unknown."""
    tasks = [*(task(number, 1, **other) for number in range(7)), task(7, 41, **own)]
    assert words in found(stage(tasks, seconds=42))["partition_skew"].text


def test_data_beside_nobodys_is_not_judged() -> None:
    """Where no other task has reported what it had, none had nothing: nobody knows."""
    lost = [task(number, 1, loss="gone") for number in range(7)]
    finding = found(stage([*lost, task(7, 41, **shuffle(5))], seconds=42))["partition_skew"]
    assert "the log does not contain the data size of the tasks" in finding.text
    assert "mean_other_bytes" not in finding.numbers


def test_skew_names_the_host_of_a_slow_task() -> None:
    """Where the data is the same, the place is the first suspect."""
    tasks = [*(task(number, 1, **shuffle(5)) for number in range(7)), task(7, 41, host="worker-9", **shuffle(5))]
    assert "worker-9" in found(stage(tasks, seconds=42))["partition_skew"].advice


def test_a_failed_attempt_is_no_skew() -> None:
    """Only tasks that went well are compared with the median."""
    tasks = [*(task(number, 1) for number in range(7)), task(7, 41, error="no")]
    assert set(found(stage(tasks, seconds=42))) == {"failed_tasks"}


def test_skew_without_executors_in_the_log_still_has_a_cost() -> None:
    """Where idle cores are not known, the cost is the longest task minus the median."""
    tasks = [*(task(number, 1) for number in range(7)), task(7, 41)]
    lines = [line for line in stage(tasks, seconds=42) if line["Event"] != "SparkListenerExecutorAdded"]
    assert found(lines)["partition_skew"].cost_ms == 40_000


def test_a_task_for_each_core_is_enough_however_long_one_of_them_takes() -> None:
    """Then it is skew, if anything."""
    tasks = [task(0, 41), *(task(number, 1) for number in range(1, 4))]
    assert set(found(stage(tasks, seconds=41))) == {"partition_skew"}


def test_a_log_that_is_not_whole_tells_no_idle_cores() -> None:
    """The cost of skew is then the longest task minus the median, and too few tasks are not reported."""
    tasks = [*(task(number, 1) for number in range(2)), task(2, 41)]
    lines = [line for line in stage(tasks, seconds=41) if line["Event"] != "SparkListenerTaskStart"]
    findings = found(lines)
    assert set(findings) == {"partition_skew"}
    assert findings["partition_skew"].cost_ms == 40_000


def test_a_large_partition_is_not_huge() -> None:
    """Just below the threshold."""
    assert not found(stage([task(0, 2, **shuffle(5 * GIB - 1))], seconds=2))


def test_a_stage_at_work_is_not_judged() -> None:
    """It may still change."""
    lines = stage([*(task(number, 1) for number in range(7)), task(7, 41)], seconds=42)
    assert not found(line for line in lines if line["Event"] != "SparkListenerStageCompleted")


def test_more_partitions_of_state_need_a_new_checkpoint() -> None:
    """A query with state keeps the number of its partitions."""
    more = settings_advice.more_partitions({}, is_rdd=False, has_state=True)
    assert more.endswith("(default 200), for which a query with state needs a new checkpoint")
