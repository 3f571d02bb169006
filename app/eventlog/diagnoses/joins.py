"""Rules about how queries join."""

import re
from collections.abc import Iterator
from typing import Final

from app.amounts import count, duration, size
from app.eventlog.diagnoses.query import QueryView, value
from app.eventlog.findings import Finding
from app.eventlog.operators import Operator

SHUFFLED_JOINS: Final = ("SortMergeJoin", "ShuffledHashJoin")
_KEEPS_SIZE: Final = ("Sort", "AQEShuffleRead", "Filter", "ReusedExchange")
_SIDES: Final = {
    "Inner": (0, 1),
    "Cross": (0, 1),
    "LeftOuter": (1,),
    "LeftSemi": (1,),
    "LeftAnti": (1,),
    "RightOuter": (0,),
}
"""Which sides of a join of a type Spark may broadcast: left is 0, right is 1. Source: Spark's `JoinSelectionHelper`."""
_NAMES: Final = ("left", "right")
_TYPE: Final = re.compile(rf"\b({'|'.join(_SIDES)})\b")
ROWS: Final = "number of output rows"
DATA_SIZE: Final = "data size"


def large_broadcast(view: QueryView) -> Iterator[Finding]:
    """A table that is sent to each executor is too large for that.

    Cost: the time in which the driver built and sent it; collecting it is work that a shuffle would do as well.
    """
    for exchange in view.operators:
        sent = value(exchange, DATA_SIZE)
        if exchange.name != "BroadcastExchange" or sent is None or sent <= view.limits.broadcast_bytes:
            continue
        parts = [part for name in ("time to build", "time to broadcast") if (part := value(exchange, name)) is not None]
        cost = sum(parts) if parts else None
        if not view.is_cheap(cost):
            rows = value(exchange, ROWS)
            told = "" if rows is None else f" ({count(rows)} rows)"
            took = "" if cost is None else f"; to build and to send it took {duration(cost)}"
            yield view.finding(
                "large_broadcast",
                f"broadcasts {size(sent)}{told} to each executor{took}",
                advice="Take the F.broadcast hint away, or lower spark.sql.autoBroadcastJoinThreshold and "
                "spark.sql.adaptive.autoBroadcastJoinThreshold; or broadcast only the rows and columns needed.",
                operator=exchange,
                numbers={"broadcast_bytes": sent} | ({} if rows is None else {"broadcast_rows": rows}),
                cost_ms=cost,
            )


def sort_merge_join_could_broadcast(view: QueryView) -> Iterator[Finding]:
    """A join that shuffles both sides, although one is small enough to be sent to each executor.

    Cost: the time that tasks spent on writing, fetching and sorting both sides, spread over all slots.
    """
    for join in view.operators:
        if not join.name.startswith(SHUFFLED_JOINS) or len(join.children) != 2:
            continue
        sides = [_shuffled(child) for child in join.children]
        sizes = [None if not side else value(side[-1], DATA_SIZE) for side in sides]
        small = _small_side(join, sizes, view.limits.broadcast_tiers)
        cost = view.spread(sum(_shuffle_ms(step) for side in sides for step in side))
        if small is not None and not view.is_cheap(cost):
            few, many = sizes[small] or 0, sizes[1 - small] or 0
            yield view.finding(
                "sort_merge_join_could_broadcast",
                f"{join.name} shuffles {size(few)} of its {_NAMES[small]} side and {size(many)} of the other",
                advice="Broadcast the small side: large.join(F.broadcast(small), ...), or raise "
                "spark.sql.autoBroadcastJoinThreshold above its size (and take away a merge or shuffle_hash hint).",
                operator=join,
                numbers={"small_side_bytes": few, "large_side_bytes": many},
                cost_ms=cost,
            )


def _small_side(join: Operator, sizes: list[float | None], tiers: tuple[tuple[int, int], ...]) -> int | None:
    """The side that could be broadcast beside the other one; None if neither, or if their sizes are not told."""
    found = _TYPE.search(join.text)
    left, right = sizes
    if left is None or right is None or found is None:
        return None
    small = 0 if left < right else 1
    few, many = min(left, right), max(left, right)
    fits = any(few < at_most and many > at_least for at_most, at_least in tiers)
    return small if fits and small in _SIDES[found[1]] else None


def _shuffled(operator: Operator) -> list[Operator]:
    """The steps from a side of a join down to its shuffle, none of which adds data; none if something else is there."""
    steps = [operator]
    while steps[-1].name != "Exchange":
        last = steps[-1]
        if len(last.children) != 1 or not (last.is_wrapper or last.name.startswith(_KEEPS_SIZE)):
            return []
        steps.append(last.children[0])
    return steps


def _shuffle_ms(step: Operator) -> float:
    return sum(value(step, name) or 0 for name in ("sort time", "shuffle write time", "fetch wait time"))


def cross_join(view: QueryView) -> Iterator[Finding]:
    """A join that compares each row of one side with each of the other.

    No cost: its tasks also do what comes before and after it.
    """
    for join in view.operators:
        is_nested = join.name.startswith(("CartesianProduct", "BroadcastNestedLoopJoin"))
        pairs = _pairs(join) if is_nested else None
        if pairs is not None and pairs >= view.limits.cross_join_pairs:
            yield view.finding(
                "cross_join",
                f"{join.name} makes at least {count(pairs)} pairs of rows",
                advice="Join on equal columns (join(other, 'key')), even if they only narrow the choice (a day, a "
                "bucket of a range), and put other conditions beside them; F.broadcast does not make fewer pairs.",
                operator=join,
                numbers={"pairs": pairs},
            )


def _pairs(join: Operator) -> float | None:
    """How many pairs a join has at least made: of the rows of both sides, or else what it gave.

    A cartesian product reads its sides many times, so that their rows tell nothing.
    """
    given = value(join, ROWS)
    sides = [_rows(child) for child in join.children]
    if join.name.startswith("CartesianProduct") or len(sides) != 2 or None in sides:
        return given
    return max(given or 0, (sides[0] or 0) * (sides[1] or 0)) if min(side or 0 for side in sides) > 1 else None


def _rows(operator: Operator) -> float | None:
    """How many rows it gives; operators that neither add nor drop rows do not count them."""
    rows = value(operator, ROWS)
    if rows is not None or not operator.children:
        return rows
    below = [_rows(child) for child in operator.children]
    return None if None in below else sum(rows or 0 for rows in below)
