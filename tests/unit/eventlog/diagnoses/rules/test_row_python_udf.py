from typing import Any

import pytest

from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.plans import MINUTE, Node, application, found, node, ran

ARROW = "ArrowEvalPython [f(id#0L)#1L], [pythonUDF0#2L], "


@pytest.mark.parametrize(
    ("name", "text", "is_found"),
    [
        ("BatchEvalPython", "BatchEvalPython [f(id#0L)#1L], [pythonUDF0#2L]", True),
        ("ArrowEvalPython", ARROW + "101", True),
        ("ArrowEvalPython", ARROW + "200", False),
        ("ArrowEvalPython", ARROW + "204", False),
        ("ArrowEvalPython", "ArrowEvalPython", False),
        ("MapInPandas", "MapInPandas f(id#0L), 101", False),
    ],
)
def test_a_function_is_called_by_row_where_spark_says_so(name: str, text: str, *, is_found: bool) -> None:
    """Eval type 101 is a plain udf over Arrow, 200 a pandas_udf, 204 one over an iterator."""
    plan = node(name, text=text, number_of_output_rows=10**6, time_to_execute_Python_code=MINUTE)
    app = application(ran(1, plan))
    assert bool(found(app, "row_python_udf")) == is_found


def test_its_cost_is_the_time_in_python() -> None:
    """Three quarters of two minutes of tasks on 4 cores, half to all of them; starting the workers is no part of it."""
    times: Node = {"time_to_execute_Python_code": 2 * MINUTE, "time_to_run_Python_workers": 3 * MINUTE}
    app = application(ran(1, node("BatchEvalPython", number_of_output_rows=10**6, **times)))
    (finding,) = found(app, "row_python_udf")
    assert finding.cost_ms == 0.75 * MINUTE / 2
    assert (finding.cost_low_ms, finding.cost_high_ms) == (MINUTE / 4, MINUTE / 2)
    assert finding.numbers == {"rows": 10**6, "python_task_ms": 2 * MINUTE}


def test_its_cost_is_by_the_tasks_that_ran_and_not_by_the_cores() -> None:
    """A minute in Python of the only task that ran on 4 cores is at most a minute."""
    lines = ran(1, node("BatchEvalPython", number_of_output_rows=10**6, time_to_execute_Python_code=MINUTE - 1000))
    at = next(place for place, line in enumerate(lines) if line["Event"] == "SparkListenerTaskEnd")
    info: dict[str, Any] = {"Launch Time": 70_000, "Finish Time": 70_000 + MINUTE - 1000}
    end = log.task(0, 1, **info)
    start = {"Event": "SparkListenerTaskStart", "Stage ID": 1, "Stage Attempt ID": 0, "Task Info": end["Task Info"]}
    lines[at:at] = [start]
    lines[at + 1] = end
    (finding,) = found(application(lines), "row_python_udf")
    assert finding.cost_high_ms == MINUTE - 1000


def test_its_cost_is_the_wait_of_its_tasks_where_spark_does_not_measure_it() -> None:
    """Of 81 ms of run time, 1 ms was at work in the JVM."""
    lines = ran(1, node("BatchEvalPython", number_of_output_rows=10**6))
    ends = next(line for line in lines if line["Event"] == "SparkListenerTaskEnd")
    ends["Task Metrics"] |= {"Executor Run Time": 81, "Executor CPU Time": 1_000_000}
    (finding,) = found(application(lines), "row_python_udf", cost_ms=0, cost_ratio=0)
    assert finding.numbers["python_task_ms"] == 80
    assert (finding.cost_ms, finding.cost_high_ms) == (80 / 4, 81 / 4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("BatchEvalPython [tidy(name#0)#1], [pythonUDF0#2L]", "calls tidy for each of"),
        ("BatchEvalPython [<lambda>(id#0L)#1L, score(cast(id#0L as int))#3], [p]", "calls <lambda> and score for"),
        ("BatchEvalPython", "calls Python functions for each of"),
    ],
)
def test_functions_are_named(text: str, words: str) -> None:
    """Those that Spark calls, and not what computes their arguments."""
    plan = node("BatchEvalPython", text=text, number_of_output_rows=10**6, time_to_execute_Python_code=MINUTE)
    (finding,) = found(application(ran(1, plan)), "row_python_udf")
    assert words in finding.text


def test_a_function_whose_results_were_there_was_not_called_again() -> None:
    """The same plan, collected twice: what it shuffled is there, and its numbers are those of the first time."""
    called = node("BatchEvalPython", number_of_output_rows=10**6, time_to_execute_Python_code=MINUTE)
    plan = node("Exchange", called)
    app = application(ran(1, plan), ran(2, plan, counts=node("Project")))
    assert [finding.query for finding in found(app, "row_python_udf")] == [1]


def test_few_rows_and_little_time_are_none() -> None:
    """Whatever the other is."""
    slow = node("BatchEvalPython", number_of_output_rows=999, time_to_execute_Python_code=MINUTE)
    quick = node("BatchEvalPython", number_of_output_rows=10**6, time_to_execute_Python_code=10_000)
    assert not found(application(ran(1, slow), ran(2, quick), ran(3, node("BatchEvalPython"))), "row_python_udf")


@pytest.mark.parametrize(("calls", "is_dear"), [(10**6, False), (10_000, True)])
def test_what_a_dear_call_does_each_time_may_be_done_once(calls: int, *, is_dear: bool) -> None:
    """A minute of a million calls is 60 µs each, which code over columns avoids; of 10,000 it is 6 ms each."""
    plan = node("BatchEvalPython", number_of_output_rows=calls, time_to_execute_Python_code=MINUTE)
    (finding,) = found(application(ran(1, plan)), "row_python_udf")
    assert ("6,000 µs a call" in finding.text) == is_dear
    assert ("load a model, open a file or a connection" in finding.advice) == is_dear
