"""Python functions that carry much data, which each task unpickles anew before its first row."""

from collections.abc import Iterator
from typing import Final

from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model import contention
from spark_app.eventlog.model.operators import python_functions, value
from spark_app.formatting import count, duration
from spark_app.redaction import excerpt

INITIALIZING: Final = "time to initialize Python workers"
"""Spark's metric, from 4.0 on: from the start of a task in a worker to its first row."""
SAVED_RATIO: Final = 0.75
MIN_SAVED_RATIO: Final = 0.5
"""What a broadcast saves of it, usually and at least: each worker unpickles that once, and not each task."""
START_MS: Final = 2500
"""What a new worker takes at most to import what a function needs, on a processor of its own (project: pandas and
pyarrow take 0.5 to 1.5 s)."""
MAX_NAME: Final = 60
REUSE: Final = "spark.python.worker.reuse"


@rule(
    adds=("tasks", "initializing_ms"),
    limits={
        "closure_tasks": Limit(8, "Large closures: tasks with the function, at least.", ge=2),
        "closure_ms": Limit(100.0, "Large closures: time before the first row of a task, on average, at least.", ge=0),
    },
)
def large_closure(view: QueryView) -> Iterator[Finding]:
    """Python functions that carry much data, which each task unpickles anew before its first row.

    Evidence: the functions, their tasks, and the time that workers took before the first row of each.
    Why: Spark sends a function with all that it refers to, such as a dictionary or a model, and each task unpickles
        that again, also in a worker that has done so before.
    Change: `sparkContext.broadcast(data)` once, and `.value` in the function: a worker keeps it for all its tasks. Or
        fewer tasks; or load it in the function once for each process (`functools.cache`).
    Threshold: {closure_tasks} tasks, and {closure_ms} before the first row of each, beyond what new workers take: 2.5 s
        for each core of all executors, times the slowdown of a busy host (project: a worker imports packages once for
        all its tasks, unless `spark.python.worker.reuse` is off, where the rule says nothing).
    Cost: that time without once for each slot, times three quarters, divided by the mean number of running tasks; at
        least half of it, at most all (project).
    """
    if view.settings.get(REUSE, "true").lower() == "false":
        return
    for operator in view.operators:
        initializing = value(operator, INITIALIZING)
        tasks = sum(len(stage.durations_ms) for stage in view.stages_of(operator))
        least_ms = tasks * view.limits.closure_ms + _starting_ms(view)
        if initializing is None or tasks < view.limits.closure_tasks or initializing < least_ms:
            continue
        names = [excerpt(name, MAX_NAME) for name in python_functions(operator)]
        shown = " and ".join(names) or "a Python function"
        again = initializing * max(0.0, 1 - (view.app.slots or 1) / tasks)
        least, usual, most = (view.wall_of(again * ratio, operator) for ratio in (MIN_SAVED_RATIO, SAVED_RATIO, 1))
        yield view.finding(
            "large_closure",
            f"unpickles {shown}, with all that it refers to, in each of {count(tasks)} tasks: "
            f"{duration(initializing)} before their first rows, {duration(initializing / tasks)} each",
            advice=f"Broadcast the data that {shown} uses: data = sc.broadcast(data) of the SparkContext before the "
            "function, and data.value in it; a worker then keeps it for all its tasks.",
            operator=operator,
            numbers={"tasks": tasks, "initializing_ms": initializing},
            cost_ms=usual,
            cause=", ".join(names),
        ).within((least, most))


def _starting_ms(view: QueryView) -> float:
    """What the workers of all executors took to start, at most: an executor that was lost had its own."""
    ended = view.query.ended or view.query.started
    slowdown = max(1.0, contention.slowdown_between(view.app, view.query.started, ended) or 1.0)
    return START_MS * slowdown * sum(executor.cores for executor in view.app.executors.values())
