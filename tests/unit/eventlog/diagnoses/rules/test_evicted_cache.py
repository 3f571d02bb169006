from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.plans import application, cached, found, node, ran


def counting(*rows: int) -> list[list[log.Line]]:
    """Queries of two tasks that read one cache of two partitions; the rows that filling it has counted after each."""
    below = node("Range", number_of_output_rows=0)
    plan = node("InMemoryTableScan", below)
    counts = [{**plan, "children": [{**below, "metrics": [below["metrics"][0] | {"value": each}]}]} for each in rows]
    return [ran(number, plan, counts=each, rdds=[cached(7)]) for number, each in enumerate(counts)]


def test_a_cache_that_is_computed_again_costs_what_it_first_took() -> None:
    """Half of it, and all of it, of tasks of 90 ms on 4 cores."""
    (finding,) = found(application(*counting(100, 150, 250)), "evicted_cache", cost_ms=0, cost_ratio=0)
    assert finding.cost_ms == (45 + 90) / 4
    assert finding.numbers == {"stages": 2, "again_task_ms": 135, "fill_task_ms": 90}
    assert (finding.stage, finding.query) == ((2, 0), 2)
    assert "is computed again in 2 stages" in finding.text


def test_a_cache_that_is_read_is_not_computed_again() -> None:
    """Its operators count no more."""
    assert not found(application(*counting(100, 100, 100)), "evicted_cache", cost_ms=0, cost_ratio=0)


def test_what_is_cached_partition_by_partition_is_not_computed_again() -> None:
    """The first query, as that of `take`, had a task for one of the partitions only."""
    first, *others = counting(50, 100, 100)
    over = next(line for line in first if line["Event"] == "SparkListenerStageCompleted")
    over["Stage Info"] |= {"Number of Tasks": 1}
    assert not found(application(first, *others), "evicted_cache", cost_ms=0, cost_ratio=0)


def test_a_stage_that_runs_again_computes_what_was_lost_with_an_executor() -> None:
    """`lost_executors` and `retried_stage` tell of that."""
    first, second = counting(100, 200)
    for line in second:
        if "Stage Info" in line:
            line["Stage Info"] |= {"Stage Attempt ID": 1}
        elif "Task Info" in line:
            line["Stage Attempt ID"] = 1
    assert not found(application(first, second), "evicted_cache", cost_ms=0, cost_ratio=0)
