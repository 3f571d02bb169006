"""The plan of a query has the numbers that this query has caused, each once; what it reused is marked."""

from typing import Any, Final

import pytest
from msgspec import Raw

from spark_app.eventlog.model.entities import Query
from spark_app.eventlog.model.operators import MAX_OPERATORS, Operator, own_plan_of, python_functions
from spark_app.eventlog.spans import MAX_PLAN
from tests.unit.eventlog.log import SQL, Line, ended, job, job_ended, query, query_ended, read, stage, started

Node = dict[str, Any]
DEEP: Final = 430
"""About as deep as a plan can be decoded."""
OF_QUERY: Final = "spark.sql.execution.id"


def node(name: str, number: int | None = None, *children: Node) -> Node:
    """An operator that counts rows, if it is given a number."""
    metrics = [] if number is None else [{"name": "rows", "accumulatorId": number, "metricType": "sum"}]
    return {"nodeName": name, "simpleString": "", "metrics": metrics, "children": list(children)}


FILLS: Final = node("Scan csv", 1)
PLANS: Final = [node("InMemoryTableScan", 10 + number, FILLS) for number in range(3)]


def run(number: int, plan: Node, counted: dict[int, int], *, cached: int | None = None, root: int | None = None,
        jobs_query: int | None = None) -> list[Line]:  # fmt: skip
    """A query with one stage, which may read or fill an RDD that is cached."""
    done = stage(number, end=2900)
    done["Stage Info"] |= {"Accumulables": [{"ID": key, "Name": "r", "Value": str(n)} for key, n in counted.items()]}
    level = {"Use Disk": False, "Use Memory": True, "Deserialized": True, "Replication": 1}
    rdds = [] if cached is None else [{"RDD ID": cached, "Name": "c", "Storage Level": level}]
    done["Stage Info"]["RDD Info"] = rdds
    asked = {OF_QUERY: str(number if jobs_query is None else jobs_query)}
    return [
        query(number, root=root) | {"sparkPlanInfo": plan}, job(number, [number], **asked), stage(number), done,
        job_ended(number), query_ended(number),
    ]  # fmt: skip


def plans(*lines: Line) -> dict[int, dict[str, tuple[bool, str]]]:
    """Of each query its operators: whether they are reused, and the rows that they counted."""
    app, _ = read([started(), *lines, ended()])
    return {number: shown(own_plan_of(query).root) for number, query in app.queries.items()}


def shown(root: Operator) -> dict[str, tuple[bool, str]]:
    """Whether each operator is reused, and its rows."""
    return {operator.name: (operator.is_reused, str(operator.numbers.get("rows", ""))) for _, operator in root.walk()}


def test_what_filled_a_cache_is_told_of_the_query_that_filled_it() -> None:
    """The next one has read the cache: what is below has no numbers there, and a mark."""
    found = plans(*run(0, PLANS[0], {1: 100, 10: 5}, cached=7), *run(1, PLANS[1], {11: 6}, cached=7))
    assert found[0] == {"InMemoryTableScan": (False, "5"), "Scan csv": (False, "100")}
    assert found[1] == {"InMemoryTableScan": (False, "6"), "Scan csv": (True, "")}


def test_a_query_that_fills_the_rest_of_a_cache_does_not_take_all_for_its_own() -> None:
    """Spark counts on from query to query: how much was the second's is not known; the first has what it had."""
    found = plans(*run(0, PLANS[0], {1: 40, 10: 5}, cached=7), *run(1, PLANS[1], {1: 100, 11: 6}, cached=7))
    assert [found[number]["Scan csv"] for number in range(2)] == [(False, "40"), (True, "")]


def test_a_cache_that_was_filled_without_rows_is_not_reused_by_who_filled_it() -> None:
    """It has counted nothing; neither is a cache that nobody is known to have filled."""
    assert plans(*run(0, PLANS[0], {10: 0}, cached=7))[0]["Scan csv"] == (False, "")
    assert plans(*run(0, PLANS[0], {10: 0}))[0]["Scan csv"] == (False, "")
    filled_by_a_job = run(0, PLANS[0], {1: 9}, cached=7, jobs_query=5)
    assert plans(*filled_by_a_job, *run(1, PLANS[1], {11: 6}, cached=7))[1]["Scan csv"] == (True, "")


@pytest.mark.parametrize("kind", ["ReusedExchange", "ReusedSubquery"])
def test_what_a_plan_shows_twice_has_its_numbers_once(kind: str) -> None:
    """Where it ran."""
    exchange = node("Exchange", 1, node("Scan csv", 2))
    app, _ = read([started(), *run(0, node("Union", 3, exchange, node(kind, None, exchange)), {1: 4, 2: 4}), ended()])
    rows = [(operator.name, *shown(operator)[operator.name]) for _, operator in own_plan_of(app.queries[0]).root.walk()]
    assert rows == [
        ("Union", False, ""), ("Exchange", False, "4"), ("Scan csv", False, "4"),
        (kind, False, ""), ("Exchange", True, ""), ("Scan csv", True, ""),
    ]  # fmt: skip


