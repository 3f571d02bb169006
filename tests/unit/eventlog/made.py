"""Applications made stage by stage, as a log of theirs would tell: what comparisons are tried on."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spark_app.eventlog.comparison import profiling
from spark_app.eventlog.comparison.profile import RunProfile
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.parse.log_tailer import ReadErrors
from spark_app.eventlog.reader import Reading
from tests.unit.eventlog import log
from tests.unit.eventlog.log import SQL, Line


@dataclass(frozen=True)
class Task:
    """A task, from when to when, and what it did with its time; milliseconds."""

    start: int
    end: int
    cpu: int = 0
    gc: int = 0
    wait: int = 0
    overhead: int = 0
    rows: int = 0
    spilled: int = 0
    read: int = 0
    has_failed: bool = False


@dataclass(frozen=True)
class Operator:
    """An operator of the plan of a query: its name and text, and what it counted, by Spark's names."""

    name: str
    text: str = ""
    numbers: Mapping[str, int] = field(default_factory=dict)

    def plan(self, first: int, children: list[Line]) -> Line:
        """The operator with what it reads from; its accumulables are numbered from `first` on."""
        metrics = [
            {"name": name, "accumulatorId": number, "metricType": "timing" if "time" in name else "sum"}
            for number, name in enumerate(self.numbers, first)
        ]
        return {"nodeName": self.name, "simpleString": self.text, "metrics": metrics, "children": children}

    def accumulables(self, first: int) -> list[Line]:
        """What it counted."""
        return [
            {"ID": number, "Name": name, "Value": str(value)}
            for number, (name, value) in enumerate(self.numbers.items(), first)
        ]


@dataclass(frozen=True)
class Stage:
    """An attempt of a stage of a job of its own, with what the job is for."""

    name: str
    start: int
    end: int
    tasks: Sequence[Task]
    attempt: int = 0
    joins: str | None = None
    operators: Sequence[Operator] = ()

    @property
    def ran(self) -> list[Operator]:
        """The operators of its query."""
        return [*([Operator(self.joins)] if self.joins else []), *self.operators]

    @property
    def rdds(self) -> list[Line]:
        """An RDD for each operator; the first operator has the last one."""
        return [
            {"RDD ID": 100 - number, "Name": "MapPartitionsRDD", "Scope": json.dumps({"name": operator.name})}
            for number, operator in enumerate(self.operators)
        ]


@dataclass(frozen=True)
class Run:
    """An application that starts at 0 ms of its own time."""

    end: int
    stages: Sequence[Stage]
    cores: int = 2
    name: str = "shop"
    id: str = "app-1"
    at: int = 1_000_000
    settings: Mapping[str, str] = field(default_factory=dict)
    lost_at: int | None = None
    lost_by: str = "Container killed"
    has_failed: bool = False
    is_finished: bool = True

    @property
    def summary(self) -> RunProfile:
        """Its record, made of its log."""
        return profiling.run_profile(Reading(Path("app-1"), self.application, ReadErrors(), 0, is_finished=True))

    @property
    def application(self) -> Application:
        """What its log says."""
        return log.application(self.lines())

    def lines(self) -> list[Line]:
        """Its log."""
        start = {"App Name": self.name, "App ID": self.id, "Timestamp": self.at, "User": "me"}
        found: list[Line] = [
            {"Event": "SparkListenerApplicationStart", **start},
            log.environment(self.settings),
            log.executor("e1", cores=self.cores, time=self.at),
        ]
        if self.lost_at is not None:
            found.append(log.executor("e2", cores=self.cores, time=self.at))
            found.append(log.removed("e2", time=self.at + self.lost_at, reason=self.lost_by))
        for number, stage in enumerate(self.stages):
            found += self._stage(number, stage)
        end = {"Timestamp": self.at + self.end, "ExitCode": int(self.has_failed)}
        return [*found, *([{"Event": "SparkListenerApplicationEnd", **end}] if self.is_finished else [])]

    def _stage(self, number: int, stage: Stage) -> list[Line]:
        # Attempts follow each other: a second one is of the stage before it.
        own = number - stage.attempt
        is_tried_again = any(other.attempt for other in self.stages[number + 1 : number + 2])
        info = {
            "Stage ID": own, "Stage Attempt ID": stage.attempt, "Stage Name": "collect at job.py:1",
            "Number of Tasks": len(stage.tasks), "Submission Time": self.at + stage.start, "RDD Info": stage.rdds,
        }  # fmt: skip
        properties = {"spark.job.description": stage.name, "spark.sql.execution.id": str(own)}
        job = {"Job ID": own, "Submission Time": self.at + stage.start, "Stage IDs": [own], "Properties": properties}
        below: list[Line] = []
        for index, operator in reversed(list(enumerate(stage.ran))):
            below = [operator.plan(1000 * own + 10 * index, below)]
        plan = {"nodeName": "Project", "simpleString": "", "children": below}
        query = {"executionId": own, "rootExecutionId": own, "time": self.at + stage.start, "sparkPlanInfo": plan}
        sums = [line for at, each in enumerate(stage.ran) for line in each.accumulables(1000 * own + 10 * at)]
        done = info | {"Completion Time": self.at + stage.end, "Accumulables": sums}
        ended = {"Job ID": own, "Completion Time": self.at + stage.end, "Job Result": {"Result": "JobSucceeded"}}
        return [
            {"Event": f"{SQL}ExecutionStart", **query, "description": stage.name, "details": ""},
            *([] if stage.attempt else [{"Event": "SparkListenerJobStart", **job}]),
            {"Event": "SparkListenerStageSubmitted", "Stage Info": info},
            *(self._task(own, stage.attempt, index, task) for index, task in enumerate(stage.tasks)),
            {"Event": "SparkListenerStageCompleted", "Stage Info": done},
            *([] if is_tried_again else [{"Event": "SparkListenerJobEnd", **ended}]),
        ]

    def _task(self, stage: int, attempt: int, index: int, task: Task) -> Line:
        task_info = {
            "Task ID": 1000 * stage + index, "Index": index, "Attempt": 0,
            "Executor ID": "e1", "Host": "h", "Failed": task.has_failed,
            "Launch Time": self.at + task.start, "Finish Time": self.at + task.end,
        }  # fmt: skip
        metrics = {
            "Executor Run Time": task.end - task.start - task.overhead, "Executor CPU Time": task.cpu * 1_000_000,
            "JVM GC Time": task.gc, "Memory Bytes Spilled": task.spilled,
            "Input Metrics": {"Bytes Read": task.rows * 10, "Records Read": task.rows},
            "Shuffle Read Metrics": {
                "Local Bytes Read": task.read, "Total Records Read": task.read // 100_000, "Fetch Wait Time": task.wait,
            },
        }  # fmt: skip
        return {
            "Event": "SparkListenerTaskEnd", "Stage ID": stage, "Stage Attempt ID": attempt, "Task Info": task_info,
            "Task End Reason": {"Reason": "ExceptionFailure" if task.has_failed else "Success"},
            "Task Metrics": metrics,
        }  # fmt: skip
