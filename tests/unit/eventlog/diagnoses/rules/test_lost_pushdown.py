import pytest

from tests.unit.eventlog.diagnoses.plans import MIB, MINUTE, Node, application, found, node, ran, scan

CAST = "(cast(account#0 as int) = 17)"
ROWS = 4_000_000


def filtered(
    *,
    filters: str = f"[isnotnull(account#0), {CAST}]",
    pushed: str = "[IsNotNull(account)]",
    passed: int = 1,
    rows: int = ROWS,
    schema: str = "struct<account:string,c0:string>",
    format_: str = "Parquet",
) -> Node:
    """A scan of Parquet files with a filter above it."""
    read = scan("/accounts", files=8, size=200 * MIB, number_of_output_rows=rows)
    read["metadata"] |= {"DataFilters": filters, "PushedFilters": pushed, "ReadSchema": schema, "Format": format_}
    columnar = node("ColumnarToRow", node("InputAdapter", read), number_of_output_rows=rows)
    return node("Filter", columnar, text=f"Filter {filters}", number_of_output_rows=passed)


def test_a_cast_that_keeps_a_filter_from_the_files_is_found() -> None:
    """The cost is half of the minute in which four tasks could run, and at most all of it."""
    (finding,) = found(application(ran(1, filtered(), tasks=10)), "lost_pushdown", cost_ms=0, cost_ratio=0)
    assert finding.text == (
        "Query 1 (Query 1): reads 4,000,000 rows of file:/accounts for 1: its filter casts the column account (string) "
        "to int, and Spark pushes no filter with a cast to the files"
    )
    assert "F.col('account') == '17', as it is written there, and not == 17" in finding.advice
    assert finding.cost_low_ms == 0
    assert 0 < (finding.cost_ms or 0) < (finding.cost_high_ms or 0) <= MINUTE


def test_the_type_of_the_column_says_what_to_compare_it_with() -> None:
    """A timestamp is compared with the ends of a day."""
    filters = "[isnotnull(at#3), (cast(at#3 as date) = 2026-01-01)]"
    plan = filtered(filters=filters, pushed="[IsNotNull(at)]", schema="struct<at:timestamp,price:decimal(10,2)>")
    (finding,) = found(application(ran(1, plan)), "lost_pushdown", cost_ms=0, cost_ratio=0)
    assert "the column at (timestamp) to date" in finding.text
    assert "F.col('at') >= a first timestamp" in finding.advice
    plan = filtered(filters="[(cast(price#4 as double) > 5.0)]", schema="struct<at:timestamp,price:decimal(10,2)>")
    (finding,) = found(application(ran(1, plan)), "lost_pushdown", cost_ms=0, cost_ratio=0)
    assert "the column price (decimal(10,2)) to double" in finding.text


@pytest.mark.parametrize(
    "plan",
    [
        filtered(
            filters="[isnotnull(account#0), (account#0 = 17)]", pushed="[IsNotNull(account), EqualTo(account,17)]"
        ),
        filtered(pushed="[IsNotNull(account), StringStartsWith(account,0)]"),
        filtered(passed=ROWS // 9),
        filtered(filters="[(cast(account#0 as int) = other#1)]"),
        filtered(filters="[(length(account#0) = 9)]"),
        filtered(format_="CSV"),
        scan("/accounts", files=8, size=9),
    ],
    ids=["pushed", "pushed in part", "many rows pass", "two columns", "a function", "lines", "no filter"],
)
def test_a_filter_that_reaches_the_files_or_cannot_is_not(plan: Node) -> None:
    """Two columns, and functions, have no literal of another type."""
    assert not found(application(ran(1, plan)), "lost_pushdown", cost_ms=0, cost_ratio=0)
