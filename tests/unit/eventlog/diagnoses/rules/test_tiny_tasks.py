from tests.unit.eventlog.diagnoses.cases import DEFAULTS, EVERY_COST, SHUFFLED, found, of_query, settings, stage, task


def test_tiny_tasks_cost_what_starting_and_ending_them_took() -> None:
    """More tasks than the threshold, of 10 ms and with 20 ms of scheduling each, on two cores."""
    limits = DEFAULTS.changed(tiny_tasks=999)
    tasks = [task(number, 0.03, begin=number // 2 * 0.03, **{"Executor Run Time": 10}) for number in range(1000)]
    finding = found(stage(tasks, seconds=15, cores=2), limits)["tiny_tasks"]
    assert finding.cost_ms == 10_000
    assert not found(stage(tasks[:-1], seconds=15, cores=2), limits)


def test_tiny_tasks_in_python_may_cost_all_of_their_time() -> None:
    """To set a worker up is a part of their run time: 1000 tasks of 28 ms on two cores, in 20 s."""
    tasks = [task(number, 0.028, begin=number // 2 * 0.04) for number in range(1000)]
    lines = stage(tasks, seconds=20, cores=2, **{"RDD Info": [{"RDD ID": 1, "Name": "PythonRDD"}]})
    finding = found(lines, EVERY_COST)["tiny_tasks"]
    assert (finding.cost_low_ms, finding.cost_high_ms) == (finding.cost_ms, 14_000 + 6000)
    without = found(stage(tasks, seconds=20, cores=2), EVERY_COST)["tiny_tasks"]
    assert (without.cost_ms, without.cost_high_ms) == (finding.cost_ms, None)


def test_many_tasks_that_do_something_are_not_tiny() -> None:
    """The median is at the threshold."""
    limits = DEFAULTS.changed(tiny_tasks=99)
    tasks = [task(number, 0.5, begin=number // 2 * 0.5, **{"Executor Run Time": 10}) for number in range(100)]
    assert not found(stage(tasks, seconds=25, cores=2), limits)


def test_settings_that_make_tiny_tasks_are_named() -> None:
    """Adaptive execution would merge their partitions."""
    tasks = [task(number, 0.03, begin=number // 2 * 0.03, **{"Executor Run Time": 10}) for number in range(1000)]
    begin, *rest = of_query(stage(tasks, seconds=15, cores=2, **SHUFFLED))
    lines = [begin, settings(sql_adaptive_enabled="false", sql_shuffle_partitions="1000"), *rest]
    advice = found(lines)["tiny_tasks"].advice
    assert advice.startswith("spark.sql.adaptive.enabled is false: set it to true, and Spark merges small")
    assert "a lower spark.sql.shuffle.partitions (now 1000)" in advice
    assert "adaptive.enabled" not in found([begin, settings(), *rest])["tiny_tasks"].advice
