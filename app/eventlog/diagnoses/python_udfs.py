"""Rules about Python functions in queries."""

import re
from collections.abc import Iterator
from typing import Final

from app.amounts import count, duration
from app.eventlog.diagnoses.query import QueryView, value
from app.eventlog.findings import Finding
from app.eventlog.operators import Operator

TIMES: Final = ("time to execute Python code", "time to run Python workers")
"""Task time in Python workers, as far as a version of Spark tells it; 3.5 does not."""
ARROW_BATCHED: Final = "101"
"""PySpark's `SQL_ARROW_BATCHED_UDF`: a plain udf whose rows travel in Arrow batches, the default from 4.2 on."""
_EVAL_TYPE: Final = re.compile(r", (\d+)$")


def row_python_udf(view: QueryView) -> Iterator[Finding]:
    """A Python function that is called once for each row.

    Cost: the time of tasks in Python, spread over all slots: the most that can be saved, as vectorised code takes a
    part of it, too. Unknown where Spark does not tell it.
    """
    for operator in view.operators:
        rows = value(operator, "number of output rows")
        if not _is_row_at_a_time(operator) or rows is None or rows < view.limits.python_udf_rows:
            continue
        time = value(operator, *TIMES)
        cost = view.spread(time)
        if not view.is_cheap(cost):
            took = "" if time is None else f"; tasks spent {duration(time)} in Python"
            yield view.finding(
                "row_python_udf",
                f"calls Python functions for each of {count(rows)} rows{took}",
                advice="Use functions of pyspark.sql.functions, which need no Python; or F.pandas_udf, which is called "
                "once for thousands of rows.",
                operator=operator,
                numbers={"rows": rows} | ({} if time is None else {"python_task_ms": time}),
                cost_ms=cost,
            )


def _is_row_at_a_time(operator: Operator) -> bool:
    if operator.name != "ArrowEvalPython":
        return operator.name == "BatchEvalPython"
    found = _EVAL_TYPE.search(operator.text)
    return found is not None and found[1] == ARROW_BATCHED
