from typing import Any

import pytest

from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.plans import Node, application, found, node, ran

NEVER: dict[str, Any] = {"cost_ms": 0, "cost_ratio": 0}


def called(call: str, *below: Node, result: int, ms: int, rows: int) -> Node:
    """An operator that calls a function for so many rows."""
    text = f"ArrowEvalPython [{call}], [pythonUDF0#{result}], 101"
    own: dict[str, Any] = {"number_of_output_rows": rows, "time_to_execute_Python_code": ms}
    return node("ArrowEvalPython", *below, text=text, **own)


def filtered(first: str, second: str) -> Node:
    """A filter of what a function computes, and the function once more above it."""
    below = called(first, result=9, ms=20_000, rows=3000)
    above = node("Filter", below, text="Filter (pythonUDF0#9 > 10.0)", number_of_output_rows=2000)
    return called(second, above, result=10, ms=12_000, rows=2000)


def test_a_call_that_is_copied_is_found() -> None:
    """The shorter one is saved; that the function is called for each row follows."""
    call = "score(amount#2, cast(id#0L as string))#7"
    finding, other = found(application(ran(1, filtered(call, call))), "repeated_udf", "row_python_udf", **NEVER)
    assert finding.text == (
        "Query 1 (Query 1): calls score(amount, cast(id as string)) in 2 operators for the same rows: Spark has copied "
        "the call to where its column is used, such as a filter; all but the first took 2,000 rows, and tasks spent "
        "12.0 s in Python again"
    )
    assert "score = score.asNondeterministic()" in finding.advice
    assert finding.numbers == {"calls": 2, "rows": 2000, "python_task_ms": 12_000}
    assert (other.rule, other.because) == ("row_python_udf", "repeated_udf")


@pytest.mark.parametrize(
    "second", ["score(amount#2)#8", "score(amount#3)#8", "score(pythonUDF0#9)#8"], ids=["own", "column", "result"]
)
def test_other_calls_are_not(second: str) -> None:
    """Two calls that the program made have ids of their own: closures may have equal names."""
    assert found(application(ran(1, filtered("score(amount#2)#7", second))), "repeated_udf", **NEVER) == []


def test_calls_side_by_side_are_for_other_rows() -> None:
    """As those of the sides of a union, none of which reads from the other."""
    sides = [called("score(amount#2)#7", result=result, ms=20_000, rows=3000) for result in (9, 10)]
    assert found(application(ran(1, node("Union", *sides))), "repeated_udf", **NEVER) == []


@pytest.mark.parametrize(("tasks", "is_found"), [(4, True), (1, False)], ids=["all cores", "one of four"])
def test_calls_on_cores_without_a_task_cost_no_time(tasks: int, *, is_found: bool) -> None:
    """Two workers of one task run beside each other there."""
    call = "score(amount#2)#7"
    lines = ran(1, filtered(call, call))
    at = next(place for place, line in enumerate(lines) if line["Event"] == "SparkListenerTaskEnd")
    times: dict[str, Any] = {"Launch Time": 70_000, "Finish Time": 90_000}
    ends = [log.task(number, 1, **times) for number in range(tasks)]
    for end in ends:
        end["Task Metrics"] |= {"Executor Run Time": 20_000}
    lines[at : at + 1] = [*log.starts(ends), *ends]
    assert bool(found(application(lines), "repeated_udf", cost_ms=1000, cost_ratio=0)) == is_found
