"""A stage's group says what the stage does, and is the same in every run of the program."""

import json
from typing import Any, Final

import pytest

from spark_app.eventlog.model.stage_groups import MAX_LENGTH, group_of
from tests.unit.eventlog.log import Line, job, query, read, stage, started

JVM_CALL: Final = "save at NativeMethodAccessorImpl.java:0"
EXECUTION: Final[dict[str, Any]] = {"spark.sql.execution.id": "0"}
AHEAD: Final = "$anonfun$withThreadLocalCaptured$1 at CompletableFuture.java:1768"


def rdd(number: int, scope: str) -> dict[str, Any]:
    """An RDD with what made it."""
    return {"RDD ID": number, "Name": "MapPartitionsRDD", "Scope": json.dumps({"id": "1", "name": scope})}


def group(name: str = AHEAD, *, rdds: tuple[dict[str, Any], ...] = (), parents: tuple[int, ...] = (),
          description: str | None = None, said: str | None = None, call_site: str | None = None) -> str:  # fmt: skip
    """The group of one stage."""
    submitted = stage(0)
    submitted["Stage Info"] |= {"Stage Name": name, "RDD Info": list(rdds), "Parent IDs": list(parents)}
    properties = {"spark.job.description": description, "callSite.short": call_site}
    job_properties: dict[str, Any] = {key: text for key, text in properties.items() if text is not None}
    lines: list[Line] = [started(), job(0, [0], **job_properties), submitted]
    if said is not None:
        job_properties |= {"spark.sql.execution.id": "0"}
        lines = [started(), query(0) | {"description": said}, job(0, [0], **job_properties), submitted]
    app, _ = read(lines)
    return group_of(app, app.stages[0, 0])


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({"name": "count at /jobs/job.py:33"}, "count at job.py"),
        ({"name": JVM_CALL}, "save"),
        ({"name": "run at <unknown>:0"}, "run"),
        ({"said": JVM_CALL}, "save"),
        ({"said": "collect at /scratch/dir 7/job.py:11"}, "collect at job.py"),
        ({"said": "showString at NativeMethodAccessorImpl.java:0"}, "show"),
        ({"call_site": "collect at job.py:11"}, "collect at job.py"),
        ({"name": "$anonfun$run$1 at Thread.java:7"}, "run"),
        ({"said": "call at /lib/py4j/clientserver.py:642"}, "withThreadLocalCaptured"),
        ({"description": "clean orders", "said": JVM_CALL, "name": "count at job.py:3"}, "clean orders"),
    ],
)
def test_the_most_telling_text_names_it(texts: dict[str, Any], expected: str) -> None:
    """What the program calls its work, else its own line, else the call; what runs ahead is named by its query."""
    assert group(**texts) == f"{expected} [result]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("etl.customers 2024-01-01: publish", "etl.customers #: publish"),
        ("at 2024-01-01T10:20:30.5Z done", "at # done"),
        ("part 17 of 20", "part # of #"),
        ("run 0f8fad5b-d9cb-469f-a165-70867728950e", "run #"),
        ("run local-1795232365941", "run local-#"),
        ("load s3a://shop/orders/2024/clean.csv again", "load clean.csv again"),
        ("load /scratch/tmpabcdefgh/", "load #"),
        ("commit 9ae34c1", "commit #"),
        ("q64 into t_v2", "q64 into t_v2"),
        ("ticks<br/>id = 1a<br/>runId = 2b<br/>batch = 9", "ticks"),
    ],
)
def test_what_varies_is_left_out(text: str, expected: str) -> None:
    """Dates, times, numbers, ids, folders and temporary names; short numbers within a word stay."""
    assert group(description=text) == f"{expected} [result]"


def test_a_secret_is_no_part_of_a_name() -> None:
    """It becomes a label of metrics, and is kept in records."""
    assert group(description="copy db://me:hunter@h?token=hunter") == "copy (redacted)@h?token=(redacted) [result]"


def test_a_batch_of_an_unnamed_stream_is_named_by_what_it_does() -> None:
    """Its description has nothing but ids."""
    assert group("start at job.py:9", description="id = 1a<br/>runId = 2b<br/>batch = 9") == "start at job.py [result]"


def test_a_write_from_python_is_named_by_where_it_goes() -> None:
    """Its call has no line: the folder tells it from others, also below what adaptive execution put on top of it."""
    command = {"nodeName": "Execute", "simpleString": "Execute InsertIntoHadoopFsRelationCommand file:/w/{}, false, x"}
    for folder, expected in (("counts", "save counts"), ("date=2024-01-01", "save date=#")):
        child = command | {"simpleString": command["simpleString"].format(folder)}
        plan = {"nodeName": "AdaptiveSparkPlan", "simpleString": "", "children": [child]}
        app, _ = read([
            started(), query(0) | {"description": JVM_CALL, "sparkPlanInfo": plan},
            job(0, [0], **EXECUTION), stage(0),
        ])  # fmt: skip
        assert group_of(app, app.stages[0, 0]) == f"{expected} [result]"


def test_a_notebook_s_cells_do_not_make_groups() -> None:
    """The file of a cell is named by a hash, in a folder named by a process."""
    assert group("count at /scratch/ipykernel_4711/2897419283.py:3") == "count at #.py [result]"


def test_it_says_where_rows_come_from_and_go() -> None:
    """Formats of scans, the cache, a shuffle before; a shuffle after, also where adaptive execution runs it ahead."""
    scans = (rdd(1, "Scan json "), rdd(2, "Scan ExistingRDD Delta Table State #7 - file:/x"))
    assert group("save", rdds=scans) == "save [ExistingRDD+json > result]"
    assert group("save", rdds=(*scans[:1], rdd(3, "Exchange"))) == "save [json > shuffle]"
    assert group("save", rdds=(rdd(3, "Exchange"), rdd(4, "Project")), parents=(7,)) == "save [shuffle > result]"
    assert group("save", rdds=(rdd(3, "InMemoryTableScan"),)) == "save [cache > result]"
    app, _ = read([started(), job(0, [0, 1]), stage(0), stage(1)])
    found = [group_of(app, app.stages[number, 0]) for number in range(2)]
    assert found == ["save at job.py [shuffle]", "save at job.py [result]"]


def test_hostile_text_is_cut() -> None:
    """A label is short, whatever the program calls its work."""
    assert len(group(description="x" * 5000)) == MAX_LENGTH + len(" [result]")


def test_a_scope_that_is_no_json_says_nothing() -> None:
    """Spark writes it as text within the JSON."""
    assert group("save", rdds=({"RDD ID": 1, "Name": "x", "Scope": "{"},)) == "save [result]"


def test_the_line_of_a_call_is_no_part_of_a_group() -> None:
    """It changes with every edit above it; what a call writes tells it from others in the same file."""
    plan = {"nodeName": "x", "simpleString": "Execute InsertIntoHadoopFsRelationCommand file:/w/counts, false, x"}
    for line in (7, 11):
        said = {"description": f"parquet at jobs/flights.py:{line}", "sparkPlanInfo": plan}
        app, _ = read([started(), query(0) | said, job(0, [0], **EXECUTION), stage(0)])
        assert group_of(app, app.stages[0, 0]) == "parquet at flights.py: counts [result]"
