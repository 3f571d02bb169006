import uuid
from typing import Any, Final

import pytest

from spark_app.annexes.lineage.datasets import Field
from spark_app.annexes.lineage.runs import JobRun, LineageRun, lineage_runs
from spark_app.runs.column_lineage import Origin, TableColumns
from tests.unit.eventlog import log
from tests.unit.report import made

RUN: Final = "11111111-2222-4333-8444-555555555555"
PARENT: Final = {"JobNamespace": "airflow", "JobName": "dag.task", "RunId": RUN}


def of_plan(number: int, plan: dict[str, Any], **fields: Any) -> log.Line:
    """A query of a plan begins."""
    return log.query(number) | {"sparkPlanInfo": plan} | fields


def reading(path: str) -> dict[str, Any]:
    """A scan of a folder."""
    metadata = {"Location": f"InMemoryFileIndex(1 paths)[{path}]", "ReadSchema": "struct<id:int>"}
    return {"nodeName": "Scan parquet ", "simpleString": "FileScan", "metadata": metadata, "children": []}


def writing(path: str, *children: dict[str, Any]) -> dict[str, Any]:
    """A command that writes a folder."""
    name = "Execute InsertIntoHadoopFsRelationCommand"
    text = f"{name} {path}, false, Parquet, [path={path}], Overwrite, [id]"
    return {"nodeName": name, "simpleString": text, "children": list(children)}


COPY: Final = of_plan(1, writing("file:/out", reading("file:/in")))


def runs(lines: list[log.Line], **changes: Any) -> list[LineageRun]:
    """The runs of an application of these lines."""
    app = log.application([log.environment(changes.pop("properties", {})), log.started(), *lines])
    for name, value in changes.items():
        setattr(app, name, value)
    return lineage_runs(app)


def test_a_query_that_copies_reads_one_place_and_writes_another() -> None:
    """It is a job of its own below that of the application."""
    whole, query = runs([COPY, log.query_ended(1), log.ended()])
    assert (whole.job.name, whole.state, whole.inputs, whole.outputs, whole.parent) == (
        "shop",
        "COMPLETE",
        (),
        (),
        None,
    )
    assert query.parent == whole.job
    assert query.job.name == "shop.execute_insert_into_hadoop_fs_relation_command.out"
    (read,), (written,) = query.inputs, query.outputs
    assert (read.name, written.name) == ("/in", "/out")
    assert [(column.name, column.type) for column in read.columns + written.columns] == [("id", "int"), ("id", None)]


def test_the_parts_of_a_query_are_one_run() -> None:
    """A command runs a query that reads for it, and another that writes; the path is known better than the table."""
    table = of_plan(1, {"nodeName": "Execute CreateDataSourceTableAsSelectCommand", "simpleString": ""})
    table |= {"physicalPlanDescription": "(1) CreateDataSourceTableAsSelectCommand\nArguments: `db`.`out`\n\n"}
    part = of_plan(2, writing("file:/warehouse/out", reading("file:/in")), rootExecutionId=1)
    _, query = runs([table, part, log.query_ended(2), log.query_ended(1), log.ended()])
    assert [each.name for each in (*query.inputs, *query.outputs)] == ["/in", "/warehouse/out"]


def test_a_query_without_a_place_is_left_out() -> None:
    """A list of numbers that is counted is no lineage."""
    assert len(runs([log.query(1), log.query_ended(1), log.ended()])) == 1


@pytest.mark.parametrize(
    ("lines", "changes", "states"),
    [
        ([log.query_ended(1), log.ended()], {}, ["COMPLETE", "COMPLETE"]),
        ([log.query_ended(1, error="no space"), log.ended()], {}, ["FAIL", "FAIL"]),
        ([], {}, ["RUNNING", "RUNNING"]),
        ([], {"is_alive": True}, ["RUNNING", "RUNNING"]),
        ([], {"is_alive": False}, ["ABORT", "ABORT"]),
        ([log.ended()], {"process_exit_code": 3}, ["FAIL", "ABORT"]),
    ],
    ids=("done", "failed", "open", "alive", "killed", "left"),
)
def test_a_run_ends_as_its_query_or_application_did(
    lines: list[log.Line], changes: dict[str, Any], states: list[str]
) -> None:
    """What has no end in the log is not called complete."""
    assert [run.state for run in runs([COPY, *lines], **changes)] == states


def test_an_error_is_told_without_its_secrets() -> None:
    """Of the query that failed, and of its application."""
    for run in runs([COPY, log.query_ended(1, error="password=hunter2 is wrong"), log.ended()]):
        assert run.error == "password=(redacted) is wrong"


def test_who_started_the_application_is_its_parent() -> None:
    """By the properties that Airflow sets for OpenLineage; without a namespace of its own it has that of its parent."""
    properties = {f"spark.openlineage.parent{key}": value for key, value in PARENT.items()}
    (whole,) = runs([log.ended()], properties=properties)
    assert (whole.parent, whole.job.namespace) == (JobRun("airflow", "dag.task", RUN), "airflow")
    (own,) = runs([log.ended()], properties=properties | {"spark.openlineage.namespace": "prod"})
    assert own.job.namespace == "prod"
    (other,) = runs([log.ended()], properties=properties | {"spark.openlineage.parentRunId": "7"})
    assert (other.parent, other.job.namespace) == (None, "default")


