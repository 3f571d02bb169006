import pytest

from spark_app.eventlog.model import repeated_reads
from spark_app.eventlog.model.repeated_reads import MOST
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.plans import GIB, MINUTE, application, cached, found, node, ran, scan

EVERY_COST = {"cost_ms": 0, "cost_ratio": 0}


def test_what_is_read_three_times_costs_two_of_them() -> None:
    """Twice a minute of scanning too much, on 4 cores."""
    times = [ran(number, scan(files=4, size=GIB, scan_time=MINUTE)) for number in range(3)]
    (finding,) = found(application(*times), "repeated_scan")
    assert finding.cost_ms == 2 * MINUTE / 4
    assert finding.numbers == {"times": 3, "files": 4, "read_again_bytes": 2 * GIB}
    assert "file:/sales is read 3 times, each time 1.0 GiB in 4 files, first by query 0 (Query 0)" in finding.text


def test_other_files_of_the_same_table_are_no_repetition() -> None:
    """Other partitions, or a table that has grown; ids of columns differ in each query and mean nothing."""
    days = [scan(files=4, size=GIB, filters=f"[(day#{number} = {number})]", scan_time=MINUTE) for number in range(3)]
    grown = [scan("/log", files=number + 1, size=(number + 1) * GIB, scan_time=MINUTE) for number in range(3)]
    same = [scan("/same", files=4, size=GIB, filters=f"[(day#{number}L = 7)]", scan_time=MINUTE) for number in range(3)]
    app = application(*(ran(number, plan) for number, plan in enumerate([*days, *grown, *same])))
    assert [finding.text.split()[0] for finding in found(app, "repeated_scan")] == ["file:/same"]


def test_little_that_is_read_again_is_none() -> None:
    """Less than five seconds, however many bytes."""
    quick = [ran(number, scan("/quick", files=4, size=GIB, scan_time=9000)) for number in range(3, 6)]
    assert not found(application(*quick), "repeated_scan")


def test_a_format_without_a_scan_time_costs_between_its_shortest_and_its_other_scans() -> None:
    """Of three scans, in tasks of 90, 60 and 90 ms, two cost 120 to 150 ms of 4 cores; two in one task share it."""
    lines = [ran(number, scan(files=4, size=GIB)) for number in range(3)]
    ends = next(line for line in lines[1] if line["Event"] == "SparkListenerTaskEnd")
    ends["Task Metrics"] |= {"Executor Run Time": 60}
    (finding,) = found(application(*lines), "repeated_scan", **EVERY_COST)
    assert (finding.cost_low_ms, finding.cost_high_ms) == (0.9 * 120 / 4, 0.9 * 150 / 4)
    assert finding.cost_ms == pytest.approx(0.9 * 135 / 4)
    twice = node("Union", scan(files=4, size=GIB), scan(files=4, size=GIB))
    (finding,) = found(application(ran(0, twice), ran(1, twice)), "repeated_scan", **EVERY_COST)
    assert finding.cost_ms == pytest.approx(0.9 * 3 * 45 / 4)


def test_a_query_that_has_not_ended_has_read_nothing_yet() -> None:
    """Its numbers are not whole."""
    times = [ran(number, scan(files=4, size=GIB, scan_time=MINUTE)) for number in range(3)]
    assert not found(application(*times[:2], times[2][:-1]), "repeated_scan")


def test_what_is_kept_in_mind_is_bounded() -> None:
    """A new folder in each of thousands of queries is forgotten again; what is read often stays."""
    often = scan("/often", files=4, size=GIB)
    lines = [ran(number, scan(f"/{number}", files=1, size=1)) for number in range(MOST + 5)]
    lines = [*lines[:3], ran(5000, often), *lines[3:700], ran(5001, often), *lines[700:], ran(5002, often)]
    app = application(*lines)
    assert len(app.repeated_reads.reads) == MOST
    assert [finding.numbers["times"] for finding in found(app, "repeated_scan", **EVERY_COST)] == [3]


def test_a_plan_that_is_none_is_no_reason_to_stop_reading() -> None:
    """A line that another program has damaged."""
    broken = {"Location": "", "metrics": [], "children": []}
    assert application(ran(1, broken)).repeated_reads.reads == []


def counting(*rows: int) -> list[list[log.Line]]:
    """Queries of two tasks that read one cache of two partitions; the rows that filling it has counted after each."""
    below = node("Range", number_of_output_rows=0)
    plan = node("InMemoryTableScan", below)
    counts = [{**plan, "children": [{**below, "metrics": [below["metrics"][0] | {"value": each}]}]} for each in rows]
    return [ran(number, plan, counts=each, rdds=[cached(7)]) for number, each in enumerate(counts)]


