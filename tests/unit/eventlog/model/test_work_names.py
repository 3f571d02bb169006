"""Queries and stages have names that a person understands, from what the log knows."""

from typing import Any, Final

import pytest

from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.work_names import call_site, of_query, of_stage
from tests.eventlogs import record_connect, walking
from tests.unit.eventlog.log import Line, application, job, query, stage, started

JVM: Final = "parquet at NativeMethodAccessorImpl.java:0"
AHEAD: Final = "$anonfun$withThreadLocalCaptured$1 at CompletableFuture.java:1768"
JVM_STACK: Final = "org.apache.spark.sql.DataFrameWriter.parquet(DataFrameWriter.scala:381)\njava.base/jdk.internal"
HOOKED: Final = "parquet at jobs/flights.py:24\n  in main, jobs/flights.py:24"
EXECUTION: Final[dict[str, Any]] = {"spark.sql.execution.id": "0"}
BATCH: Final = "{}id = e8e51234-1\nrunId = 2b\nbatch = 9"
WRITES: Final = (
    "== Physical Plan ==\nExecute {command} (1)\n   +- {command} (2)\n\n\n(1) Execute {command}\nOutput: []\n\n"
    "(2) {command}\nArguments: {arguments}\n\n(3) Range\nArguments: path=/not/this, `a`.`b`\n\n"
)


def app_of(said: Line, *jobs: Line, name: str = AHEAD) -> Application:
    """An application with a query, its jobs and a stage."""
    submitted = stage(0)
    submitted["Stage Info"] |= {"Stage Name": name}
    started_jobs = jobs or (job(0, [0], **EXECUTION),)
    properties = started_jobs[0]["Properties"]
    return application([started(), query(0) | said, *started_jobs, submitted | {"Properties": properties}])


def names(said: Line, *jobs: Line, name: str = AHEAD) -> tuple[str, str]:
    """The names of a query and of its stage."""
    app = app_of(said, *jobs, name=name)
    attempt = app.stages[0, 0]
    return of_query(app, app.queries[0]), of_stage(app, attempt.info, attempt.properties)


@pytest.mark.parametrize(
    ("said", "of_the_query", "of_the_stage"),
    [
        ({"description": JVM, "details": HOOKED}, "parquet at jobs/flights.py:24", "parquet at jobs/flights.py:24"),
        ({"description": "clean", "details": HOOKED}, *["clean, parquet at jobs/flights.py:24"] * 2),
        ({"description": "clean", "details": JVM_STACK}, "clean", "clean"),
        ({"description": "collect at /jobs/work/job.py:43"}, *["collect at work/job.py:43"] * 2),
        ({"description": "count at /t/ipykernel_4711/2897419283.py:3"}, *["count at notebook cell:3"] * 2),
        ({"description": BATCH.format("delays\n")}, "delays: batch 9", "delays: batch 9"),
        ({"description": BATCH.format("")}, "stream e8e51234: batch 9", "stream e8e51234: batch 9"),
        ({"description": "showString at NativeMethodAccessorImpl.java:0"}, "show", "show"),
        ({"description": "showString at DirectMethodHandleAccessor.java:103"}, "show", "show"),
        ({"description": ""}, "query", "query"),
        ({"description": "call at /lib/py4j/clientserver.py:642"}, "query", "query"),
        ({"description": "run at /usr/lib/python3.11/threading.py:982"}, "query", "query"),
        ({"description": "run at /jobs/threading.py:9"}, *(2 * ["run at jobs/threading.py:9"])),
    ],
)
def test_the_words_and_the_line_of_the_program_name_its_work(said: Line, of_the_query: str, of_the_stage: str) -> None:
    """Its description, the batch of a stream, its own line, or else the action that was called."""
    assert names(said) == (of_the_query, of_the_stage)


