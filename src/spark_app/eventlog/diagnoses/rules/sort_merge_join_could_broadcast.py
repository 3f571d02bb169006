"""A sort-merge or shuffled hash join with one small side."""

import re
from collections.abc import Iterator
from typing import Final

from spark_app.eventlog.diagnoses import settings_advice, trials
from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import GIB, MIB, Limit, rule
from spark_app.eventlog.diagnoses.shuffle_cost import shuffle_ms
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.operators import Operator, value
from spark_app.eventlog.model.plan_names import (
    DATA_SIZE,
    EXCHANGE,
    REUSED_EXCHANGE,
    SHUFFLE_READ,
    SHUFFLED_JOINS,
)
from spark_app.formatting import size

_SORT: Final = "Sort"
_KEEPS_SIZE: Final = (_SORT, SHUFFLE_READ, "Filter", REUSED_EXCHANGE)
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


@rule(
    explains=("gc_pressure", "spill"),
    explains_in="query",
    limits={
        "broadcast_tiers": Limit(
            ((10 * MIB, 10 * MIB), (100 * MIB, 10 * GIB), (1000 * MIB, 300 * GIB)),
            "Sort-merge join: one side is below the first size and the other above the second, in one of these pairs.",
        ),
    },
    cause="broadcast_missing",
    tries=(trials.BROADCAST,),
)
def sort_merge_join_could_broadcast(view: QueryView) -> Iterator[Finding]:
    """A sort-merge or shuffled hash join with one small side.

    Evidence: the shuffle bytes of both sides.
    Why: a broadcast of the small side saves the shuffle of the large one.
    Change: `large.join(F.broadcast(small), ...)`, or a `spark.sql.autoBroadcastJoinThreshold` above its size; where it
        is -1, broadcasts are off, and the text says so.
    Threshold: `broadcast_tiers`: below 10 MiB where the other side is larger than that, 100 MiB above 10 GiB, 1000 MiB
        above 300 GiB (DataFlint, without its last pair, 5 GiB above 1 TiB: `large_broadcast` would object). The rule
        ignores a side that an outer join preserves, because Spark cannot broadcast it, and a side whose size the plan
        does not contain.
        Explained by it: `gc_pressure` and `spill` of the same queries, which come behind it: sorts fill the memory.
    Cost: the time that tasks spent on writing, reading and sorting both sides, divided by the mean number of running
        tasks. Spark measures a small part of it: the writing to disks, the waiting for blocks, and the sorting without
        the copying of rows. So the run time of each stage that writes or reads a side is shared among its operators by
        the rows that pass them, and the shuffles and sorts get their part: at most 0.5 µs of a processor for a row and
        1.5 ns for a byte of it in each of them (project), longer where tasks waited for a processor or for garbage
        collection. In a recorded program with three such joins, the estimate is between half and all of what the same
        program without them saves (`tests/integration/test_planted_causes.py`).
    """
    for join in view.operators:
        if not join.name.startswith(SHUFFLED_JOINS) or len(join.inputs) != 2:
            continue
        sides = [_shuffled(child) for child in join.inputs]
        sizes = [None if not side else value(side[-1], DATA_SIZE) for side in sides]
        small = _small_side(join, sizes, view.limits.pairs("broadcast_tiers"))
        steps = [step for side in sides for step in _moves(side)]
        if small is not None:
            few, many = sizes[small] or 0, sizes[1 - small] or 0
            yield view.finding(
                "sort_merge_join_could_broadcast",
                f"{join.name} shuffles {size(few)} of its {_NAMES[small]} side and {size(many)} of the other",
                advice=f"{settings_advice.allow_broadcast(view.settings)}Broadcast the small side: "
                "large.join(F.broadcast(small), ...), or raise spark.sql.autoBroadcastJoinThreshold above its size "
                "(and remove a merge or shuffle_hash hint).",
                operator=join,
                numbers={"small_side_bytes": few, "large_side_bytes": many},
                cost_ms=view.wall_of(shuffle_ms(view, steps), join, *steps),
            )


def _small_side(join: Operator, sizes: list[float | None], tiers: tuple[tuple[int, int], ...]) -> int | None:
    """The side that Spark could broadcast; None if it can broadcast neither, or if the plan lacks a size."""
    join_type = _TYPE.search(join.text)
    left, right = sizes
    if left is None or right is None or join_type is None:
        return None
    small = 0 if left < right else 1
    few, many = min(left, right), max(left, right)
    fits = any(few < at_most and many > at_least for at_most, at_least in tiers)
    return small if fits and small in _SIDES[join_type[1]] else None


def _shuffled(operator: Operator) -> list[Operator]:
    """The operators from a side of a join down to its shuffle; empty if another operator may change the data size."""
    steps = [operator]
    while steps[-1].name != EXCHANGE:
        last = steps[-1]
        if len(last.inputs) != 1 or not (last.is_wrapper or last.name.startswith(_KEEPS_SIZE)):
            return []
        steps.append(last.inputs[0])
    return steps


def _moves(side: list[Operator]) -> list[Operator]:
    """The shuffle and the sorts of a side of a join; without a shuffle that is reused, which is needed anyway."""
    is_reused = any(step.name == REUSED_EXCHANGE for step in side)
    return [step for step in side if step.name == _SORT or (step.name == EXCHANGE and not is_reused)]
