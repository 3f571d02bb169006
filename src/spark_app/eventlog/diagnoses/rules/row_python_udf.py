"""A Python function that Spark calls for each row."""

from collections.abc import Iterator
from typing import Final

from spark_app.eventlog.diagnoses import trials
from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.entities import unmeasured_wait_ms
from spark_app.eventlog.model.operators import Operator, is_row_at_a_time, python_functions, value
from spark_app.eventlog.model.plan_names import OUTPUT_ROWS, PYTHON_TIMES
from spark_app.formatting import count, duration
from spark_app.redaction import excerpt

SAVED_RATIO: Final = 0.75
MIN_SAVED_RATIO: Final = 0.5
"""What a function of Spark saves of the time in Python, usually and at least."""
EXPENSIVE_CALL_US: Final = 250.0
"""A call that takes longer does more than a few operations with its row. Source: project."""
MAX_NAME: Final = 60


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
    Change: `pyspark.sql.functions`, or `F.pandas_udf`. Where a call takes a quarter of a millisecond or more, first
        what it does each time and could do once: load a model, open a file or a connection.
    Threshold: {python_udf_rows} (project).
    Cost: three quarters of the time in Python, divided by the mean number of running tasks. The log does not tell how
        long functions of Spark take for the same: the range is from half of the time to all of it (project). Where
        Spark does not measure the time (3.5), the cost is the run time in which the tasks had no processor and waited
        neither for a shuffle nor for garbage collection. That lacks what the JVM does to pass rows, so that it is at
        most that wait with the time on a processor.
    """
    for operator in view.operators:
        rows = value(operator, OUTPUT_ROWS)
        if not is_row_at_a_time(operator) or rows is None or rows < view.limits.python_udf_rows:
            continue
        names = [excerpt(name, MAX_NAME) for name in python_functions(operator)]
        measured = value(operator, *PYTHON_TIMES)
        is_measured = measured is not None
        time = measured if is_measured else _waited_ms(view, operator)
        call_us = 1000 * time / rows if time is not None and is_measured else 0.0
        each = f", {count(round(call_us))} µs a call" if call_us >= EXPENSIVE_CALL_US else ""
        took = "" if time is None else f"; tasks spent {'' if measured else 'at most '}{duration(time)} in Python{each}"
        yield view.finding(
            "row_python_udf",
            f"calls {' and '.join(names) or 'Python functions'} for each of {count(rows)} rows{took}",
            advice=_advice(", ".join(names) or "it", is_dear=call_us >= EXPENSIVE_CALL_US),
            operator=operator,
            numbers={"rows": rows} | ({} if time is None else {"python_task_ms": time}),
            cost_ms=view.wall_of(None if time is None else time * (SAVED_RATIO if is_measured else 1), operator),
            cause=", ".join(names),
        ).within(_between(view, operator, time, is_measured=is_measured))


def _advice(name: str, *, is_dear: bool) -> str:
    """What to do instead; what takes long in each call may be what is the same in all of them."""
    if not is_dear:
        return (
            f"Replace {name} by pyspark.sql.functions, which run in the JVM; or by F.pandas_udf, which is called once "
            "for thousands of rows."
        )
    return (
        f"Look what {name} does in each call and could do once for each worker: load a model, open a file or a "
        "connection. Put that into a function of its own with @functools.cache. If it computes all that time, replace "
        "it by pyspark.sql.functions, which run in the JVM, or by NumPy over whole columns in F.pandas_udf."
    )


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
