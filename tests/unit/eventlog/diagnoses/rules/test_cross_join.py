import pytest

from tests.unit.eventlog.diagnoses.plans import application, found, node, ran


def test_pairs_are_of_the_rows_of_both_sides_however_few_remain() -> None:
    """A condition throws pairs away only after they were made."""
    left = node("Project", node("Scan parquet ", number_of_output_rows=100_000))
    right = node("BroadcastExchange", number_of_output_rows=20_000)
    plan = node("BroadcastNestedLoopJoin", left, right, number_of_output_rows=3)
    (finding,) = found(application(ran(1, plan)), "cross_join", cost_ms=0, cost_ratio=0)
    assert finding.numbers == {"pairs": 2e9}
    assert finding.cost_ms == 90 / 4
    assert "at least 2,000,000,000 pairs" in finding.text


@pytest.mark.parametrize(
    "plan",
    [
        node("BroadcastNestedLoopJoin", node("A", number_of_output_rows=2 * 10**9), node("B", number_of_output_rows=1)),
        node("BroadcastNestedLoopJoin", node("A"), node("B", number_of_output_rows=10**9)),
        node("CartesianProduct", node("A", number_of_output_rows=10**8), node("B", number_of_output_rows=10**8)),
        node("SortMergeJoin", node("A", number_of_output_rows=10**8), node("B", number_of_output_rows=10**8)),
    ],
    ids=["one row", "unknown side", "a cartesian product reads its sides many times", "no cross join"],
)
def test_what_makes_few_pairs_or_an_unknown_number_is_none(plan: dict[str, object]) -> None:
    """One row beside many is a way to add columns."""
    assert not found(application(ran(1, plan)), "cross_join", cost_ms=0, cost_ratio=0)


def test_where_a_side_is_not_told_a_join_has_made_the_rows_it_gave() -> None:
    """At least."""
    left = node("Project", node("A"))
    right = node("B", number_of_output_rows=10**9)
    app = application(ran(1, node("BroadcastNestedLoopJoin", left, right, number_of_output_rows=2 * 10**9)))
    assert [finding.numbers["pairs"] for finding in found(app, "cross_join", cost_ms=0, cost_ratio=0)] == [2e9]


def test_a_cartesian_product_has_made_the_rows_it_gave() -> None:
    """At least; a condition may have thrown others away."""
    app = application(ran(1, node("CartesianProduct", node("A"), node("B"), number_of_output_rows=10**9)))
    assert [finding.numbers["pairs"] for finding in found(app, "cross_join", cost_ms=0, cost_ratio=0)] == [1e9]
