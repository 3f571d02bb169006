"""A join on equal columns that makes many rows of few."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from spark_app.eventlog.diagnoses import aggregates
from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import Alert, Limit, rule
from spark_app.eventlog.diagnoses.shuffle_cost import shared_ms
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.operators import Operator, rows_of, rows_through, value
from spark_app.eventlog.model.plan_names import EXPRESSION_ID, OUTPUT_ROWS, SHUFFLED_JOINS, parts
from spark_app.formatting import count
from spark_app.redaction import excerpt

MAX_KEYS: Final = 200
"""Characters of the names of the columns."""
MIN_CARRIED: Final = 0.5
"""An operator carries the rows of a join if it takes or makes at least this share of them. Project."""
_JOINS: Final = (*SHUFFLED_JOINS, "BroadcastHashJoin")
_KEYS: Final = re.compile(r"Join \[(.*?)\], \[(.*?)\], (?:Inner|LeftOuter|RightOuter|FullOuter)", re.DOTALL)


class _Joined(NamedTuple):
    """The rows that a join made of two sides, and the columns of each that must be equal."""

    join: Operator
    left: float
    right: float
    rows: float
    left_keys: list[str]
    right_keys: list[str]

    @property
    def equal(self) -> str:
        """What must be equal: `customer`, `buyer = id, day`."""
        pairs = zip(self.left_keys, self.right_keys, strict=False)
        return excerpt(", ".join(left if left == right else f"{left} = {right}" for left, right in pairs), MAX_KEYS)


@rule(
    explains=("spill", "gc_pressure"),
    explains_in="query",
    limits={
        "join_rows_ratio": Limit(10.0, "Exploding join: its rows over those of its larger side, at least.", gt=1),
        "join_rows": Limit(1e7, "Exploding join: rows that it makes, at least.", ge=1),
    },
    alert=Alert("SparkRowsMultiplied"),
)
def exploding_join(view: QueryView) -> Iterator[Finding]:
    """A join on equal columns that makes many rows of few.

    Evidence: the rows of both sides, those of the join, and its columns.
    Why: a key that many rows of both sides have makes a row for each pair of them: 30,000 rows of a default value on
        each side are 900 million.
    Change: look which key it is, by counting the rows of each key. Filter out a default value, or join its rows apart;
        drop the duplicates of a side that should have one row for each key; or aggregate a side before the join.
    Threshold: {join_rows_ratio} times as many rows as its larger side, and {join_rows} (project). `cross_join` reports
        joins without equal columns, whose pairs are compared one by one.
        Explained by it: `spill` and `gc_pressure` of the same queries, which come behind it.
    Cost: the run time of the stages of the join and of what carries its rows, shared among their operators by the rows
        that pass them, without the part of so many rows as its larger side has; divided by the mean number of running
        tasks.
    """
    for joined in _joined(view):
        side = max(joined.left, joined.right)
        if joined.rows < max(view.limits.join_rows, view.limits.join_rows_ratio * side):
            continue
        steps = [joined.join, *_carriers(view, joined)]
        yield view.finding(
            "exploding_join",
            f"{joined.join.name} makes {count(joined.rows)} rows of {count(joined.left)} and {count(joined.right)}, "
            f"on {joined.equal}: some key has many rows on both sides",
            advice=f"Look which key it is: left.{_grouped(joined.left_keys)}.count().orderBy(F.desc('count')).show(), "
            f"and right.{_grouped(joined.right_keys)}. Filter out a default value (an empty text, 'unknown', 0) before "
            "the join, or join its rows apart; drop the duplicates of a side that should have one row for each key; "
            "or aggregate a side before the join.",
            operator=joined.join,
            numbers={"left_rows": joined.left, "right_rows": joined.right, "joined_rows": joined.rows},
            cost_ms=view.wall_of(shared_ms(view, steps) * (1 - side / joined.rows), *steps),
            cause=joined.equal,
        )


def _joined(view: QueryView) -> Iterator[_Joined]:
    """The joins on equal columns whose rows are known."""
    for join in view.operators:
        keys = _KEYS.search(join.text) if join.name.startswith(_JOINS) else None
        rows, sides = value(join, OUTPUT_ROWS), [rows_of(each) for each in join.inputs]
        if keys is not None and rows is not None and len(sides) == 2 and None not in sides:
            yield _Joined(join, sides[0] or 0.0, sides[1] or 0.0, rows, *map(_columns, keys.groups()))


def _carriers(view: QueryView, joined: _Joined) -> list[Operator]:
    """The operators that the rows of a join pass."""
    above = aggregates.above(view, joined.join)
    return [each for each in above if not each.is_wrapper and rows_through(each) >= MIN_CARRIED * joined.rows]


def _columns(keys: str) -> list[str]:
    """The columns of one side, as they are in the plan."""
    return list(parts(EXPRESSION_ID.sub("", keys)))


def _grouped(columns: Iterable[str]) -> str:
    """How a side is counted by columns: `groupBy('customer')`."""
    named = ", ".join(f"'{each}'" if each.isidentifier() else f'F.expr("{each}")' for each in columns)
    return f"groupBy({excerpt(named, MAX_KEYS)})"
