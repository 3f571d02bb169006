import pytest

from tests.unit.eventlog.diagnoses.plans import MINUTE, Node, application, found, node, ran

ROWS = 1000
TIMES = 60


def exploded(
    *, keys: str = "id#1L", made: str = "day#3L", before: int = ROWS, rows: int = ROWS * TIMES, groups: int = ROWS
) -> Node:
    """Rows that are multiplied, shuffled and brought together; the shuffle is cut out of the same query's plan."""
    source = node("Range", number_of_output_rows=before)
    text = f"Generate explode(days#2), [id#1L], false, [{made}]"
    copies = node("Generate", source, text=text, number_of_output_rows=rows)
    priced = node("BroadcastHashJoin", copies, node("BroadcastQueryStage"), number_of_output_rows=rows)
    part = node(
        "HashAggregate",
        priced,
        text=f"HashAggregate(keys=[{keys}], functions=[partial_sum(price#4L)])",
        number_of_output_rows=groups,
    )
    shuffle = node("AQEShuffleRead", node("Exchange", part, shuffle_bytes_written=9))
    text = f"HashAggregate(keys=[{keys}], functions=[sum(price#4L)])"
    return node("HashAggregate", shuffle, text=text, number_of_output_rows=groups)


def test_rows_that_are_multiplied_and_brought_together_again_are_found() -> None:
    """The cost is most of the minute in which four tasks could run, as nearly all rows are copies."""
    (finding,) = found(application(ran(1, exploded(), tasks=10)), "explode", cost_ms=0, cost_ratio=0)
    assert (
        finding.text
        == "Query 1 (Query 1): explode makes 60,000 rows of 1,000, which an aggregate brings together to 1,000 again"
    )
    assert finding.numbers == {"rows_before": ROWS, "exploded_rows": ROWS * TIMES, "groups": ROWS}
    assert finding.operator == "Generate explode(days#2), [id#1L], false, [day#3L]"
    assert finding.cost_ms is not None
    assert finding.cost_low_ms is not None
    assert finding.cost_low_ms < finding.cost_ms < (finding.cost_high_ms or 0) <= MINUTE


@pytest.mark.parametrize(
    "plan",
    [
        exploded(keys="day#3L"),
        exploded(keys="id#1L, day#3L"),
        exploded(keys=""),
        exploded(rows=4 * ROWS),
        exploded(groups=2 * ROWS),
        node("Generate", node("Range", number_of_output_rows=9), number_of_output_rows=900),
        node("Generate", number_of_output_rows=900),
    ],
    ids=["by what was made", "by both", "a total", "few copies", "more groups than rows", "no aggregate", "no source"],
)
def test_rows_that_are_needed_are_not(plan: Node) -> None:
    """The words of a text are counted, for example, or nothing brings the rows together."""
    assert not found(application(ran(1, plan)), "explode", cost_ms=0, cost_ratio=0)
