import pytest

from tests.unit.eventlog.diagnoses.plans import MINUTE, Node, application, found, node, ran

ROWS = 1000
GROUPED = "keys=[shop#1L, a#11, b#12, c#13, gid#10], functions=[]"
COUNTED = "functions=[partial_count(a#11) FILTER (WHERE (gid#10 = 1)), partial_count(b#12) FILTER (WHERE (gid#10 = 2))]"


def counted(*, copies: int = 3, grouped: str = GROUPED, outer: str = f"keys=[shop#1L], {COUNTED}") -> Node:
    """Rows that are copied, grouped by the columns of the copies, and counted by shop."""
    source = node("Project", node("Range", number_of_output_rows=ROWS))
    copied = node("Expand", source, text="Expand [[shop#1L, a#2, null, 1]]", number_of_output_rows=copies * ROWS)
    part = node("HashAggregate", copied, text=f"HashAggregate({grouped})", number_of_output_rows=copies * ROWS)
    shuffle = node("AQEShuffleRead", node("Exchange", part, shuffle_bytes_written=9))
    groups = node("HashAggregate", shuffle, text=f"HashAggregate({grouped})", number_of_output_rows=copies * ROWS)
    return node("HashAggregate", groups, text=f"HashAggregate({outer})", number_of_output_rows=9)


def test_copies_of_rows_for_distinct_columns_are_found() -> None:
    """The cost is at most two of three copies in the minute in which four tasks could run."""
    (finding,) = found(application(ran(1, counted(), tasks=10)), "count_distinct", cost_ms=0, cost_ratio=0)
    assert finding.text == (
        "Query 1 (Query 1): Expand makes 3,000 rows of 1,000, a copy for each distinct column of one aggregation: "
        "a, b, c"
    )
    assert finding.numbers == {"rows_before": ROWS, "copied_rows": 3 * ROWS}
    assert "approx_count_distinct" in finding.advice
    assert finding.cost_low_ms is not None
    assert finding.cost_low_ms < (finding.cost_ms or 0) <= MINUTE * 2 / 3


def test_columns_that_spark_leaves_out_of_the_text_are_not_needed() -> None:
    """Spark writes 25 fields of each list, and `gid` is the last."""
    plan = counted(grouped="keys=[shop#1L, a#11, b#12, ... 30 more fields], functions=[]")
    (finding,) = found(application(ran(1, plan)), "count_distinct", cost_ms=0, cost_ratio=0)
    assert finding.text.endswith(": a, b, ... 30 more fields")


@pytest.mark.parametrize(
    "plan",
    [
        counted(copies=1),
        counted(
            grouped="keys=[shop#1L, a#11, spark_grouping_id#10], functions=[sum(x#3)]", outer="keys=[], functions=[]"
        ),
        node("Expand", node("Range", number_of_output_rows=9), number_of_output_rows=90),
        node("Expand", number_of_output_rows=90),
    ],
    ids=["no copies", "rollup", "no aggregate", "no source"],
)
def test_copies_that_are_wanted_are_not(plan: Node) -> None:
    """Grouping sets need their copies."""
    assert not found(application(ran(1, plan)), "count_distinct", cost_ms=0, cost_ratio=0)
