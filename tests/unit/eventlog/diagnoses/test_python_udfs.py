import pytest

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
    app = application(ran(1, node(name, text=text, number_of_output_rows=10**6)))
    assert bool(found(app, "row_python_udf")) == is_found


def test_its_cost_is_at_most_the_time_in_python() -> None:
    """Two minutes of tasks on 4 cores; starting the workers is no part of it."""
    times: Node = {"time_to_execute_Python_code": 2 * MINUTE, "time_to_run_Python_workers": 3 * MINUTE}
    app = application(ran(1, node("BatchEvalPython", number_of_output_rows=10**6, **times)))
    (finding,) = found(app, "row_python_udf")
    assert finding.cost_ms == MINUTE / 2
    assert finding.numbers == {"rows": 10**6, "python_task_ms": 2 * MINUTE}


def test_a_function_whose_results_were_there_was_not_called_again() -> None:
    """The same plan, collected twice: what it shuffled is there, and its numbers are those of the first time."""
    plan = node("Exchange", node("BatchEvalPython", number_of_output_rows=10**6))
    app = application(ran(1, plan), ran(2, plan, counts=node("Project")))
    assert [finding.query for finding in found(app, "row_python_udf")] == [1]


def test_few_rows_and_little_time_are_none() -> None:
    """Whatever the other is."""
    slow = node("BatchEvalPython", number_of_output_rows=99_999, time_to_execute_Python_code=MINUTE)
    quick = node("BatchEvalPython", number_of_output_rows=10**6, time_to_execute_Python_code=10_000)
    assert not found(application(ran(1, slow), ran(2, quick), ran(3, node("BatchEvalPython"))), "row_python_udf")
