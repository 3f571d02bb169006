import pytest

from spark_app.eventlog.diagnoses.rule import MAX_FINDINGS
from tests.unit.eventlog.diagnoses.plans import MIB, MINUTE, Node, application, found, node, ran, scan


def test_many_small_files_cost_the_share_of_the_scan_that_opens_them() -> None:
    """1000 files of 1 MiB: four fifths of 200 s of scanning on 4 cores are 40 s, by Spark's own cost of opening."""
    app = application(ran(1, scan(files=1000, size=1000 * MIB, scan_time=200_000)))
    (finding,) = found(app, "small_files_read")
    assert finding.cost_ms == 40_000
    assert finding.numbers == {"files": 1000, "read_bytes": 1000 * MIB, "mean_file_bytes": MIB}
    assert finding.text == "Query 1 (Query 1): reads 1,000 files of 1.0 MiB on average from file:/sales"
    assert (finding.query, finding.operator) == (1, "FileScan parquet")


def test_a_format_without_a_scan_time_costs_at_most_the_time_of_its_tasks() -> None:
    """90 ms of a task on 4 cores, almost all of it for opening files."""
    (finding,) = found(application(ran(1, scan(files=1000, size=MIB))), "small_files_read", cost_ms=0, cost_ratio=0)
    assert finding.cost_ms == pytest.approx(90 / 4, rel=0.01)


def test_a_format_without_a_scan_time_has_the_time_to_start_its_tasks_too() -> None:
    """60 ms to deserialise a task that runs for 90."""
    lines = ran(1, scan(files=1000, size=MIB))
    ends = next(line for line in lines if line["Event"] == "SparkListenerTaskEnd")
    ends["Task Metrics"] |= {"Executor Run Time": 90, "Executor Deserialize Time": 60}
    (finding,) = found(application(lines), "small_files_read", cost_ms=0, cost_ratio=0)
    assert finding.cost_ms == pytest.approx(150 / 4, rel=0.01)


def test_few_files_large_files_cheap_scans_and_short_queries_are_no_findings() -> None:
    """At the thresholds there is none yet, nor below the cost that matters."""
    for_all: Node = {"files": 1000, "size": MIB, "scan_time": 200_000}
    quiet = [
        ran(1, scan(files=100, size=MIB, scan_time=200_000)),
        ran(2, scan(files=1000, size=3000 * MIB, scan_time=200_000)),
        ran(3, scan(files=1000, size=MIB, scan_time=1000)),
        ran(4, scan(**for_all), ms=4999),
        ran(5, scan("/sales/_delta_log", **for_all)),
    ]
    assert not found(application(*quiet), "small_files_read")


def test_a_cache_that_is_read_is_not_the_scan_that_filled_it() -> None:
    """A plan shows what filled a cache, with its numbers; only the query whose stages counted them is found."""
    filling = node("InMemoryTableScan", scan(files=1000, size=MIB, scan_time=MINUTE))
    app = application(ran(1, filling), ran(2, filling, counts=node("Project")))
    assert [finding.query for finding in found(app, "small_files_read")] == [1]


def test_a_scan_whose_shuffle_was_there_did_not_run() -> None:
    """A stage that is skipped reads nothing, though the plan has the numbers of the last time."""
    again = node("Exchange", scan(files=1000, size=MIB, scan_time=MINUTE))
    app = application(ran(1, again), ran(2, again, counts=node("Project")))
    assert [finding.query for finding in found(app, "small_files_read")] == [1]


def test_a_reused_shuffle_is_read_once() -> None:
    """A plan shows what is reused at each place."""
    shuffle = node("Exchange", scan(files=1000, size=MIB, scan_time=MINUTE))
    (finding,) = found(application(ran(1, node("Join", shuffle, node("ReusedExchange", shuffle)))), "small_files_read")
    assert finding.numbers["files"] == 1000


def test_a_cache_that_is_filled_for_two_is_filled_once() -> None:
    """A plan shows what fills it at each place where it is read."""
    filling = scan(files=1000, size=MIB, scan_time=MINUTE)
    plan = node("Union", node("InMemoryTableScan", filling), node("InMemoryTableScan", filling))
    (finding,) = found(application(ran(1, plan)), "small_files_read")
    assert finding.numbers["files"] == 1000


def test_nothing_in_a_query_costs_more_than_the_query() -> None:
    """Twenty minutes of tasks that ran at once on more cores than there are on average."""
    (finding,) = found(application(ran(1, scan(files=1000, size=0, scan_time=1_200_000))), "small_files_read")
    assert finding.cost_ms == MINUTE


def test_a_plan_that_is_none_has_no_findings() -> None:
    """A line that another program has damaged."""
    broken = node("Scan")
    lines = ran(1, broken)
    del lines[0]["sparkPlanInfo"]["nodeName"]
    assert not found(application(lines), "small_files_read")


def test_a_query_has_no_more_findings_than_a_person_reads() -> None:
    """A generated plan with hundreds of scans does not flood anybody."""
    plan = node("Union", *(scan(f"/{number}", files=1000, size=MIB, scan_time=MINUTE) for number in range(50)))
    assert len(found(application(ran(1, plan)), "small_files_read")) == MAX_FINDINGS


def test_a_table_that_three_queries_scan_has_the_files_that_it_has() -> None:
    """They read the same small files."""
    scans = (ran(number, scan(files=1000, size=1000 * MIB, scan_time=200_000)) for number in (1, 2, 3))
    (finding,) = found(application(*scans), "small_files_read")
    assert finding.numbers == {"files": 1000, "read_bytes": 3000 * MIB, "mean_file_bytes": MIB, "places": 3}


def test_what_a_query_is_called_stays_as_it_is_on_one_line() -> None:
    """A description may hold anything."""
    lines = ran(1, scan(files=1000, size=MIB, scan_time=MINUTE))
    lines[0]["description"] = "<script>\nDaily SALES"
    (finding,) = found(application(lines), "small_files_read")
    assert finding.text.startswith("Query 1 (<script> Daily SALES): reads")
