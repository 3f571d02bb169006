import pytest

from tests.unit.eventlog.diagnoses.cases import settings
from tests.unit.eventlog.diagnoses.plans import GIB, MIB, MINUTE, Node, application, exchange, found, node, ran
from tests.unit.eventlog.log import Line

BROADCAST = "sort_merge_join_could_broadcast"


def sort_merge_join(left: int, right: int, kind: str = "Inner") -> dict[str, object]:
    """A join of two shuffles."""
    return node(
        "SortMergeJoin",
        exchange(left),
        exchange(right),
        text=f"SortMergeJoin [id#1L], [id#2L], {kind}",
        number_of_output_rows=1,
    )


@pytest.mark.parametrize(
    ("left", "right", "kind", "is_found"),
    [
        (MIB, GIB, "Inner", True),
        (GIB, MIB, "Inner", True),
        (GIB, MIB, "LeftOuter", True),
        (GIB, MIB, "LeftSemi", True),
        (GIB, MIB, "LeftAnti", True),
        (MIB, GIB, "RightOuter", True),
        (MIB, GIB, "LeftOuter", False),
        (MIB, GIB, "LeftSemi", False),
        (GIB, MIB, "RightOuter", False),
        (GIB, MIB, "FullOuter", False),
        (GIB, MIB, "ExistenceJoin(exists#3)", False),
        (MIB, 9 * MIB, "Inner", False),
        (MIB, 20 * MIB, "Inner", True),
        (10 * MIB, GIB, "Inner", False),
        (50 * MIB, 20 * GIB, "Inner", True),
        (50 * MIB, 9 * GIB, "Inner", False),
    ],
)
def test_a_small_side_is_found_where_spark_may_broadcast_it(
    left: int, right: int, kind: str, *, is_found: bool
) -> None:
    """The side that is kept whole cannot be broadcast; what is small depends on the other side."""
    assert bool(found(application(ran(1, sort_merge_join(left, right, kind))), BROADCAST)) == is_found


def test_a_shuffle_that_need_not_be_costs_its_writing_and_sorting() -> None:
    """A minute of writing and one of sorting for each side, on 4 cores."""
    (finding,) = found(application(ran(1, sort_merge_join(MIB, GIB))), BROADCAST)
    assert finding.cost_ms == MINUTE
    assert finding.numbers == {"small_side_bytes": MIB, "large_side_bytes": GIB}
    assert finding.text.endswith("SortMergeJoin shuffles 1.0 MiB of its left side and 1.0 GiB of the other")


def test_the_small_sides_of_unrelated_joins_are_not_one_large_side() -> None:
    """Each is compared with the threshold by itself: the evidence is that of the first, as in the text."""
    app = application(ran(1, sort_merge_join(MIB, GIB)), ran(2, sort_merge_join(2 * MIB, GIB)))
    (finding,) = found(app, BROADCAST)
    assert "shuffles 1.0 MiB of its left side" in finding.text
    assert finding.numbers == {"small_side_bytes": MIB, "large_side_bytes": GIB, "places": 2}


def test_a_side_whose_size_is_not_told_is_not_judged() -> None:
    """An operator that may add rows stands between, or there is no shuffle at all."""
    grown = node("Sort", node("Generate", exchange(MIB)))
    text = "SortMergeJoin [id#1L], [id#2L], Inner"
    for side in (grown, node("Sort", node("Scan parquet ")), node("Exchange")):
        app = application(ran(1, node("SortMergeJoin", side, exchange(GIB), text=text, number_of_output_rows=1)))
        assert not found(app, BROADCAST)


def test_a_reused_shuffle_has_the_size_of_the_one_it_is() -> None:
    """Spark shows it below `ReusedExchange`."""
    small = node("ReusedExchange", node("Exchange", data_size=MIB))
    text = "SortMergeJoin [id#1L], [id#2L], Inner"
    app = application(ran(1, node("SortMergeJoin", exchange(GIB), small, text=text, number_of_output_rows=1)))
    assert [finding.numbers["small_side_bytes"] for finding in found(app, BROADCAST, cost_ms=0, cost_ratio=0)] == [MIB]


def test_a_broadcast_costs_what_the_driver_does_for_it() -> None:
    """To build and to send; not to collect."""
    times: Node = {"time_to_build": 20_000, "time_to_broadcast": 4000, "time_to_collect": 50_000}
    plan = node("BroadcastExchange", data_size=2 * GIB, number_of_output_rows=7, **times)
    (finding,) = found(application(ran(1, plan)), "large_broadcast")
    assert finding.cost_ms == 24_000
    assert finding.numbers == {"broadcast_bytes": 2 * GIB, "broadcast_rows": 7}


def test_a_broadcast_that_is_cheap_or_small_is_none() -> None:
    """Without times there is no cost, but a finding; with small ones there is none."""
    untold = ran(1, node("BroadcastExchange", data_size=2 * GIB))
    small = ran(2, node("BroadcastExchange", data_size=100 * MIB, time_to_build=20_000))
    cheap = ran(3, node("BroadcastExchange", data_size=2 * GIB, time_to_build=900))
    assert [finding.cost_ms for finding in found(application(untold), "large_broadcast")] == [None]
    assert not found(application(small, cheap), "large_broadcast")


def test_what_filled_a_cache_is_not_found_again_when_the_cache_is_read() -> None:
    """Its numbers are the driver's, and stand in every plan that reads the cache."""
    sent = node("BroadcastExchange", node("Range", number_of_output_rows=7), data_size=2 * GIB)
    filling = node("InMemoryTableScan", node("Project", sent))
    app = application(ran(1, filling), ran(2, filling, counts=node("Project")))
    assert [finding.query for finding in found(app, "large_broadcast")] == [1]


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


def test_broadcasts_that_are_switched_off_are_named() -> None:
    """For the application, or for the session; otherwise the size is the reason."""
    off = "spark.sql.autoBroadcastJoinThreshold is -1, which switches broadcasts off"
    lines = ran(1, sort_merge_join(MIB, GIB))
    for variant in ([settings(sql_autoBroadcastJoinThreshold="-1"), *lines], _of_session(lines)):
        (finding,) = found(application(variant), BROADCAST)
        assert finding.advice.startswith(off)
    (finding,) = found(application(lines), BROADCAST)
    assert finding.advice.startswith("Broadcast the small side")


def _of_session(lines: list[Line]) -> list[Line]:
    """The same, with the setting changed in the session."""
    return [lines[0] | {"modifiedConfigs": {"spark.sql.autoBroadcastJoinThreshold": "-1"}}, *lines[1:]]
