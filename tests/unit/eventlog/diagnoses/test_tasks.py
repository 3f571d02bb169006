import pytest

from tests.unit.eventlog.diagnoses.cases import DEFAULTS, found, settings, shuffle, stage, task

MIB = 1024**2
GIB = 1024**3


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
    """A task of 4.9 s is nobody's problem, were it 490 times the others, and whatever else may be one."""
    limits = DEFAULTS.model_copy(update={"cost_ms": 0})
    tasks = [*(task(number, 0.01) for number in range(7)), task(7, 4.9)]
    assert not found(stage(tasks, seconds=4.9), limits)


def test_a_task_that_is_ten_times_the_others_is_no_skew() -> None:
    """The ratio must be exceeded."""
    tasks = [*(task(number, 3) for number in range(7)), task(7, 30)]
    assert not found(stage(tasks, seconds=33))


@pytest.mark.parametrize(
    ("other", "own", "words"),
    [
        (shuffle(MIB, 10), shuffle(40 * MIB, 400), "it had 40.0 MiB and 400 records, the others 1.0 MiB and 10"),
        (shuffle(MIB, 10), shuffle(MIB, 400), "it had 1.0 MiB and 400 records"),
        (shuffle(MIB, 10), shuffle(9 * MIB, 10), "it had 9.0 MiB and 10 records"),
        (shuffle(MIB, 10), shuffle(MIB, 10), "it had no more data than the others (1.0 MiB)"),
        ({}, {}, "how much data the tasks had is not told"),
    ],
)
def test_skew_tells_data_from_slowness(other: dict[str, int], own: dict[str, int], words: str) -> None:
    """More bytes or more records are the cause; as many of both are not; none are unknown."""
    tasks = [*(task(number, 1, **other) for number in range(7)), task(7, 41, **own)]
    assert words in found(stage(tasks, seconds=42))["partition_skew"].text


def test_data_beside_nobodys_is_not_judged() -> None:
    """Where no other task has told what it had, none had nothing: nobody knows."""
    lost = [task(number, 1, loss="gone") for number in range(7)]
    finding = found(stage([*lost, task(7, 41, **shuffle(5))], seconds=42))["partition_skew"]
    assert "how much data the tasks had is not told" in finding.text
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


def test_tiny_tasks_cost_what_starting_and_ending_them_took() -> None:
    """More tasks than the threshold, of 10 ms and with 20 ms of scheduling each, on two cores."""
    limits = DEFAULTS.model_copy(update={"tiny_tasks": 999})
    tasks = [task(number, 0.03, begin=number // 2 * 0.03, **{"Executor Run Time": 10}) for number in range(1000)]
    finding = found(stage(tasks, seconds=15, cores=2), limits)["tiny_tasks"]
    assert finding.cost_ms == 10_000
    assert not found(stage(tasks[:-1], seconds=15, cores=2), limits)


def test_many_tasks_that_do_something_are_not_tiny() -> None:
    """The median is at the threshold."""
    limits = DEFAULTS.model_copy(update={"tiny_tasks": 99})
    tasks = [task(number, 0.5, begin=number // 2 * 0.5, **{"Executor Run Time": 10}) for number in range(100)]
    assert not found(stage(tasks, seconds=25, cores=2), limits)


def test_too_few_tasks_cost_the_share_of_idle_cores() -> None:
    """One task of 40 s on four cores could have taken 10."""
    finding = found(stage([task(0, 40)], seconds=40))["too_few_tasks"]
    assert finding.cost_ms == 30_000
    assert "1 task in 40.0 s, where 4 could run at once" in finding.text
    assert "coalesce(1)" in finding.advice


@pytest.mark.parametrize(
    ("count", "seconds", "attempt"),
    [(4, 40, 0), (1, 29, 0), (1, 40, 1)],
    ids=["as many tasks as cores", "a short stage", "a later attempt"],
)
def test_few_tasks_that_are_enough(count: int, seconds: int, attempt: int) -> None:
    """A task for each core, a stage that is short, and an attempt that has only what was missing."""
    info = {"Stage Attempt ID": attempt}
    lines = stage([task(number, seconds) for number in range(count)], seconds=seconds, **info)
    assert "too_few_tasks" not in found(lines)


def test_few_tasks_beside_other_work_are_enough() -> None:
    """Cores that another stage keeps busy are not idle."""
    other = [line for number in range(1, 4) for line in task(number, 40)]
    for line in other:
        line["Stage ID"] = 1
    begin, *rest = stage([task(0, 40)], seconds=40)
    starts = [line for line in other if line["Event"].endswith("Start")]
    ends = [line for line in other if line["Event"].endswith("End")]
    lines = [begin, *rest[:4], *starts, rest[4], *ends, *rest[5:]]
    assert "too_few_tasks" not in found(lines)


def test_a_task_for_each_core_is_enough_however_long_one_of_them_takes() -> None:
    """Then it is skew, if anything."""
    tasks = [task(0, 41), *(task(number, 1) for number in range(1, 4))]
    assert set(found(stage(tasks, seconds=41))) == {"partition_skew"}


def test_tasks_of_two_cores_need_half_as_many() -> None:
    """`spark.task.cpus` says so."""
    lines = stage([task(0, 41), task(1, 41)], seconds=41)
    assert "too_few_tasks" in found(lines)
    assert "too_few_tasks" not in found([settings(task_cpus="2"), *lines])


def test_a_log_that_is_not_whole_tells_no_idle_cores() -> None:
    """The cost of skew is then the longest task minus the median, and too few tasks are not told."""
    tasks = [*(task(number, 1) for number in range(2)), task(2, 41)]
    lines = [line for line in stage(tasks, seconds=41) if line["Event"] != "SparkListenerTaskStart"]
    findings = found(lines)
    assert set(findings) == {"partition_skew"}
    assert findings["partition_skew"].cost_ms == 40_000


@pytest.mark.parametrize(
    ("metrics", "kind"),
    [
        ({"Input Metrics": {"Bytes Read": 6 * GIB}}, "input"),
        ({"Output Metrics": {"Bytes Written": 6 * GIB}}, "output"),
        (shuffle(6 * GIB), "shuffle read"),
        ({"Shuffle Write Metrics": {"Shuffle Bytes Written": 6 * GIB}}, "shuffle write"),
    ],
)
def test_a_huge_partition_says_of_what(metrics: dict[str, int], kind: str) -> None:
    """Whatever a task read or wrote, one of 6 GiB is huge."""
    finding = found(stage([task(0, 2, **metrics), task(1, 1)], seconds=2))["huge_partitions"]
    assert f"6.0 GiB of {kind}" in finding.text
    assert finding.numbers["largest_bytes"] == 6 * GIB


def test_a_large_partition_is_not_huge() -> None:
    """Just below the threshold."""
    assert not found(stage([task(0, 2, **shuffle(5 * GIB - 1))], seconds=2))


def test_a_stage_at_work_is_not_judged() -> None:
    """It may still change."""
    lines = stage([*(task(number, 1) for number in range(7)), task(7, 41)], seconds=42)
    assert not found(line for line in lines if line["Event"] != "SparkListenerStageCompleted")
