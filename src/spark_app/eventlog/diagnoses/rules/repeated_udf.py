"""A Python function that one query calls several times for the same rows."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import rule
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.operators import MAX_TEXT, PYTHON, Operator, value
from spark_app.eventlog.model.plan_names import EXPRESSION_ID, OUTPUT_ROWS, PYTHON_TIMES, parts
from spark_app.formatting import count, duration, quantity
from spark_app.redaction import excerpt

MIN_SAVED_RATIO: Final = 0.5
MAX_NAME: Final = 60
_CALLS: Final = re.compile(r"EvalPython \[(.*)\], \[pythonUDF", re.DOTALL)
"""What an operator calls: `ArrowEvalPython [score(amount#2)#7], [pythonUDF0#10], 101`."""
_RESULT: Final = re.compile(r"\)#\d+L?$")
"""The id of the result of a call, which only copies of the same call have."""


@rule(explains=("row_python_udf",), explains_in="query")
def repeated_udf(view: QueryView) -> Iterator[Finding]:
    """A Python function that one query calls several times for the same rows.

    Evidence: the call, how often the plan has it, and the rows and the time in Python of all but the first.
    Why: Spark takes a function for deterministic and cheap. It puts a copy of the call wherever the column is used: in
        a filter before it, and in each column that is computed of it.
    Change: `asNondeterministic()` of the function, which Spark then calls once for each row.
    Threshold: two operators with the same call, by the id of its result, one of which reads from the other.
        Explained by it: `row_python_udf` of the same query, which comes behind it.
    Cost: the time in Python of these operators, without the one that took longest, divided by the mean number of
        running tasks. Of an operator with several calls, each has the same part. Operators of a task call Python side
        by side: together they have at most the run time of the tasks, and less the more cores had no task, on which
        they cost no time. At least half of it is saved (project).
    """
    for call, operators in _repeated(view).items():
        times = sorted(_time(operator) for operator in operators)
        again = sum(times[:-1])
        least, cost = _wall_ms(view, operators, again, sum(times))
        rows = sum(value(operator, OUTPUT_ROWS) or 0 for operator in operators[1:])
        name = excerpt(call.partition("(")[0], MAX_NAME)
        shown = excerpt(EXPRESSION_ID.sub("", call), MAX_NAME)
        yield view.finding(
            "repeated_udf",
            f"calls {shown} in {quantity(len(operators), 'operator')} for the same rows: Spark has copied the call to "
            f"where its column is used, such as a filter; all but the first took {count(rows)} rows, and tasks spent "
            f"{duration(again)} in Python again",
            advice=f"Declare {name} as {name} = {name}.asNondeterministic() (of the udf or pandas_udf): Spark then "
            "calls it once for each row, and filters by its result.",
            operator=operators[0],
            numbers={"calls": len(operators), "rows": rows, "python_task_ms": again},
            cost_ms=cost,
            cause=call.partition("(")[0],
        ).within((least, cost))


def _wall_ms(view: QueryView, operators: Sequence[Operator], again: float, whole: float) -> tuple[float | None, ...]:
    """What the repeated calls cost at least, and usually."""
    run_ms = view.run_ms(operators[0])
    side_by_side = again if not run_ms or not whole else min(again, run_ms * again / whole)
    saved = side_by_side * _crowded(view, operators)
    return view.wall_of(MIN_SAVED_RATIO * saved, *operators), view.wall_of(saved, *operators)


def _crowded(view: QueryView, operators: Sequence[Operator]) -> float:
    """Which share of the repeated calls had to share a core; 1 where the log does not tell.

    Each operator of a task has a Python worker of its own: on cores without a task, they run beside each other.
    """
    usages = [stage.usage for stage in view.stages_of(operators[0]) if stage.usage is not None]
    task_ms, busy_ms = sum(usage.task_ms for usage in usages), sum(usage.busy_ms for usage in usages)
    slots = max((usage.slots or 0.0 for usage in usages), default=0.0)
    if not task_ms or not busy_ms or not slots:
        return 1.0
    workers = task_ms / busy_ms * len(operators) / slots
    return (1 - 1 / max(1.0, workers)) / (1 - 1 / len(operators)) if workers < len(operators) else 1.0


def _repeated(view: QueryView) -> Mapping[str, list[Operator]]:
    """The calls that several operators make of which one reads from the other, each with these; the first is lowest."""
    known = defaultdict[str, list[Operator]](list)
    for operator in reversed(view.operators):
        for call in _calls(operator):
            below = known[call]
            if not below or any(each.accumulables == below[-1].accumulables for each in operator.below()):
                below.append(operator)
    return {call: operators for call, operators in known.items() if len(operators) > 1}


def _calls(operator: Operator) -> list[str]:
    """The calls of an operator with the ids of their results."""
    found = _CALLS.search(operator.text[:MAX_TEXT]) if PYTHON.search(operator.name) else None
    return [each for each in parts(found[1]) if _RESULT.search(each)] if found else []


def _time(operator: Operator) -> float:
    return (value(operator, *PYTHON_TIMES) or 0.0) / max(1, len(_calls(operator)))
