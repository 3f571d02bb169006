import pytest

from spark_app.eventlog.diagnoses.diagnose import MOST
from tests.unit.eventlog.diagnoses.plans import GIB, MIB, MINUTE, Node, application, exchange, found, node, ran, scan


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
    assert len(found(application(ran(1, plan)), "small_files_read")) == MOST


def test_files_written_are_those_that_spark_has_counted() -> None:
    """However short the query was: whoever reads them pays."""
    command = node("Execute InsertIntoHadoopFsRelationCommand", number_of_written_files=500, written_output=500 * MIB)
    (finding,) = found(application(ran(1, command, ms=100)), "small_files_written")
    assert finding.text == "Query 1 (Query 1): writes 500 files of 1.0 MiB on average"
    assert finding.cost_ms is None


def test_small_files_of_many_queries_are_counted_together() -> None:
    """24 files of a batch are nobody's problem; those of five batches to the same folder are 120."""
    text = "Execute InsertIntoHadoopFsRelationCommand file:/out, false, Parquet"
    command = node("Execute InsertIntoHadoopFsRelationCommand", text=text, number_of_written_files=24, written_output=9)
    (finding,) = found(application(*(ran(number, command) for number in range(5))), "small_files_written")
    assert finding.numbers["files"] == 120
    assert "writes 24 files of 0 B on average to file:/out; with 4 more places" in finding.text
    assert not found(application(*(ran(number, command) for number in range(4))), "small_files_written")


def test_each_task_that_wrote_has_left_a_file_at_least() -> None:
    """Delta does not count in the plan: 150 tasks have written, and one has not."""
    (finding,) = found(application(ran(1, node("Exchange"), tasks=150)), "small_files_written")
    assert finding.text == "Query 1 (Query 1): writes at least 150 files of at most 1.0 MiB on average"
    assert not found(application(ran(1, node("Exchange"), tasks=100)), "small_files_written")


def test_a_filter_on_other_columns_than_those_of_partitions_reads_them_all() -> None:
    """With a filter on a partition, or no filter at all, it is what was asked for."""

    def days(filters: str, data: str) -> dict[str, object]:
        plan = scan(files=400, size=20 * GIB, filters=filters, number_of_partitions_read=365)
        plan["metadata"] |= {"DataFilters": data}
        return plan

    asked = "[isnotnull(id#1L), (id#1L < 5)]"
    app = application(ran(1, days("[]", asked)), ran(2, days("[(day#7 > 3)]", asked)), ran(3, days("[]", "[]")))
    (finding,) = found(app, "partition_filter_missing")
    assert (finding.query, finding.numbers["partitions"], finding.severity) == (1, 365, "info")


def filtered(rows: int, passed: int, **metadata: str) -> Node:
    """A minute of scanning 100 partitions, for some of the rows."""
    below = scan(files=400, size=MIB, scan_time=MINUTE * 4, number_of_partitions_read=100, number_of_output_rows=rows)
    below["metadata"] |= {"PartitionFilters": "[]", "DataFilters": "[(id#1L < 5)]"} | metadata
    return node("Filter", below, number_of_output_rows=passed)


def test_all_partitions_are_read_for_few_rows_at_the_cost_of_the_others() -> None:
    """A minute of scanning on 4 cores, of which a filter on the partitions saves nine tenths."""
    (finding,) = found(application(ran(1, filtered(1000, 100))), "partition_filter_missing")
    assert finding.cost_ms == MINUTE * 0.9
    assert finding.text.endswith("reads all 100 partitions, 1.0 MiB, for 100 of 1,000 rows")
    assert not found(application(ran(1, filtered(1000, 1000))), "partition_filter_missing")
    assert not found(
        application(ran(1, filtered(1000, 100, DataFilters="[isnotnull(id#1L)]"))), "partition_filter_missing"
    )


@pytest.mark.parametrize("of", ["filter", "scan", "both"])
def test_subqueries_of_conditions_are_no_input(of: str) -> None:
    """A scalar subquery of a filter, a bloom filter of a join, one that prunes partitions: the finding is the same."""
    (before,) = found(application(ran(1, filtered(1000, 100))), "partition_filter_missing")
    plan = filtered(1000, 100)
    for operator in (plan, *plan["children"]):
        if of in ("both", "filter" if operator is plan else "scan"):
            subqueries = (node("Subquery", exchange(7)), node("ReusedSubquery", node("SubqueryBroadcast")))
            operator["children"] = [*operator["children"], *subqueries]
    (finding,) = found(application(ran(1, plan)), "partition_filter_missing")
    assert (finding.text, finding.cost_ms) == (before.text, before.cost_ms)


def test_rows_that_a_reader_of_json_drops_are_not_counted() -> None:
    """All that it hands on pass: the cost is at most that of all partitions but one."""
    pushed = filtered(100, 100, Format="JSON", PushedFilters="[LessThan(id,5)]")
    (finding,) = found(application(ran(1, pushed)), "partition_filter_missing")
    assert finding.cost_ms == pytest.approx(MINUTE * 0.99)
    assert "rows" not in finding.text


def test_a_table_that_three_queries_scan_has_the_partitions_that_it_has() -> None:
    """They are not those of three tables, and the evidence says what the text says; each query reads the bytes."""

    def all_days() -> Node:
        plan = scan(files=400, size=20 * GIB, number_of_partitions_read=365)
        plan["metadata"] |= {"DataFilters": "[(id#1L < 5)]"}
        return plan

    (finding,) = found(application(*(ran(number, all_days()) for number in (1, 2, 3))), "partition_filter_missing")
    assert "reads all 365 partitions, 20.0 GiB; with 2 more places" in finding.text
    assert finding.numbers == {"partitions": 365, "read_bytes": 60 * GIB, "places": 3}


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
