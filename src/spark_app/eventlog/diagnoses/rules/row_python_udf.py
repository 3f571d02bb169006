"""A Python function that Spark calls for each row."""

import re
from collections.abc import Iterator
from typing import Final

from spark_app.eventlog.diagnoses import trials
from spark_app.eventlog.diagnoses.query import QueryView, value
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.entities import unmeasured_wait_ms
from spark_app.eventlog.model.operators import Operator, python_functions
from spark_app.eventlog.model.plan_names import OUTPUT_ROWS, PYTHON_TIME
from spark_app.formatting import count, duration
from spark_app.redaction import excerpt

TIMES: Final = ("time to execute Python code", PYTHON_TIME)
"""The metrics of task time in Python workers; Spark 3.5 has none."""
ARROW_BATCHED: Final = "101"
"""PySpark's `SQL_ARROW_BATCHED_UDF`: a plain udf that gets its rows in Arrow batches, the default from 4.2 on."""
SAVED_RATIO: Final = 0.75
MIN_SAVED_RATIO: Final = 0.5
"""What a function of Spark saves of the time in Python, usually and at least."""
MAX_NAME: Final = 60
_EVAL_TYPE: Final = re.compile(r", (\d+)$")


@rule(
    adds=("rows", "python_task_ms"),
    limits={"python_udf_rows": Limit(1000, "Python functions row by row: calls, at least.", ge=1)},
    tries=(trials.ARROW_UDFS,),
)
def row_python_udf(view: QueryView) -> Iterator[Finding]:
    """A Python function that Spark calls for each row.

    In plans it is `BatchEvalPython`, and `ArrowEvalPython` of eval type 101, which a plain `udf` becomes by default
    from Spark 4.2 on.

    Evidence: the names of the functions, rows, and the time of tasks in Python.
    Why: each call costs microseconds, which code over columns avoids.
    Change: `pyspark.sql.functions`, or `F.pandas_udf`.
    Threshold: {python_udf_rows} (project).
    Cost: three quarters of the time in Python, divided by the mean number of running tasks. The log does not tell how
        long functions of Spark take for the same: the range is from half of the time to all of it (project). Where
        Spark does not measure the time (3.5), the cost is the run time in which the tasks had no processor and waited
        neither for a shuffle nor for garbage collection. That lacks what the JVM does to pass rows, so that it is at
        most that wait with the time on a processor.
    """
    for operator in view.operators:
        rows = value(operator, OUTPUT_ROWS)
        if not _is_row_at_a_time(operator) or rows is None or rows < view.limits.python_udf_rows:
            continue
        names = [excerpt(name, MAX_NAME) for name in python_functions(operator)]
        measured = value(operator, *TIMES)
        is_measured = measured is not None
        time = measured if is_measured else _waited_ms(view, operator)
        took = "" if time is None else f"; tasks spent {'' if measured else 'at most '}{duration(time)} in Python"
        yield view.finding(
            "row_python_udf",
            f"calls {' and '.join(names) or 'Python functions'} for each of {count(rows)} rows{took}",
            advice=f"Replace {', '.join(names) or 'it'} by pyspark.sql.functions, which run in the JVM; or by "
            "F.pandas_udf, which is called once for thousands of rows.",
            operator=operator,
            numbers={"rows": rows} | ({} if time is None else {"python_task_ms": time}),
            cost_ms=view.wall_of(None if time is None else time * (SAVED_RATIO if is_measured else 1), operator),
            cause=", ".join(names),
        ).within(_between(view, operator, time, is_measured=is_measured))


def _between(
    view: QueryView,
    operator: Operator,
    time: float | None,
    *,
    is_measured: bool,
) -> tuple[float, float] | None:
    """The least and the most wall-clock time that it may cost; None if that is unknown."""
    if time is None:
        return None
    passing = 0.0 if is_measured else sum((each.totals.cpu_ns or 0) / 1e6 for each in view.stages_of(operator))
    low, high = view.wall_of(time * MIN_SAVED_RATIO, operator), view.wall_of(time + passing, operator)
    return None if low is None or high is None else (low, high)


def _waited_ms(view: QueryView, operator: Operator) -> float | None:
    """The run time in which the tasks of an operator waited for something that Spark does not measure."""
    stages = view.stages_of(operator)
    return float(sum(unmeasured_wait_ms(stage.totals) for stage in stages)) if stages else None


def _is_row_at_a_time(operator: Operator) -> bool:
    if operator.name != "ArrowEvalPython":
        return operator.name == "BatchEvalPython"
    eval_type = _EVAL_TYPE.search(operator.text)
    return eval_type is not None and eval_type[1] == ARROW_BATCHED
