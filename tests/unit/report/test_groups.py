from dataclasses import dataclass

from spark_app.report.groups import grouped


@dataclass(frozen=True)
class Row:
    """A row of a list."""

    name: str
    duration_ms: float | None = 2.0
    status: str = "done"


def test_few_rows_are_listed_as_they_are() -> None:
    """Folding them would hide what fits on a screen."""
    rows = [Row("fit a, collect at x.py:1")] * 3
    [group] = grouped(rows, most=3)
    assert (group.title, group.rows) == ("", rows)


def test_many_rows_are_grouped_by_what_the_program_calls_them() -> None:
    """In the order of the first of each; lines of code and the flow of rows differ within a step."""
    rows = [
        Row("fit a, collect at x.py:1 [memory > result]"),
        Row("fit b [memory > shuffle]", None),
        Row("fit a, treeAggregate at y.scala:7 [memory > result]", status="failed"),
        Row("count at x.py:9 [csv > shuffle]"),
        Row("fit b, collect at x.py:2", 5.0),
    ]
    groups = grouped(rows, most=4)
    assert [(group.title, len(group.rows), group.time, group.failed) for group in groups] == [
        ("fit a", 2, 4.0, 1),
        ("fit b", 2, 5.0, 0),
        ("", 1, 2.0, 0),
    ]