def test_a_dataframe_that_is_asked_twice_has_each_time_what_it_did_then() -> None:
    """Its operators have the same ids, and count anew; what the second one did not run again is absent."""
    plan = node("Project", 1, node("Exchange", 2))
    found = plans(*run(0, plan, {1: 10, 2: 30}), *run(1, plan, {1: 20}))
    assert found[0] == {"Project": (False, "10"), "Exchange": (False, "30")}
    assert found[1] == {"Project": (False, "20"), "Exchange": (False, "")}


def test_what_a_part_of_a_query_has_counted_is_told_of_the_whole() -> None:
    """A batch of a stream is read by the queries that the program makes of it; what ends after it is nobody's."""
    whole = [query(0) | {"sparkPlanInfo": node("Scan csv", 1)}]
    part = run(1, node("Project", 2), {1: 8, 2: 8}, root=0)
    late = run(2, node("Project", 3), {1: 9, 3: 1}, root=0)
    found = plans(*whole, *part, query_ended(0), *late)
    assert [found[number] for number in range(3)] == [
        {"Scan csv": (False, "8")}, {"Project": (False, "8")}, {"Project": (False, "1")},
    ]  # fmt: skip


def test_what_the_driver_counts_is_told_of_the_query_that_it_was_for() -> None:
    """Files of a scan; -1 stands for what was never set."""
    kind = SQL.replace("ListenerSQL", "ListenerDriverAccumUpdates")
    numbers = {"Event": kind, "executionId": 0, "accumUpdates": [[1, 3], [2, -1]]}
    plan = node("Scan csv", 1, node("Exchange", 2))
    begun = [query(number) | {"sparkPlanInfo": plan} for number in range(2)]
    assert plans(*begun, numbers, query_ended(0), query_ended(1)) == {
        0: {"Scan csv": (False, "3"), "Exchange": (False, "")}, 1: {"Scan csv": (False, ""), "Exchange": (False, "")},
    }  # fmt: skip


def test_a_span_shows_what_is_reused() -> None:
    """In the text of its plan."""
    _, spans = read([
        started(), *run(0, PLANS[0], {1: 9}, cached=7), *run(1, PLANS[1], {11: 6}, cached=7), ended(),
    ])  # fmt: skip
    assert spans["sql 0"].attributes["spark.sql.plan"] == "InMemoryTableScan\n  Scan csv [rows 9]"
    assert spans["sql 1"].attributes["spark.sql.plan"] == "InMemoryTableScan [rows 6]\n  Scan csv (reused)"


@pytest.mark.parametrize(
    ("plan", "marks"),
    [
        (node("Union", None, *(node("Scan") for _ in range(MAX_OPERATORS))), [True]),
        (node("Union", None, *(node("Scan") for _ in range(MAX_OPERATORS - 1))), []),
        (node("x" * (MAX_PLAN + 1)), [True]),
        (node("x" * MAX_PLAN), []),
    ],
)
def test_a_plan_that_is_cut_says_so(plan: Node, marks: list[bool]) -> None:
    """By its operators or by its text; it is never longer than what is kept."""
    _, spans = read([started(), query(0) | {"sparkPlanInfo": plan}, query_ended(0), ended()])
    known = spans["sql 0"].attributes
    assert [value for key, value in known.items() if key == "spark.sql.plan.truncated"] == marks
    assert len(str(known["spark.sql.plan"])) <= MAX_PLAN


def test_a_plan_may_be_as_deep_as_it_is_long() -> None:
    """One operator below the other, and all of it in a cache that is read again."""
    names = ["InMemoryTableScan", *["Project"] * DEEP]
    plan = "".join(f'{{"nodeName":"{name}","children":[' for name in names) + "]}" * len(names)
    found = own_plan_of(Query(0, None, 0, "", "", Raw(plan.encode()), reads_cache=True))
    marks = [operator.is_reused for _, operator in found.root.walk()]
    assert (marks, found.is_cut) == ([False, *[True] * DEEP], False)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("BatchEvalPython [fails(length(reflect(x, (id#1L))))#4L, b(c#2)#5], [pythonUDF0#6L]", ["fails", "b"]),
        ("ArrowEvalPython [<lambda>((id#15L + 1))#2], [pythonUDF0#5], 200", ["<lambda>"]),
        ("FlatMapGroupsInPandas [k#1], shop.cleaned(k#1, v#2)#9, [k#3, v#4]", ["shop.cleaned"]),
        ("HashAggregate(keys=[k#1], functions=[sum(v#2)])", []),
        ("BatchEvalPython [f(a#1)#2, g(b", ["f"]),
        ("", []),
    ],
)
def test_python_functions_are_those_whose_results_have_an_id(text: str, names: list[str]) -> None:
    """Functions of Spark in their arguments have none."""
    assert python_functions(Operator("x", text, {}, {})) == names
