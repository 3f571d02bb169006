import pytest

from spark_app.eventlog.model import repeated_work
from spark_app.eventlog.model.repeated_work import RepeatedStep
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.plans import Node, application, node, ran
from tests.unit.eventlog.log import Line

SECONDS = 1000
TASKS = 10
"""Of each query; each runs for a part of a second."""


def grouped(
    *, ids: int = 0, where: str = "", keys: str = "shop", source: str = "/sales", result: str = "sum", files: int = 4
) -> Node:
    """Sums of sales by shop, with the ids of a query; a filter of columns may stand before."""
    metadata = {"Location": f"InMemoryFileIndex(1 paths)[file:{source}]"}
    rows = node(
        "Scan csv ", text="FileScan csv", metadata=metadata, number_of_output_rows=1000, number_of_files_read=files
    )
    if where:
        rows = node(
            "Filter", rows, text=f"Filter ({where}#{ids if where == keys else ids + 1} = 3)", number_of_output_rows=100
        )
    names = f"keys=[{keys}#{ids}]"
    part = node(
        "HashAggregate",
        node("Project", rows, text=f"Project [shop#{ids}, (price#{ids + 1} * 2) AS price#{ids + 2}]"),
        text=f"HashAggregate({names}, functions=[partial_{result}(price#{ids + 2})])",
        number_of_output_rows=10,
    )
    text = f"HashAggregate({names}, functions=[{result}(price#{ids + 2})])"
    return node("HashAggregate", node("Exchange", part, data_size=9), text=text, number_of_output_rows=10)


def works(*plans: Node) -> list[RepeatedStep]:
    """What several queries with these plans have computed."""
    lines: list[list[Line]] = [ran(number, plan, tasks=TASKS) for number, plan in enumerate(plans)]
    return application(*lines).repeated_work.steps


def test_the_same_groups_are_known_in_each_query() -> None:
    """The ids of columns differ, and a filter of what is grouped by may stand before: Spark puts it there."""
    (work,) = works(grouped(), grouped(ids=70), node("Sort", grouped(ids=90, where="shop")))
    assert list(work.places) == [0, 1, 2]
    assert work.source_rows == 1000
    assert [took.rows for took in work.places.values()] == [1000, 1000, 100]
    assert work.repeated == pytest.approx(1 - 1000 / 2100)


@pytest.mark.parametrize(
    "other",
    [
        grouped(ids=70, where="price"),
        grouped(ids=70, keys="day"),
        grouped(ids=70, source="/returns"),
        grouped(ids=70, result="max"),
        grouped(ids=70, files=5),
        node("InMemoryTableScan", grouped(ids=70), number_of_output_rows=9),
        node("Scan csv ", number_of_output_rows=1000),
    ],
    ids=["other rows", "other groups", "other files", "new files", "another result", "a cache", "a scan alone"],
)
def test_other_groups_are_not_the_same(other: Node) -> None:
    """Keeping the ones would not give the others."""
    assert not works(grouped(), other)


def test_a_filter_of_what_a_window_parts_rows_by_may_stand_before_it() -> None:
    """A filter of other columns changes what the window sees."""

    def ranked(ids: int, where: str = "") -> Node:
        rows = node("Range", text="Range (0, 1000, step=1)", number_of_output_rows=1000)
        if where:
            rows = node("Filter", rows, text=f"Filter NOT ({where}#{ids} = 3)", number_of_output_rows=900)
        text = f"Window [row_number() windowspecdefinition(a#{ids}, b#{ids}) AS n#9], [a#{ids}], [b#{ids} ASC]"
        return node("Window", rows, text=text, rows=900)

    assert works(ranked(1), ranked(70, "a"))
    assert not works(ranked(1), ranked(70, "b"))


