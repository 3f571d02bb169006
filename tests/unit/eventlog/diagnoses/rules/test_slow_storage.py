from collections.abc import Sequence
from typing import Any, Final

import pytest

from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.findings import Finding
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import BEGAN, DEFAULTS, settings, stage, task
from tests.unit.eventlog.diagnoses.plans import MIB, node, scan
from tests.unit.eventlog.log import Line

RULE: Final = "slow_storage"
WAITING: Final[dict[str, Any]] = {
    "Executor CPU Time": 1_000_000_000,
    "Executor Deserialize Time": 10,
    "Executor Deserialize CPU Time": 10_000_000,
}
READING: Final = WAITING | {"Input Metrics": {"Bytes Read": 60 * MIB, "Records Read": 9}}
WRITING: Final = WAITING | {"Output Metrics": {"Bytes Written": 60 * MIB, "Records Written": 9}}
FILES: Final[Line] = {"RDD ID": 1, "Name": "FileScanRDD", "Scope": '{"id":"2","name":"Scan json "}'}
LINES: Final[list[Line]] = [
    {"RDD ID": 1, "Name": "hdfs://data/sales", "Scope": '{"id":"0","name":"textFile"}'},
    {"RDD ID": 2, "Name": "hdfs://data/sales", "Scope": '{"id":"0","name":"textFile"}'},
]
MAPPED: Final[Line] = {"RDD ID": 3, "Name": "MapPartitionsRDD", "Scope": '{"id":"1","name":"map"}'}


def found(
    metrics: dict[str, Any],
    rdds: Sequence[Line] = (FILES,),
    plan: dict[str, Any] | None = None,
    scan_ms: int | None = None,
    name: str = "count at Job.scala:7",
) -> dict[str, Finding]:
    """What is found about two tasks of a minute on two cores, of a query with this plan, or of none."""
    more: dict[str, Any] = {"RDD Info": list(rdds), "Stage Name": name}
    if scan_ms is not None:
        more["Accumulables"] = [{"ID": 7, "Name": "scan time", "Value": str(scan_ms)}]
    begin, *rest = stage([task(number, 60, **metrics) for number in range(2)], seconds=60, cores=2, **more)
    if plan is not None:
        job = next(line for line in rest if line["Event"] == "SparkListenerJobStart")
        job["Properties"] = {"spark.sql.execution.id": "1"}
        rest.insert(rest.index(job), log.query(1, time=BEGAN) | {"sparkPlanInfo": plan})
    app = log.application([begin, settings(master="local[2]"), *rest])
    return {finding.rule: finding for finding in diagnose(app, DEFAULTS)}


PLAN: Final = node("Project", node("Scan json ", text="FileScan json [price#1]"))


@pytest.mark.parametrize(("metrics", "what"), [(READING, "read"), (WRITING, "wrote")])
def test_tasks_that_move_bytes_and_call_no_function_wait_for_their_storage(metrics: dict[str, Any], what: str) -> None:
    """Two tasks with 60 MiB each in a minute; the 0.96 s that a disk takes for them are no wait."""
    every = found(metrics, plan=PLAN)
    finding = every[RULE]
    assert "external_wait" not in every
    assert (finding.severity, finding.subject) == ("warning", "host")
    assert f"its 2 tasks {what} 120.0 MiB, 1.0 MiB a second each, and waited about 1 min 57 s of 2 min 00 s" in (
        finding.text
    )
    waited = 118_000 - 120 / 125 * 1000
    assert finding.cost_ms == pytest.approx(waited / 2)
    assert (finding.cost_low_ms, finding.cost_high_ms) == pytest.approx((waited / 2 - 3000, waited / 2))


