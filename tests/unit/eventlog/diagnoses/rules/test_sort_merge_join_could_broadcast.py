import pytest

from tests.unit.eventlog.diagnoses.cases import settings
from tests.unit.eventlog.diagnoses.plans import GIB, MIB, MINUTE, application, exchange, found, node, ran
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
