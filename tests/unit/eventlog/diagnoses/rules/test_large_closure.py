from typing import Any

import pytest

from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.plans import Node, application, found, node, ran

NEVER: dict[str, Any] = {"cost_ms": 0, "cost_ratio": 0}
PLAN = "ArrowEvalPython [look(id#0L)#1], [pythonUDF0#2], 101"


def carried(ms: int = 14_000) -> Node:
    """Calls of a function, with what its workers took before the first rows."""
    return node("ArrowEvalPython", text=PLAN, number_of_output_rows=9, time_to_initialize_Python_workers=ms)


def test_a_function_that_carries_much_is_found() -> None:
    """Of 40 tasks on 4 cores, 36 unpickle it again; the cost is three quarters of that, half of it to all."""
    (finding,) = found(application(ran(1, carried(), tasks=39)), "large_closure", **NEVER)
    assert finding.text == (
        "Query 1 (Query 1): unpickles look, with all that it refers to, in each of 40 tasks: 14.0 s before their first "
        "rows, 350 ms each"
    )
    assert "data = sc.broadcast(data) of the SparkContext" in finding.advice
    assert 0 < (finding.cost_low_ms or 0) < (finding.cost_ms or 0) < (finding.cost_high_ms or 0)


@pytest.mark.parametrize(
    ("plan", "tasks"),
    [(carried(13_900), 39), (carried(), 6), (node("ArrowEvalPython", text=PLAN, number_of_output_rows=9), 39)],
    ids=["little in each", "few tasks", "not measured"],
)
def test_a_function_that_carries_little_is_not(plan: Node, tasks: int) -> None:
    """Nor one of a Spark that does not measure it."""
    assert found(application(ran(1, plan, tasks=tasks)), "large_closure", **NEVER) == []


def test_workers_that_are_started_for_each_task_are_another_cause() -> None:
    """They import packages each time, too."""
    setting = log.environment({"spark.python.worker.reuse": "false"})
    assert found(application([setting], ran(1, carried(), tasks=39)), "large_closure", **NEVER) == []


@pytest.mark.parametrize(("slowdown", "is_found"), [(1, True), (3, False)])
def test_what_new_workers_take_to_start_is_no_closure(slowdown: int, *, is_found: bool) -> None:
    """They import packages, 2.5 s for each of 4 cores at most, and more on a busy host."""
    app = application(ran(1, carried(20_000), tasks=39))
    app.deserialize_ms, app.deserialize_cpu_ns = 1000 * slowdown, 1_000_000_000
    assert bool(found(app, "large_closure", **NEVER)) == is_found