@pytest.mark.parametrize(
    "plan",
    [
        node("Project", text="Project [UDF(price#1) AS answer#2]"),
        node("Project", text="Project [reflect(java.lang.Thread, sleep, 1) AS answer#2]"),
        node("MapElements", text="MapElements com.shop.Prices$$$Lambda"),
        node("FlatMapGroupsInPandasWithState"),
    ],
    ids=lambda plan: plan["nodeName"],
)
def test_a_function_may_wait_for_anything(plan: dict[str, Any]) -> None:
    """The log does not tell what it asks from the storage of what the stage reads."""
    every = found(READING, plan=plan)
    assert RULE not in every
    assert "external_wait" in every


def test_the_scan_time_of_a_columnar_format_tells_storage_from_functions() -> None:
    """A stage whose scans took 100 s waits for its storage, whatever it calls; one whose scans took 10 s does not."""
    calls = node("Project", text="Project [UDF(price#1) AS answer#2]")
    every = found(READING, plan=calls, scan_ms=100_000)
    assert every[RULE].numbers["waited_task_ms"] == 100_000
    assert "external_wait" not in every
    for plan in (calls, PLAN):
        every = found(READING, plan=plan, scan_ms=10_000)
        assert RULE not in every
        assert "external_wait" in every


def test_a_job_of_rdds_waits_for_its_storage_if_only_spark_made_them() -> None:
    """Lines that are counted; a `map` may wait for anything, and so may a `foreach`."""
    assert RULE in found(READING, LINES)
    assert "external_wait" in found(READING, [*LINES, MAPPED]).keys() - {RULE}
    assert "external_wait" in found(READING, LINES, name="foreach at Job.scala:7").keys() - {RULE}
    assert "external_wait" in found(READING, [{"RDD ID": 1, "Name": "/sales HadoopRDD"}]).keys() - {RULE}


@pytest.mark.parametrize("kind", ["JDBCRDD", "DataSourceRDD", "StateStoreRDD"])
def test_what_is_written_may_wait_for_what_is_read(kind: str) -> None:
    """A database, Kafka, a state: the storage of the output need not be slow."""
    every = found(WRITING, [{"RDD ID": 1, "Name": kind}], PLAN)
    assert RULE not in every
    assert "external_wait" in every
    assert RULE in found(READING, [{"RDD ID": 1, "Name": "DataSourceRDD"}], PLAN)


@pytest.mark.parametrize(
    "metrics",
    [
        WAITING,
        READING | {"Disk Bytes Spilled": 1},
        READING | {"Executor CPU Time": 40_000_000_000},
        READING | {"Input Metrics": {"Bytes Read": 5000 * MIB}},
    ],
    ids=["no bytes", "spill", "work", "a fast disk"],
)
def test_what_moves_nothing_spills_works_or_is_fast_does_not_wait_for_storage(metrics: dict[str, Any]) -> None:
    """A spill goes to the local disk, which may be what is slow."""
    assert RULE not in found(metrics, plan=PLAN)


def test_many_small_files_explain_the_wait() -> None:
    """It is requests that the tasks wait for: to merge the files is the cure."""
    files = scan(files=1000, size=100 * MIB)
    numbers = {metric["name"]: metric["accumulatorId"] for metric in files["metrics"]}
    by_driver = [[numbers["number of files read"], 1000], [numbers["size of files read"], 100 * MIB]]
    rows = [{"ID": numbers["number of output rows"], "Name": "number of output rows", "Value": "9"}]
    begin, *rest = stage(
        [task(number, 60, **READING) for number in range(2)],
        seconds=60,
        cores=2,
        **{"RDD Info": [FILES], "Accumulables": rows},
    )
    job = next(line for line in rest if line["Event"] == "SparkListenerJobStart")
    job["Properties"] = {"spark.sql.execution.id": "1"}
    update = {"Event": f"{log.SQL[:-3]}DriverAccumUpdates", "executionId": 1, "accumUpdates": by_driver}
    query = log.query(1, time=BEGAN) | {"sparkPlanInfo": files}
    lines = [begin, settings(master="local[2]"), query, update, *rest, log.query_ended(1, time=BEGAN + 60_000)]
    every = {finding.rule: finding for finding in diagnose(log.application(lines), DEFAULTS)}
    assert every[RULE].because == "small_files_read"