@pytest.mark.parametrize(
    ("command", "arguments", "target"),
    [
        ("InsertIntoHadoopFsRelationCommand", "file:/w/out/sums, false, Parquet, [path=/w/out/sums], x", "out/sums"),
        ("SaveIntoDataSourceCommand", "a.DeltaDataSource@1, [x=1, path=/data/tables/bronze], Append", "tables/bronze"),
        ("CreateDataSourceTableAsSelectCommand", "`spark_catalog`.`default`.`sums`, Append, [id]", "default.sums"),
        ("AppendData", "a$Lambda@1, IcebergWrite(table=shop.orders, format=PARQUET)", "shop.orders"),
    ],
)  # fmt: skip
def test_a_write_is_named_by_its_target(command: str, arguments: str, target: str) -> None:
    """A path or a table, as the arguments of the command have it."""
    description = WRITES.format(command=command, arguments=arguments)
    found = names({"description": JVM, "details": JVM_STACK, "physicalPlanDescription": description})
    assert found == (f"parquet, writes {target}", f"parquet, writes {target}")


def test_what_a_query_within_a_command_writes_is_written_by_the_command() -> None:
    """`CREATE TABLE ... AS SELECT` runs a query that knows the folder."""
    plan = {"nodeName": "x", "simpleString": "Execute InsertIntoHadoopFsRelationCommand file:/w/out, false, x"}
    app = application([
        started(), query(0) | {"description": "sql at NativeMethodAccessorImpl.java:0"},
        query(1, root=0) | {"description": AHEAD, "sparkPlanInfo": plan},
    ])  # fmt: skip
    assert [of_query(app, each) for each in app.queries.values()] == ["sql, writes w/out"] * 2


def test_an_action_without_a_line_is_named_by_what_it_reads() -> None:
    """Tables and paths of the scans of its plan; not the log of a Delta table."""
    scans = [
        {"nodeName": "Scan parquet spark_catalog.default.sales", "simpleString": "", "metadata": {}},
        {"nodeName": "BatchScan lake.shop.orders", "simpleString": "", "metadata": {}},
        {"nodeName": "Scan csv ", "metadata": {"Location": "InMemoryFileIndex(1 paths)[file:/d/in/shops.csv]"}},
        {"nodeName": "Scan json ", "metadata": {"Location": "DeltaLogFileIndex(1 paths)[file:/d/_delta_log/0.json]"}},
    ]
    plan = {"nodeName": "Join", "simpleString": "", "children": scans}
    said = {"description": "count at NativeMethodAccessorImpl.java:0", "sparkPlanInfo": plan}
    assert names(said)[0] == "count, reads default.sales, lake.shop.orders, in/shops.csv"


def test_a_batch_has_the_line_that_started_its_streaming_query() -> None:
    """Its thread inherits the property; the call site of its jobs is Spark's own."""
    properties = {
        "spark.observed.callSite": "start at jobs/delays.py:30",
        "callSite.short": "start at NativeMethodAccessorImpl.java:0",
        "spark.job.description": BATCH.format("delays\n"),
    }
    found = names({"description": BATCH.format("delays\n")}, job(0, [0], **EXECUTION, **properties))
    assert found == ("delays: batch 9, start at jobs/delays.py:30",) * 2


def test_a_stage_without_a_query_is_named_by_its_own_line() -> None:
    """As of RDDs."""
    app = app_of({}, job(0, [0], **{"spark.job.description": "count words"}), name="reduceByKey at /w/a/job.py:52")
    assert (
        of_stage(app, app.stages[0, 0].info, app.stages[0, 0].properties) == "count words, reduceByKey at a/job.py:52"
    )


def test_the_line_of_a_query_is_known_or_none() -> None:
    """Of a call from Python without its line there is none."""
    for details, line in ((HOOKED, "parquet at jobs/flights.py:24"), (JVM_STACK, None)):
        app = app_of({"description": "clean", "details": details})
        assert call_site(app, app.queries[0]) == line


def test_queries_that_are_part_of_each_other_have_names() -> None:
    """A damaged log may say so."""
    app = application([started(), query(0, root=1) | {"description": ""}, query(1, root=0) | {"description": ""}])
    assert [of_query(app, each) for each in app.queries.values()] == ["query", "query"]


def test_a_run_of_a_pipeline_names_its_flows() -> None:
    """By the line of the decorator; one that is declared in SQL has none, but the table that it writes."""
    app = walking.read(record_connect.recorded("pipeline"))[0]
    names = {of_query(app, query) for query in app.queries.values()}
    assert names == {
        "define_flow orders at transformations/orders.py:4, writes default.orders",
        "start_run, writes default.totals",
    }
    sites = {call_site(app, query) for query in app.queries.values()}
    assert sites == {"define_flow at transformations/orders.py:4", None}