@pytest.mark.parametrize(
    ("name", "where", "is_known"),
    [("ArrowEvalPython", "x", True), ("MapInPandas", "x", False), ("MapInPandas", "", True)],
)
def test_python_functions_of_the_same_rows_are_known(name: str, where: str, *, is_known: bool) -> None:
    """A filter may stand before a function of each row, and not before one of all rows."""

    def called(ids: int, where: str = "") -> Node:
        rows = node("Scan csv ", text="FileScan csv", number_of_output_rows=1000)
        if where:
            rows = node("Filter", rows, text=f"Filter ({where}#{ids} > 3)", number_of_output_rows=100)
        return node(name, rows, text=f"{name} [price(x#{ids})#{ids + 1}]", number_of_output_rows=100)

    assert bool(works(called(1), called(70, where))) == is_known


def test_rows_that_the_program_gives_spark_may_be_others_each_time() -> None:
    """The log has their columns, and no name."""

    def counted(ids: int) -> Node:
        rows = node("LocalTableScan", text=f"LocalTableScan [shop#{ids}]", number_of_output_rows=1000)
        return node("HashAggregate", rows, text=f"HashAggregate(keys=[shop#{ids}], functions=[count(1)])", rows=9)

    assert not works(counted(1), counted(70))


def test_queries_that_each_compute_another_part_repeat_nothing() -> None:
    """A hundred rows each, of a thousand."""
    (work,) = works(grouped(where="shop"), grouped(ids=70, where="shop"))
    assert work.repeated == 0


def stages(*, times: int = 3, cached: bool = False, query: bool = False, source: int = 5) -> list[RepeatedStep]:
    """What stages of RDDs have computed that one line of a program runs, each from a shuffle and a function."""
    lines: list[Line] = [log.started(), log.executor()]
    for number in range(times):
        begin = source + number * (source != 5)
        properties = {"spark.sql.execution.id": "0"} if query else {}
        rdds = [_rdd(10 + number, 6), _rdd(6, begin, is_cached=cached), _rdd(begin)]
        over = log.stage(number, end=4000)
        over["Stage Info"] |= {"RDD Info": rdds}
        lines += [log.job(number, [number], **properties), log.stage(number), log.task(number, number, seconds=1), over]
        lines += [log.job_ended(number, time=4000)]
    return log.application(lines).repeated_work.steps


def _rdd(number: int, *parents: int, is_cached: bool = False) -> Line:
    level = {"Use Disk": is_cached, "Use Memory": is_cached}
    return {"RDD ID": number, "Name": "r", "Number of Partitions": 1, "Parent IDs": parents, "Storage Level": level}


def test_stages_of_a_line_that_begin_with_the_same_rdds_are_known() -> None:
    """The last RDD of each is another one, as each action has its own."""
    (work,) = stages()
    assert work.is_of_rdds
    assert work.name == "save at job.py:7"
    assert {number: took.most_ms for number, took in work.places.items()} == {0: 900, 1: 900, 2: 900}
    assert work.most_ms == pytest.approx(1800)


def test_stages_that_read_a_cache_or_other_rdds_or_run_for_queries_are_not() -> None:
    """They compute something else each time, or their query tells."""
    assert not stages(cached=True)
    assert not stages(source=20)
    assert not stages(query=True)


def test_only_so_many_steps_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for one, each of two steps in turn is forgotten before it comes again."""
    plans = [grouped(ids=70 * number, source="/sales" if number % 2 else "/returns") for number in range(4)]
    assert len(works(*plans)) == 2
    monkeypatch.setattr(repeated_work, "MAX_REMEMBERED", 1)
    assert works(*plans) == []


def test_a_cache_is_known_by_what_filled_it() -> None:
    """Its operator has the names of columns, which another cache may have, too."""
    first, second = (node("Scan csv ", number_of_output_rows=1000) for _ in range(2))

    def counted(ids: int, filled: Node) -> Node:
        text = f"InMemoryTableScan [shop#{ids}]"
        rows = node("InMemoryTableScan", filled, text=text, number_of_output_rows=1000)
        return node("HashAggregate", rows, text=f"HashAggregate(keys=[shop#{ids}], functions=[count(1)])", rows=9)

    assert not works(counted(1, first), counted(70, second))
    assert works(counted(1, first), counted(70, first))
