import pytest

from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.plans import Node, application, found, node, ran
from tests.unit.eventlog.log import Line

NEVER: dict[str, float] = {"cost_ms": 1e9, "cost_ratio": 1}


def overwrite(
    day: str = "2026-01-01 AS day#1",
    *,
    path: str = "file:/days",
    mode: str = "Overwrite",
    columns: str = "[day#1]",
    options: str = "",
    partitions: int = 1,
) -> Node:
    """A write of rows of a day, partitioned by it."""
    command = "Execute InsertIntoHadoopFsRelationCommand"
    kept = f'[__partition_columns=["day"], path=days{options}]'
    text = f"{command} {path}, false, {columns}, Parquet, {kept}, {mode}, [id, day]"
    rows = node("Project", text=f"Project [id#0L, {day}]")
    return node(command, node("WriteFiles", rows), text=text, number_of_dynamic_part=partitions)


def findings(*plans: Node, before: tuple[Line, ...] = ()) -> list[str]:
    """The texts of what is found of queries that write one after the other."""
    queries = [line for number, plan in enumerate(plans, 1) for line in ran(number, plan)]
    return [each.text for each in found(application([*before, *queries]), "overwritten_partitions", **NEVER)]


def test_a_write_of_a_day_that_removes_another_day_is_found() -> None:
    """Of three days, the last one is left: one finding names the folder, the columns and the setting, at any cost."""
    days = [overwrite(f"2026-01-0{number} AS day#1") for number in (1, 2, 3)]
    (text,) = findings(*days)
    assert text == (
        "Query 2 (Query 2, writes file:/days): overwrites file:/days, which is partitioned by day, with one partition, "
        "and so removes the one that query 1 (Query 1, writes file:/days) has written there: "
        "spark.sql.sources.partitionOverwriteMode is static; with 1 more place (query 3)"
    )


def test_a_day_that_the_plan_does_not_name_may_be_another() -> None:
    """As where the rows were filtered by it."""
    assert findings(overwrite("day#1"), overwrite("day#1"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (overwrite(), overwrite()),
        (overwrite(path="file:/others"), overwrite("2026-01-02 AS day#1")),
        (overwrite(mode="Append"), overwrite("2026-01-02 AS day#1")),
        (overwrite(), overwrite("2026-01-02 AS day#1", mode="Append")),
        (overwrite(), overwrite("2026-01-02 AS day#1", options=", partitionoverwritemode=DYNAMIC")),
        (overwrite(partitions=9), overwrite("2026-01-02 AS day#1", partitions=9)),
        (overwrite(columns="[]"), overwrite(columns="[]")),
    ],
    ids=["the same day", "another folder", "appended", "appends", "dynamic", "all at once", "without partitions"],
)
def test_a_write_that_removes_what_it_should_is_not(first: Node, second: Node) -> None:
    """The same day again, all days at once, another folder, or no overwrite."""
    assert findings(first, second) == []


def test_a_session_that_overwrites_by_partition_is_not() -> None:
    """The setting is that of the application, or of the query."""
    days = [overwrite(), overwrite("2026-01-02 AS day#1")]
    dynamic = log.environment({"spark.sql.sources.partitionOverwriteMode": "DYNAMIC"})
    assert findings(*days, before=(dynamic,)) == []
