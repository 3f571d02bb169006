from typing import Any

import pytest

from spark_app.eventlog.findings import Finding
from tests.unit.eventlog.diagnoses.cases import found, of_query, stage, task
from tests.unit.eventlog.log import Line

LINES: dict[str, Any] = {"Input Metrics": {"Bytes Read": 3 * 1024**2, "Records Read": 1500}}
SCAN: Line = {"RDD ID": 1, "Name": "FileScanRDD", "Scope": '{"id":"1","name":"Scan text "}'}
WHOLE: Line = {"RDD ID": 1, "Name": "BinaryFileRDD", "Scope": '{"id":"1","name":"json"}'}
LEAVES: Line = {"RDD ID": 1, "Name": "ParallelCollectionRDD", "Scope": '{"id":"1","name":"parallelize"}'}


def read(name: str = "json at /jobs/job.py:7", rdd: Line = SCAN) -> list[Line]:
    """A stage of a reader, with two tasks of 30 s."""
    info: dict[str, Any] = {"Stage Name": name, "RDD Info": [rdd]}
    return stage([task(number, 30, **LINES) for number in range(2)], seconds=30, **info)


def inferred(lines: list[Line]) -> Finding | None:
    """What the rule says."""
    return found(lines).get("inferred_schema")


@pytest.mark.parametrize("rdd", [SCAN, WHOLE], ids=["lines", "whole files"])
def test_a_read_for_the_schema_costs_its_duration(rdd: Line) -> None:
    """The driver waits for it before there is a query."""
    finding = inferred(read(rdd=rdd))
    assert finding is not None
    assert finding.cost_ms == 30_000
    assert "reads 3,000 rows, 6.0 MiB, in 30.0 s only to infer the schema" in finding.text
    assert "Give the reader at job.py:7 the schema" in finding.advice
    assert ".schema('...').json(...)" in finding.advice


@pytest.mark.parametrize(
    "lines",
    [read("count at /jobs/job.py:7"), read("parquet at /jobs/job.py:7"), read(rdd=LEAVES), of_query(read())],
    ids=["an action", "footers", "a list of files", "a query"],
)
def test_other_reads_are_not(lines: list[Line]) -> None:
    """An action of an RDD reads rows that it needs, and Spark lists files by a job of the same line."""
    assert inferred(lines) is None