def test_the_same_log_gives_the_same_ids() -> None:
    """So that it may be sent twice; another application has others."""
    lines = [COPY, log.query_ended(1), log.ended()]
    ids = [[run.job.run_id for run in runs(each)] for each in (lines, lines, [log.started(2000), *lines])]
    assert ids[0] == ids[1]
    assert not {*ids[0]} & {*ids[2]}
    assert all(uuid.UUID(each) for each in ids[0])


def stream(**more: Any) -> list[log.Line]:
    """A streaming query with a batch that joins a table and writes it somewhere."""
    path = "file:/in/events"
    batch = {"description": "orders<br/>id = query-1<br/>runId = run-1<br/>batch = 0", "jobGroupId": "run-1"}
    plan = writing("file:/out", reading(f"{path}/0.json"), reading("file:/table"))
    sources = [{"description": f"FileStreamSource[{path}]"}, {"description": "KafkaV2[Subscribe[clicks]]"}]
    return [
        made.stream_event("Started", timestamp="1970-01-01T00:00:01.500Z", name="orders"),
        of_plan(1, plan, **batch),
        log.query_ended(1),
        made.stream_batch(0, 2000, sources=sources, sink={"description": "ForeachBatchSink"}),
        *([made.stream_event("Terminated", **more)] if more else []),
        log.ended(),
    ]


@pytest.mark.parametrize(
    ("ends", "state"), [({"exception": None}, "COMPLETE"), ({"exception": "password=hunter2"}, "FAIL"), ({}, "ABORT")]
)
def test_a_streaming_query_is_one_run_of_all_its_batches(ends: dict[str, Any], state: str) -> None:
    """It reads the folder of its source, not each file, and the table that it joins; a topic has no address."""
    whole, found = runs(stream(**ends))
    assert (found.kind, found.job.name, found.parent, found.state) == ("STREAM", "shop.orders", whole.job, state)
    assert [each.name for each in found.inputs] == ["/in/events", "/table"]
    assert [each.name for each in found.outputs] == ["/out"]
    assert (found.started, found.error) == (1500, "password=(redacted)" if state == "FAIL" else None)


@pytest.mark.parametrize(
    ("inputs", "origins"),
    [
        ({"orders": "file:/in", "more": "/more"}, {"total": (Field("file", "/in", "amount"),)}),
        ({"orders": "/in", "more": None}, {"total": (Field("file", "/in", "amount"),)}),
        ({"orders": None, "more": "/in"}, {}),
        ({"orders": "/elsewhere", "more": "/more"}, {}),
    ],
)
def test_a_declared_table_has_the_columns_that_it_is_made_of(inputs: Any, origins: Any) -> None:
    """Where the query reads what the table is made of, and the place of all that a column is made of is known."""
    columns = {"total": [Origin("orders", "amount")], "count": []}
    columns |= {"other": [Origin("more", "a"), Origin("orders", "b")]} if inputs["more"] is None else {}
    app = log.application([log.environment({}), log.started(), COPY, log.query_ended(1), log.ended()])
    _, query = lineage_runs(app, declared=[TableColumns("out", "/out", inputs, columns)])
    assert dict(query.outputs[0].origins) == origins
    _, other = lineage_runs(app, declared=[TableColumns("elsewhere", "/elsewhere", inputs, columns)])
    assert other.outputs[0].origins == ()


def test_files_of_a_source_are_its_folder() -> None:
    """Those of a day have names of that day; a table within the folder is itself."""
    places = ["/raw/2024/05/01/a.csv.gz", "/raw/2024/05/01/b.csv.gz", "/raw/tables/t"]
    writes = of_plan(1, writing("file:/out", *(reading(f"file:{place}") for place in places)))
    app = log.application([log.environment({}), log.started(), writes, log.query_ended(1), log.ended()])
    inputs = {"orders (raw)": "file:/raw", "t": "/raw/tables/t"}
    columns = TableColumns("out", "/out", inputs, {"total": [Origin("orders (raw)", "amount")]})
    _, query = lineage_runs(app, declared=[columns])
    assert [each.name for each in query.inputs] == ["/raw", "/raw/tables/t"]
    assert dict(query.outputs[0].origins) == {"total": (Field("file", "/raw", "amount"),)}


@pytest.mark.parametrize(("places", "made"), [(["/out"], 0), (["/in", "/out"], 1), (["/in", "/x"], 0)])
def test_a_query_makes_columns_of_what_it_reads_beside_its_own_table(places: list[str], made: int) -> None:
    """One that reads its own table only compacts it, or puts back what was there; one that reads others corrects it."""
    writes = of_plan(1, writing("file:/out", *(reading(f"file:{place}") for place in places)))
    app = log.application([log.environment({}), log.started(), writes, log.query_ended(1), log.ended()])
    columns = TableColumns("out", "/out", {"orders": "/in"}, {"total": [Origin("orders", "amount")]})
    _, query = lineage_runs(app, declared=[columns])
    assert [column for column, _ in query.outputs[0].origins] == ["total"] * made
