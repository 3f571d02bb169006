import pytest

from tests.unit.eventlog.diagnoses.plans import MINUTE, Node, application, found, node, ran

SIDE = 600_000
ROWS = 900_000_000
TEXT = "SortMergeJoin [customer#1], [customer#3], LeftOuter"


def joined(
    *, rows: int = ROWS, left: int = SIDE, right: int = SIDE, text: str = TEXT, name: str = "SortMergeJoin"
) -> Node:
    """Two sides that are joined, and the aggregate of their rows."""
    sides = [node("Sort", node("Range", number_of_output_rows=rows)) for rows in (left, right)]
    join = node(name, *sides, text=text, number_of_output_rows=rows)
    text = "HashAggregate(keys=[k#5L], functions=[partial_count(1)])"
    return node("HashAggregate", node("Project", join), text=text, number_of_output_rows=20)


def test_a_join_that_makes_many_rows_of_few_is_found() -> None:
    """The cost is nearly all of the minute: that of the join and of the aggregate of its rows."""
    (finding,) = found(application(ran(1, joined(), tasks=10)), "exploding_join", cost_ms=0, cost_ratio=0)
    assert finding.text == (
        "Query 1 (Query 1): SortMergeJoin makes 900,000,000 rows of 600,000 and 600,000, on customer: some key has "
        "many rows on both sides"
    )
    assert finding.numbers == {"left_rows": SIDE, "right_rows": SIDE, "joined_rows": ROWS}
    assert "groupBy('customer').count()" in finding.advice
    assert finding.cost_ms is not None
    assert 0 < finding.cost_ms <= MINUTE


def test_columns_of_both_sides_are_named() -> None:
    """As they are in the plan, which may compute them."""
    text = "BroadcastHashJoin [cast(buyer#1 as bigint), day#2], [id#3L, day#4], Inner, BuildRight, false"
    app = application(ran(1, joined(text=text, name="BroadcastHashJoin")))
    (finding,) = found(app, "exploding_join", cost_ms=0, cost_ratio=0)
    assert "on cast(buyer as bigint) = id, day:" in finding.text


@pytest.mark.parametrize(
    "plan",
    [
        joined(rows=9 * SIDE),
        joined(rows=9_000_000, left=1000, right=1000),
        joined(left=ROWS, right=2),
        joined(text="SortMergeJoin [customer#1], [customer#3], LeftSemi"),
        joined(text="BroadcastNestedLoopJoin BuildRight, Inner", name="BroadcastNestedLoopJoin"),
        node("SortMergeJoin", node("A"), node("B", number_of_output_rows=9), text=TEXT, number_of_output_rows=ROWS),
    ],
    ids=[
        "few for each row",
        "few rows",
        "a row for each of the larger side",
        "semi",
        "no equal columns",
        "unknown side",
    ],
)
def test_a_join_of_rows_that_belong_together_is_not(plan: Node) -> None:
    """A few rows for each key are what joins are for; `cross_join` reports those without equal columns."""
    assert not found(application(ran(1, plan)), "exploding_join", cost_ms=0, cost_ratio=0)
