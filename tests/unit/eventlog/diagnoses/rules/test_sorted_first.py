import pytest

from tests.unit.eventlog.diagnoses.plans import Node, application, found, node, ran

SORT = "Sort [id#0L DESC NULLS LAST], true, 0"
SHUFFLE = "Exchange hashpartitioning(customer#1L, 200), ENSURE_REQUIREMENTS"


def kept(function: str = "first", sort: str = SORT, shuffle: str = SHUFFLE) -> Node:
    """Rows that are sorted, and of which an aggregate keeps one for each customer."""
    rows = node("Sort", node("Scan parquet ", number_of_output_rows=9), text=sort, sort_time=1)
    partial = f"HashAggregate(keys=[customer#1L], functions=[partial_{function}(id#0L, false)])"
    below = node("HashAggregate", rows, text=partial, number_of_output_rows=9)
    if shuffle:
        below = node(
            "AQEShuffleRead", node("Exchange", below, text=shuffle, data_size=9), text="AQEShuffleRead coalesced"
        )
    text = f"HashAggregate(keys=[customer#1L], functions=[{function}(id#0L, false)])"
    return node("HashAggregate", below, text=text, number_of_output_rows=9)


@pytest.mark.parametrize("hashed", [True, False], ids=["HashAggregate", "SortAggregate"])
def test_the_first_row_behind_a_shuffle_may_be_any(*, hashed: bool) -> None:
    """Said at any cost, since the result may be wrong; columns of text are aggregated behind one more sort."""
    plan = kept()
    if not hashed:
        plan |= {
            "nodeName": "SortAggregate",
            "simpleString": plan["simpleString"].replace("HashAggregate(keys", "SortAggregate(key"),
        }
    (finding,) = found(application(ran(1, plan)), "sorted_first")
    assert finding.text == (
        "Query 1 (Query 1): takes the first row of each customer behind a sort by id DESC NULLS LAST; the shuffle "
        "between does not keep the order, so that it may be another row in each run"
    )
    assert "groupBy(customer).agg(F.max_by(F.struct('*'), 'id'))" in finding.advice


@pytest.mark.parametrize(
    "plan",
    [kept("max"), kept(sort=SORT.replace("true", "false")), kept(shuffle="")],
    ids=["the largest", "sorted within partitions", "no shuffle"],
)
def test_other_aggregates_are_not(plan: Node) -> None:
    """The largest is the largest in any order."""
    assert found(application(ran(1, plan)), "sorted_first") == []
