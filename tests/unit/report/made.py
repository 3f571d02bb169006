"""Event logs made by hand, as large and as hostile as a test needs."""

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from spark_app.eventlog.comparison.causes import Setting
from spark_app.eventlog.comparison.changes import Change
from spark_app.eventlog.comparison.compare import Cause, Comparison
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line

HOSTILE: Final = (
    "<script>document.title='run'</script>\"'><img src=x onerror=document.title='run'>\u202eכן\x07" + "q" * 10_000
)


def written(path: Path, lines: list[Line] | Iterator[Line]) -> Path:
    """A log of some lines, closed."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    return path


def large(*, stages: int, tasks: int, queries: int, text: str = "a query", operators: int = 40) -> Iterator[Line]:
    """An application with as many stages, tasks in all, and queries; each query has a part of the stages."""
    yield log.environment({"spark.sql.shuffle.partitions": "400", "spark.my.password": "hunter2"})
    yield log.started(1000)
    yield log.executor("1", host="host-a")
    yield log.executor("2", time=1500, host="host-a")
    each, of_query, time, task = tasks // stages, max(1, stages // queries), 2000, 0
    for number in range(stages):
        query = number // of_query
        if number % of_query == 0 and query < queries:
            yield started_query(query, time, text, operators)
        yield log.job(number, [number], time=time, **{"spark.sql.execution.id": str(query)})
        yield submitted(number, time, each, text)
        for _ in range(each):
            yield ended_task(task, number, time, 20 + task * 7919 % 400)
            task += 1
        yield submitted(number, time, each, text, end=time + 450)
        yield log.job_ended(number, time=time + 450)
        time += 500
        if number % of_query == of_query - 1 and query < queries:
            yield log.query_ended(query, time=time)
    yield log.removed("2", time=time, reason="Command exited with code 137")
    yield log.ended(time)


def training(*, fits: int, jobs: int, trace_id: str) -> Iterator[Line]:
    """A run that fits models, each with so many jobs; fit 3 has the span 3. Of each job a query, a stage and a task."""
    yield log.started(1000)
    yield log.executor("0")
    for number in range(fits * jobs):
        fit, time = 2 + number // jobs, 2000 + 100 * number
        text = f"ml.refunds 2024-01-07: fit random_forest maxDepth={fit} on fold 1/3"
        properties = {"spark.job.description": text, "traceparent": f"00-{trace_id}-{str(fit).zfill(16)}-01"}
        yield started_query(number, time, text, 4)
        yield log.job(number, [number], time=time, **properties, **{"spark.sql.execution.id": str(number)})
        yield submitted(number, time, 1, "treeAggregate at RandomForest.scala:1") | {"Properties": properties}
        yield ended_task(number, number, time, 50)
        yield submitted(number, time, 1, "treeAggregate at RandomForest.scala:1", end=time + 80)
        yield log.job_ended(number, time=time + 80)
        yield log.query_ended(number, time=time + 90)
    yield log.ended(2000 + 100 * fits * jobs)


def submitted(number: int, time: int, tasks: int, name: str, *, end: int | None = None) -> Line:
    """A stage begins, or ends where an end is given."""
    line = log.stage(number, end=end, tasks=tasks)
    line["Stage Info"] |= {"Submission Time": time, "Stage Name": name}
    return line


def ended_task(number: int, stage: int, launched: int, milliseconds: int, **metrics: int) -> Line:
    """A task ends."""
    line = log.task(number, stage)
    line["Task Info"] |= {"Launch Time": launched, "Finish Time": launched + milliseconds}
    line["Task Metrics"] = {"Executor Run Time": milliseconds, "JVM GC Time": milliseconds // 20} | metrics
    return line


def started_query(number: int, time: int, text: str, operators: int) -> Line:
    """A query begins; its plan is a chain of operators with a join at its root."""
    plan: Line = {"nodeName": "Scan", "simpleString": text, "children": [], "metrics": []}
    for depth in range(operators - 2):
        plan = {"nodeName": f"Project {depth}", "simpleString": text, "children": [plan], "metrics": []}
    plan = {"nodeName": "Join", "simpleString": text, "children": [plan, {"nodeName": "Scan"}], "metrics": []}
    return log.query(number, time=time) | {"description": text, "sparkPlanInfo": plan}


def stream_event(kind: str, query: str = "query-1", run: str = "run-1", **fields: Any) -> Line:
    """A run of a streaming query begins or ends: `Started`, `Terminated`."""
    event = f"org.apache.spark.sql.streaming.StreamingQueryListener$Query{kind}Event"
    return {"Event": event, "id": query, "runId": run, **fields}


def stream_batch(
    number: int, started: int, *, ms: int = 500, rows: int = 10, query: str = "query-1", run: str = "run-1", **more: Any
) -> Line:
    """A batch of a streaming query is done; its time is in milliseconds since the epoch."""
    instant = datetime.datetime.fromtimestamp(started / 1000, datetime.UTC)
    progress = {
        "id": query,
        "runId": run,
        "name": "orders",
        "timestamp": instant.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "batchId": number,
        "batchDuration": ms,
        "durationMs": {"addBatch": ms - 100, "walCommit": 60, "triggerExecution": ms},
        "sources": [{"numInputRows": rows}],
    }
    event = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
    return {"Event": event, "progress": progress | more}


def comparison(text: str) -> Comparison:
    """A comparison with a slower run, in which every text is this one."""
    changed = [Setting(text, text, text)]
    cause, changes = Cause("gc", 8000, text, text, changed), [Change("plan", text)] * 9
    return Comparison(
        text, text, text, 1, 9000, 1000, 8000, 8.0, 1, is_significant=True, causes=[cause] * 9, unexplained_ms=0,
        settings=changed, changes=changes, remarks=[text],
    )  # fmt: skip
