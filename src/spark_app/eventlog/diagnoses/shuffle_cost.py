"""What tasks spend on shuffling and sorting rows."""

from collections.abc import Sequence
from typing import Final

from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.model.operators import Operator, rows_of, rows_through, value
from spark_app.eventlog.model.plan_names import DATA_SIZE, SHUFFLE_WRITE_TIME, SORT_TIME
from spark_app.eventlog.model.repeated_reads import ran_in

_MEASURED: Final = (SORT_TIME, SHUFFLE_WRITE_TIME, "fetch wait time")
_ROW_NS: Final = 500
_BYTE_NS: Final = 1.5
"""The most that a row, and a byte of it, take of a processor in a shuffle, and in a sort. Project: what rows of 250
bytes take in the pair `recorded-sort-merge-join-could-broadcast` of `truth/`, whose JVM is slow on purpose."""


def shuffle_ms(view: QueryView, steps: Sequence[Operator]) -> float:
    """The task time that shuffles, and the sorts behind them, have taken; an estimate.

    Spark measures a part only: the writing to disks, the waiting for blocks, and the sorting without the copying of the
    rows before it. The rest (to serialise, hash, compress, decompress and copy rows) is a part of the run time of the
    tasks that write and read the shuffles. So each of their stages shares its run time among the operators that ran in
    it, by the rows that passed them, and these operators get their shares. That is too much where another operator does
    much with each row, so that there is a limit for a row; it is longer where tasks waited for a processor or for
    garbage collection.

    Args:
        view: The query.
        steps: Its `Exchange` and `Sort` operators.
    """
    measured = sum(value(step, name) or 0 for step in steps for name in _MEASURED)
    return max(measured, min(shared_ms(view, steps), _most_ms(steps) * _stretch(_stages(view, steps))))


def shared_ms(view: QueryView, steps: Sequence[Operator]) -> float:
    """The share that some operators have of the run time of the stages that they ran in, by the rows of all of them."""
    return sum(stage.totals.run_ms * _share(view, stage, steps) for stage in _stages(view, steps))


def _stages(view: QueryView, steps: Sequence[Operator]) -> list[StageAttempt]:
    """The stages that any of some operators ran in."""
    stages = {(stage.info.id, stage.info.attempt): stage for step in steps for stage in view.stages_of(step)}
    return list(stages.values())


def _share(view: QueryView, stage: StageAttempt, steps: Sequence[Operator]) -> float:
    """The share of some operators in all rows that passed the operators of a stage."""
    chosen = {step.accumulables for step in steps}
    ran = [operator for operator in view.operators if not operator.is_wrapper and ran_in(operator, stage)]
    passed = [(rows_through(operator), operator.accumulables in chosen) for operator in ran]
    total = sum(rows for rows, _ in passed)
    return sum(rows for rows, is_chosen in passed if is_chosen) / total if total else 0.0


def _most_ms(steps: Sequence[Operator]) -> float:
    """The most time on a processor that shuffles and sorts can have taken."""
    return sum((rows_of(step) or 0) * _ROW_NS + _size(step) * _BYTE_NS for step in steps) / 1e6


def _size(step: Operator) -> float:
    """The bytes that a shuffle wrote; those of the shuffle that a sort read."""
    sizes = (value(each, DATA_SIZE) for each in (step, *step.below()))
    return next((size for size in sizes if size is not None), 0)


def _stretch(stages: Sequence[StageAttempt]) -> float:
    """How many times longer the tasks of some stages took than they had a processor; 1 where that is unknown."""
    run_ms = sum(stage.totals.run_ms for stage in stages)
    cpu_ms = sum((stage.totals.cpu_ns or 0) / 1e6 for stage in stages)
    return max(1.0, run_ms / cpu_ms) if cpu_ms else 1.0
