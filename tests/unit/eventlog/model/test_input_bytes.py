"""Spark does not count the bytes of local Parquet files; nobody uses what it counts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spark_app.eventlog.model.application import Application
from tests.eventlogs import golden, walking
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line

SCAN = {"RDD ID": 1, "Name": "FileScanRDD", "Scope": '{"id":"1","name":"Scan parquet "}'}


def app_of(
    location: str, *, version: str = "4.2.0", query: bool = True, settings: Mapping[str, str] | None = None
) -> Application:
    """An application with a task that reads 1,000 rows of Parquet files; 558 bytes were counted."""
    metadata = {"Location": f"InMemoryFileIndex(1 paths)[{location}]"}
    plan = {"nodeName": "Scan parquet ", "simpleString": "", "metadata": metadata}
    submitted, task = log.stage(0), log.task(0, 0)
    submitted["Stage Info"] |= {"RDD Info": [SCAN]}
    task["Task Metrics"] |= {"Input Metrics": {"Bytes Read": 558, "Records Read": 1000}}
    properties: dict[str, Any] = {"spark.sql.execution.id": "0"} if query else {}
    queries: list[Line] = [log.query(0) | {"sparkPlanInfo": plan}] if query else []
    version_line = {"Event": "SparkListenerLogStart", "Spark Version": version}
    lines = [
        version_line,
        log.started(),
        log.environment({"spark.master": "local[2]"} | dict(settings or {})),
        *queries,
    ]
    return log.application([*lines, log.job(0, [0], **properties), submitted, task, log.ended()])


VECTORED = {"spark.hadoop.parquet.hadoop.vectored.io.enabled": "false"}


@pytest.mark.parametrize(
    ("app", "size"),
    [
        (app_of("file:/data/sales"), 0),
        (app_of("file:/data/sales", query=False), 0),
        (app_of("hdfs://there/data/sales"), 558),
        (app_of("file:/data/sales", version="4.0.5"), 558),
        (app_of("file:/data/sales", version="3.5.9"), 558),
        (app_of("file:/data/sales", settings=VECTORED), 558),
        (app_of("x", query=False, settings={"spark.master": "yarn"}), 558),
    ],
)
def test_bytes_of_local_parquet_are_not_known(app: Application, size: int) -> None:
    """From Spark 4.1 on; rows are."""
    stage = app.stages[0, 0]
    assert (stage.totals.input_bytes, stage.totals.input_records) == (size, 1000)
    assert stage.is_input_missed is (size == 0)


@pytest.mark.parametrize("version", ["4.1.4", "4.2.0", "4.3.0"])
def test_real_logs_have_stages_whose_bytes_are_not_known(version: str, tmp_path: Path) -> None:
    """Those that read Parquet; their spans say nothing of bytes, but of rows."""
    app, spans = walking.read(golden.log(version, "zstd", tmp_path))
    missed = {key for key, stage in app.stages.items() if stage.is_input_missed}
    assert missed
    of_stages = [span.attributes for span in spans if span.kind.prefix == "stage"]
    silent = {
        (each["spark.stage.id"], each["spark.stage.attempt"]) for each in of_stages if "spark.input.bytes" not in each
    }
    assert missed <= silent