def test_a_cache_that_is_computed_again_costs_what_it_first_took() -> None:
    """Half of it, and all of it, of tasks of 90 ms on 4 cores."""
    (finding,) = found(application(*counting(100, 150, 250)), "evicted_cache", **EVERY_COST)
    assert finding.cost_ms == (45 + 90) / 4
    assert finding.numbers == {"stages": 2, "again_task_ms": 135, "fill_task_ms": 90}
    assert (finding.stage, finding.query) == ((2, 0), 2)
    assert "is computed again in 2 stages" in finding.text


def test_a_cache_that_is_read_is_not_computed_again() -> None:
    """Its operators count no more."""
    assert not found(application(*counting(100, 100, 100)), "evicted_cache", **EVERY_COST)


def test_what_is_cached_partition_by_partition_is_not_computed_again() -> None:
    """The first query, as that of `take`, had a task for one of the partitions only."""
    first, *others = counting(50, 100, 100)
    over = next(line for line in first if line["Event"] == "SparkListenerStageCompleted")
    over["Stage Info"] |= {"Number of Tasks": 1}
    assert not found(application(first, *others), "evicted_cache", **EVERY_COST)


def test_a_stage_that_runs_again_computes_what_was_lost_with_an_executor() -> None:
    """`lost_executors` and `retried_stage` tell of that."""
    first, second = counting(100, 200)
    for line in second:
        if "Stage Info" in line:
            line["Stage Info"] |= {"Stage Attempt ID": 1}
        elif "Task Info" in line:
            line["Stage Attempt ID"] = 1
    assert not found(application(first, second), "evicted_cache", **EVERY_COST)


@pytest.mark.parametrize(("scans", "is_found"), [(1, True), (2, False)])
def test_a_cache_that_is_used_twice_in_a_query_is_used(scans: int, *, is_found: bool) -> None:
    """The plan has a scan of it for each use; the stages that fill it for each of them tell nothing."""
    plan = node("Union", *(node("InMemoryTableScan") for _ in range(scans)))
    app = application(ran(1, plan, rdds=[cached(7)]))
    assert bool(found(app, "unused_cache", **EVERY_COST)) == is_found


def test_a_cache_whose_first_query_is_at_work_is_not_judged() -> None:
    """It may be read yet."""
    lines = ran(1, node("InMemoryTableScan"), rdds=[cached(7)])
    assert not found(application(lines[:-1]), "unused_cache", **EVERY_COST)


def test_what_delta_caches_for_itself_is_not_the_users() -> None:
    """Nobody can leave it out."""
    names = ("Delta Table State #0 - file:///t", "mergeMaterializedSource")
    lines = [ran(number, node("Scan"), rdds=[cached(number, name)]) for number, name in enumerate(names)]
    assert not found(application(*lines), "unused_cache", **EVERY_COST)


def test_a_table_cached_by_its_name_is_seen_too() -> None:
    """`CACHE TABLE` makes scans of another name."""
    plan = node("Union", node("Scan In-memory table days"), node("Scan In-memory table days"))
    assert not found(application(ran(1, plan, rdds=[cached(7)])), "unused_cache", **EVERY_COST)


@pytest.mark.parametrize(("tasks", "is_found"), [(2, True), (4, False)])
def test_an_rdd_that_a_job_reads_twice_is_used(tasks: int, *, is_found: bool) -> None:
    """It has a task for each partition, as often as it is read: a union with itself."""
    over = log.stage(1, end=3000, tasks=tasks)
    over["Stage Info"] |= {"RDD Info": [cached(7)]}
    app = application([log.job(1, [1]), log.stage(1), over, log.job_ended(1)])
    findings = found(app, "unused_cache", **EVERY_COST)
    assert [finding.stage for finding in findings] == ([(1, 0)] if is_found else [])


def test_caches_are_ranked_by_what_filled_them_and_few_are_told() -> None:
    """A stream that caches each batch does not flood anybody, and does not grow."""
    lines = [ran(number, node("InMemoryTableScan"), rdds=[cached(number)]) for number in range(repeated_reads.MOST + 5)]
    app = application(*lines)
    assert len(app.repeated_reads.caches) == repeated_reads.MOST
    assert len(found(app, "unused_cache", **EVERY_COST)) == 5
    assert not found(app, "unused_cache")
