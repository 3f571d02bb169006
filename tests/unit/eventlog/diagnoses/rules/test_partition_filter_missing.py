import pytest

from tests.unit.eventlog.diagnoses.plans import GIB, MIB, MINUTE, Node, application, exchange, found, node, ran, scan


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
