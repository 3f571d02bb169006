"""Small event logs with a stage in them, and what is found in it."""

from collections.abc import Iterable
from typing import Any, Final

from spark_app.eventlog.diagnoses import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line

DEFAULTS: Final = Thresholds()
EVERY_COST: Final = Thresholds(cost_ms=0, cost_ratio=0)
"""Costs are not judged."""
GIB: Final = 1024**3
SHUFFLED: Final[dict[str, Any]] = {"Parent IDs": [9]}
"""Of a stage that reads a shuffle."""
PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
BEGAN: Final = 10_000
"""When each stage begins, in milliseconds."""


def settings(**properties: str) -> Line:
    """What the application was started with; `_` stands for a dot."""
    return log.environment({f"spark.{key.replace('_', '.')}": value for key, value in properties.items()})


def peaks(number: str, heap: int) -> Line:
    """What an executor used at most during a stage."""
    fields = {"Executor ID": number, "Stage ID": 0, "Stage Attempt ID": 0}
    return {"Event": "SparkListenerStageExecutorMetrics", **fields, "Executor Metrics": {"JVMHeapMemory": heap}}


def task(number: int, seconds: float, *, begin: float = 0, **fields: Any) -> list[Line]:
    """A task begins, so many seconds after its stage, and ends; fields are metrics, or `error`, `executor`, `loss`."""
    info = {"Task ID": number, "Index": number, "Attempt": 0, "Launch Time": BEGAN + int(begin * 1000)}
    info |= {"Executor ID": fields.pop("executor", "0"), "Host": fields.pop("host", "h")}
    error, loss = fields.pop("error", None), fields.pop("loss", None)
    over = {"Finish Time": info["Launch Time"] + int(seconds * 1000), "Failed": bool(error or loss), "Killed": False}
    of = {"Stage ID": 0, "Stage Attempt ID": 0, "Task Type": "ResultTask"}
    reason: Line = {"Reason": "Success"}
    if error:
        reason = {"Reason": "ExceptionFailure", "Class Name": "java.lang.Exception", "Description": error}
    if loss:
        reason = {"Reason": "ExecutorLostFailure", "Loss Reason": loss}
    metrics = {"Executor Run Time": int(seconds * 1000)} | fields
    begins = {"Event": "SparkListenerTaskStart", **of, "Task Info": info}
    ends = {"Event": "SparkListenerTaskEnd", **of, "Task End Reason": reason, "Task Info": info | over}
    return [begins, ends | ({} if loss else {"Task Metrics": metrics})]


def shuffle(count: int, records: int = 0) -> dict[str, Any]:
    """What a task read of a shuffle, as its metric."""
    return {"Shuffle Read Metrics": {"Local Bytes Read": count, "Total Records Read": records}}


def stage(tasks: Iterable[list[Line]], *, seconds: float, cores: int = 4, **info: Any) -> list[Line]:
    """An application with an executor and a stage, whose tasks begin and end in the order of time."""
    lines = sorted((line for pair in tasks for line in pair), key=_time)
    stage_info = {
        "Stage ID": 0,
        "Stage Attempt ID": 0,
        "Stage Name": "collect at job.py:7",
        "Number of Tasks": len(lines) // 2,
    }
    stage_info |= {"Submission Time": BEGAN} | info
    begins = {"Event": "SparkListenerStageSubmitted", "Stage Info": stage_info}
    ends = {
        "Event": "SparkListenerStageCompleted",
        "Stage Info": stage_info | {"Completion Time": BEGAN + int(seconds * 1000)},
    }
    before = [log.started(), log.executor(cores=cores), log.job(0, [0], time=BEGAN)]
    return [*before, begins, *lines, ends, log.job_ended(0, time=BEGAN + int(seconds * 1000))]


def found(lines: Iterable[Line], thresholds: Thresholds = DEFAULTS) -> dict[str, Finding]:
    """Everything that is found, by rule."""
    return {finding.rule: finding for finding in diagnose.diagnose(log.application(lines), thresholds)}


def _time(line: Line) -> int:
    info = line["Task Info"]
    return int(info.get("Finish Time", info["Launch Time"]))


def spilled(count: int) -> dict[str, int]:
    """What a task spilled to disk, and twice as much in memory."""
    return {"Disk Bytes Spilled": count, "Memory Bytes Spilled": 2 * count}


def of_query(lines: list[Line]) -> list[Line]:
    """The same stage as that of a SQL query."""
    begin, executor, job, *rest = lines
    return [begin, executor, log.query(4), {**job, "Properties": {"spark.sql.execution.id": "4"}}, *rest]


def with_plan(lines: list[Line], plan: Line) -> list[Line]:
    """The same stage as that of a query with a plan, all of whose operators ran in it."""
    counted = [{"ID": metric["accumulatorId"], "Value": str(metric["value"])} for metric in metrics_of(plan)]
    lines = [line | ({"sparkPlanInfo": plan} if "executionId" in line else {}) for line in of_query(lines)]
    for line in lines:
        if line["Event"] == "SparkListenerStageCompleted":
            line["Stage Info"]["Accumulables"] = counted
    return lines


def metrics_of(plan: Line) -> list[Line]:
    """All numbers of a plan."""
    return [*plan["metrics"], *(metric for child in plan["children"] for metric in metrics_of(child))]
