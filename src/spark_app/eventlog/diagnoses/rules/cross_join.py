"""A cartesian product, or a broadcast nested loop join."""

from collections.abc import Iterator

from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.operators import Operator, rows_of, value
from spark_app.eventlog.model.plan_names import (
    CARTESIAN_PRODUCT,
    OUTPUT_ROWS,
)
from spark_app.formatting import count


@rule(
    adds=("pairs",),
    limits={"cross_join_pairs": Limit(1e7, "Cross join: pairs of rows produced, at least.", ge=1)},
    cause="cartesian_join",
)
def cross_join(view: QueryView) -> Iterator[Finding]:
    """A cartesian product, or a broadcast nested loop join.

    Evidence: pairs of rows: the product of both sides or, for a cartesian product, its output rows.
    Why: the number of pairs grows with the square of the data.
    Change: join on equal columns, even if they only narrow the candidates (a day, a bucket of a range), and add the
        other conditions.
    Threshold: {cross_join_pairs} (project; DataFlint has 10 billion). The rule ignores a side of one row, which is a
        way to add columns.
    Cost: the run time of the tasks of the join, divided by the mean number of running tasks: the most that the join can
        have taken.
    """
    for join in view.operators:
        is_nested = join.name.startswith((CARTESIAN_PRODUCT, "BroadcastNestedLoopJoin"))
        pairs = _pairs(join) if is_nested else None
        if pairs is not None and pairs >= view.limits.cross_join_pairs:
            yield view.finding(
                "cross_join",
                f"{join.name} produces at least {count(pairs)} pairs of rows",
                advice="Join on equal columns (join(other, 'key')), even if they only narrow the candidates (a day, a "
                "bucket of a range), and add the other conditions; F.broadcast does not reduce the pairs.",
                operator=join,
                numbers={"pairs": pairs},
                cost_ms=view.wall_of(view.run_ms(join), join),
            )


def _pairs(join: Operator) -> float | None:
    """The least number of pairs that a join compared: the product of both sides, or else its output rows.

    A cartesian product reads its sides many times, so their row counts are useless.
    """
    output = value(join, OUTPUT_ROWS)
    sides = [rows_of(child) for child in join.inputs]
    if join.name.startswith(CARTESIAN_PRODUCT) or len(sides) != 2 or None in sides:
        return output
    return max(output or 0, (sides[0] or 0) * (sides[1] or 0)) if min(side or 0 for side in sides) > 1 else None
