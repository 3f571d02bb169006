from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spark_app.annexes.tune.outputs import Output, difference, outputs, unrepeatable
from spark_app.eventlog import reader
from spark_app.eventlog.model.application import Application
from tests.eventlogs import golden
from tests.unit.eventlog import log

EVENTLOGS = Path(__file__).parents[3] / "eventlogs"
OVERWRITES = "Execute InsertIntoHadoopFsRelationCommand file:/w/out, false, Parquet, [path=/w/out], Overwrite, [id, n]"
INTO = "Execute InsertIntoHadoopFsRelationCommand"


def query(number: int, name: str, text: str = "", **more: Any) -> Mapping[str, Any]:
    """A query whose plan begins with an operator."""
    arguments = text.removeprefix(f"{name} ")
    description = f"(1) {name}\nArguments: {arguments}\n\n"
    plan = {"nodeName": name, "simpleString": text or name, "children": [], "metrics": [], **more}
    return log.query(number) | {"sparkPlanInfo": plan, "physicalPlanDescription": description}


def application(*queries: Mapping[str, Any]) -> Application:
    """An application with some queries."""
    return log.application([log.started(), *map(dict, queries)])


def test_a_program_that_only_reads_may_run_again() -> None:
    """So may one that makes views, or writes to nowhere."""
    app = application(
        query(1, "Execute CreateViewCommand"), query(2, "Project"), query(3, "OverwriteByExpression", "noop-table Noop")
    )
    assert unrepeatable(app) == []


def test_a_program_that_overwrites_may_run_again() -> None:
    """It leaves the same files."""
    assert unrepeatable(application(query(1, INTO, OVERWRITES))) == []


@pytest.mark.parametrize(
    ("mode", "why"), [("Append", "adds rows to /w/out"), ("ErrorIfExists", "fails if it runs again, since there is")]
)
def test_a_program_that_adds_rows_must_not_run_again(mode: str, why: str) -> None:
    """The reason names the query, its command and the place."""
    (reason,) = unrepeatable(application(query(1, INTO, OVERWRITES.replace("Overwrite", mode))))
    assert reason.startswith("query 1 (")
    assert f"InsertIntoHadoopFsRelationCommand {why}" in reason


def test_what_was_read_before_must_not_be_overwritten() -> None:
    """A second run would read what the first has written."""
    scan = {"Location": "InMemoryFileIndex(1 paths)[file:/w/out]"}
    read, write = query(1, "Scan parquet", metadata=scan), query(2, INTO, OVERWRITES.replace("path=/w", "path=file:/w"))
    assert "which was read before" in unrepeatable(application(read, write))[0]
    assert unrepeatable(application(dict(write), dict(read))) == []


def test_every_write_to_a_place_outside_spark_is_refused() -> None:
    """As recorded: Kafka and JDBC; so are merges, updates, deletes, and streaming queries."""
    reasons = " ".join(unrepeatable(reader.read(EVENTLOGS / "sources.zst").app))
    for command in ("writes to clicks outside Spark", "MergeIntoCommand changes", "UpdateCommand", "DeleteCommand"):
        assert command in reasons
    assert "streaming query" in reasons
    assert "hunter2" not in reasons


def test_rdds_that_save_files_must_not_run_again(tmp_path: Path) -> None:
    """No query writes them; Spark refuses a folder that exists."""
    app = reader.read(golden.log("4.2.0", "plain", tmp_path)).app
    written = [stage for stage in app.stages.values() if app.query_of(app.job_of(stage)) is None]
    written[0].totals.output_bytes = 10
    assert any("of RDDs save files" in reason for reason in unrepeatable(app))


def test_an_output_has_the_rows_that_its_command_counted() -> None:
    """And the names of its columns."""
    metric = {"name": "number of output rows", "accumulatorId": 7, "metricType": "sum"}
    app = application(query(1, INTO, OVERWRITES, metrics=[metric]))
    app.queries[1].numbers[7] = 42
    assert outputs(app) == {"/w/out": [Output("id, n", 42)]}


def test_a_difference_names_the_place_and_both_figures() -> None:
    """Rows, columns, and how often something was written."""
    one = {"/w/out": [Output("id", 5)]}
    assert difference(one, {"/w/out": [Output("id", 5)]}) is None
    assert difference(one, {"/w/out": [Output("id", 6)]}) == "/w/out: 6 rows instead of 5"
    assert difference(one, {"/w/out": [Output("key", 5)]}) == "/w/out: columns key instead of id"
    assert difference(one, {}) == "/w/out: 0 writes instead of 1"


def test_names_that_a_run_makes_up_are_the_same_output() -> None:
    """A time or a random id in a path."""
    first, second = (
        outputs(application(query(1, INTO, OVERWRITES.replace("/w/out", f"/w/run-{at}")))) for at in (17001, 17002)
    )
    assert difference(first, second) is None
