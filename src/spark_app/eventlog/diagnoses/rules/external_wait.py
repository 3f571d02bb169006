"""Tasks that waited most of their run time for something outside Spark: a service, a sleep, a lock, slow storage."""

from collections.abc import Iterator
from typing import Final

from spark_app.eventlog.diagnoses import limits, outside_wait, storage_wait
from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import rule
from spark_app.eventlog.diagnoses.stage import StageView
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.operators import Operator, is_row_at_a_time, python_functions, value
from spark_app.eventlog.model.plan_names import OUTPUT_ROWS
from spark_app.eventlog.model.repeated_reads import ran_in
from spark_app.formatting import count, duration
from spark_app.redaction import excerpt

MAX_NAME: Final = 60
_FEWER_CALLS: Final = (
    "Look for calls of services, sleeps, locks and slow storage in the functions of the stage: ask for many rows at "
    "once, keep connections, ask at the same time (threads, asyncio), or run more tasks at once, since a task that "
    "waits needs no processor."
)


@rule(
    explains=("row_python_udf",),
    explains_in="query",
    limits={
        "external_wait_ratio": limits.EXTERNAL_WAIT_RATIO,
        "disk_bytes_per_second": limits.DISK_BYTES_PER_SECOND,
        "cpu_unmeasured_ratio": limits.CPU_UNMEASURED_RATIO,
    },
)
def external_wait(view: StageView) -> Finding | None:
    """Tasks that waited most of their run time for something outside Spark: a service, a sleep, a lock, slow storage.

    An info, since many jobs have to ask a service.

    Evidence: the wait, the run time, and the time on a processor; the Python function that is called for each row.
    Why: each task holds a core while it waits.
    Change: ask for many rows at once, keep connections, ask at the same time, or run more tasks at once, since a task
        that waits needs no processor. A function of many rows, as of `mapInPandas`, can ask for all of them at once.
    Threshold: at least {external_wait_ratio} of the run time (project: most of it). The wait is the run time without
        the time on a processor, garbage collection and waits for a shuffle; attempts that were killed or failed do not
        count. What else may explain it is subtracted: the bytes that were read, written and spilled, at
        `disk_bytes_per_second`; the time that Python workers were on a processor or waited for one; and the wait for a
        processor, which is the time on one times the slowdown of `cpu_starvation`, and four times that where it is two
        or more, or nobody measured the host (project); a stage whose tasks were deserialised too fast to tell is as
        slow as the application. Of stages that run Python, the rule says nothing where nobody measured the workers,
        because the log does not tell whether their functions compute or wait: `spark-app observe` samples those of a
        local master each second (`/proc/*/task/*/schedstat`). Threads that a task starts itself, as native libraries
        do, count as a wait. Where only the storage of files explains the wait, `slow_storage` has it instead.
        Explained by it: `row_python_udf` of the same query, which comes behind it: the calls wait.
    Cost: the wait, divided by the mean number of running tasks.
    """
    wait = outside_wait.outside_wait(view)
    if wait is None or storage_wait.moved(view, wait) is not None:
        return None
    name, rows = next(_row_functions(view), ("", 1.0))
    called = f": {name} is called for each of {count(rows)} rows, and waits about {duration(wait.least_ms / rows)} each"
    return view.finding(
        "external_wait",
        f"its tasks waited about {duration(wait.least_ms)} of {duration(wait.run_ms)} of run time for something "
        f"outside Spark{called if name else ''}",
        advice=_advice(name) if name else _FEWER_CALLS,
        numbers={"waited_task_ms": wait.least_ms, "run_task_ms": wait.run_ms, "cpu_task_ms": wait.worked_ms},
        cost_ms=view.wall_of(wait.least_ms),
        severity="info",
    )


def _row_functions(view: StageView) -> Iterator[tuple[str, float]]:
    """The Python functions that the stage calls for each row, and for how many rows."""
    query = view.app.query_of(view.app.job_of(view.stage))
    operators = () if query is None else QueryView(view.app, query, view.limits).operators
    for operator in operators:
        rows, name = value(operator, OUTPUT_ROWS), _name(operator)
        if rows and name and is_row_at_a_time(operator) and ran_in(operator, view.stage):
            yield name, rows


def _name(operator: Operator) -> str:
    return " and ".join(excerpt(name, MAX_NAME) for name in python_functions(operator))


def _advice(name: str) -> str:
    """What to do about a function that waits at each row."""
    return (
        f"Let {name} ask for many rows at once: df.mapInPandas(function, schema) gives a function thousands of rows, "
        "so that one request takes a list of them, and keeps its connection. Where the service takes one at a time, "
        "ask for several at the same time there (threads, asyncio), or run more tasks at once, since a task that waits "
        "needs no processor."
    )
