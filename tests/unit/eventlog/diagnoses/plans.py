"""Small event logs with queries in them, whose plans have numbers, and what is found in them."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Final

from spark_app.eventlog.diagnoses import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line

MIB: Final = 1024**2
GIB: Final = 1024**3
MINUTE: Final = 60_000
_IDS: Final = count(1)
_SIZES: Final = ("size of files read", "data size", "written output")
Node = dict[str, Any]


def node(name: str, *children: Node, text: str = "", metadata: Mapping[str, str] | None = None, **numbers: int) -> Node:
    """An operator with its numbers; `_` stands for a blank in their names."""
    named = {key.replace("_", " "): value for key, value in numbers.items()}
    metrics = [
        {"name": key, "accumulatorId": next(_IDS), "metricType": "size" if key in _SIZES else "sum", "value": value}
        for key, value in named.items()
    ]
    known = {"nodeName": name, "simpleString": text or name, "metadata": dict(metadata or {})}
    return known | {"children": list(children), "metrics": metrics}


def scan(folder: str = "/sales", *, files: int, size: int, filters: str = "[]", **numbers: int) -> Node:
    """A scan of so many files of so many bytes in all."""
    metadata = {"Location": f"InMemoryFileIndex(1 paths)[file:{folder}]", "PartitionFilters": filters}
    known = {"number_of_files_read": files, "size_of_files_read": size, "number_of_output_rows": 9}
    return node("Scan parquet ", text="FileScan parquet", metadata=metadata, **known | numbers)


def exchange(size: int) -> Node:
    """A shuffle of so many bytes, with a sort behind it."""
    return node("Sort", node("Exchange", data_size=size, shuffle_write_time=MINUTE), sort_time=MINUTE)


def ran(
    number: int, plan: Node, *, counts: Node | None = None, ms: int = MINUTE, rdds: Iterable[Line] = (), tasks: int = 0
) -> list[Line]:
    """A query with one job of one stage, which has counted the numbers of its plan, or of another; some tasks write."""
    begin = 10_000 + number * MINUTE
    start = log.query(number, time=begin) | {"sparkPlanInfo": plan, "description": f"Query {number}"}
    job = log.job(number, [number], time=begin, **{"spark.sql.execution.id": str(number)})
    over = log.stage(number, end=begin + ms, tasks=2)
    by_stage = {metric["accumulatorId"]: metric["value"] for metric in _metrics(counts or plan)}
    by_driver = {
        metric["accumulatorId"]: by_stage.pop(metric["accumulatorId"]) for metric in _of_driver(counts or plan)
    }
    values = [{"ID": key, "Value": str(value)} for key, value in by_stage.items()]
    over["Stage Info"] |= {"Accumulables": values, "RDD Info": list(rdds)}
    updates = {"executionId": number, "accumUpdates": [list(pair) for pair in by_driver.items()]}
    done = [_written(task, number, size=MIB if task < tasks else 0) for task in range(tasks + 1)]
    ends = [log.job_ended(number, time=begin + ms), log.query_ended(number, time=begin + ms)]
    return [start, job, log.stage(number), *done, over, {"Event": f"{log.SQL[:-3]}DriverAccumUpdates"} | updates, *ends]


def cached(number: int, name: str = "sales", partitions: int = 2) -> Line:
    """An RDD that is cached, as a stage that uses it lists it."""
    level = {"Use Disk": True, "Use Memory": True}
    return {"RDD ID": number, "Name": name, "Storage Level": level, "Number of Partitions": partitions}


def application(*lines: Iterable[Line]) -> Application:
    """What lines say of an application with four cores."""
    return log.application([log.started(), log.executor(), *(line for some in lines for line in some)])


def found(app: Application, *rules: str, **limits: Any) -> list[Finding]:
    """What some rules find."""
    return [finding for finding in diagnose.diagnose(app, Thresholds(**limits)) if finding.rule in rules]


def _metrics(plan: Node) -> Iterator[dict[str, Any]]:
    yield from plan["metrics"]
    for child in plan["children"]:
        yield from _metrics(child)


def _of_driver(plan: Node) -> Iterator[dict[str, Any]]:
    if plan.get("nodeName", "").startswith(("BroadcastExchange", "Execute ")):
        yield from plan["metrics"]
    for child in plan["children"]:
        yield from _of_driver(child)


def _written(number: int, stage: int, *, size: int) -> Line:
    task = log.task(number, stage)
    task["Task Metrics"] |= {"Output Metrics": {"Bytes Written": size, "Records Written": 1}}
    return task
