"""Lines of a small event log, made one by one."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from spark_app.eventlog.model.application import Application
from spark_app.eventlog.parse import events
from spark_app.eventlog.parse.events import Event
from spark_app.eventlog.spans import SparkSpan
from tests.eventlogs import walking

CONNECT: Final = "org.apache.spark.sql.connect.service.SparkListenerConnect"
SQL: Final = "org.apache.spark.sql.execution.ui.SparkListenerSQL"
PLAN: Final = {"nodeName": "WholeStageCodegen (1)", "simpleString": "", "children": [{"nodeName": "Project"}]}
Line = dict[str, Any]


def started(time: int = 1000) -> Line:
    """The application begins."""
    fields = {"App Name": "shop", "App ID": "app-1", "Timestamp": time, "User": "me"}
    return {"Event": "SparkListenerApplicationStart", **fields}


def ended(time: int = 9000) -> Line:
    """The application ends."""
    return {"Event": "SparkListenerApplicationEnd", "Timestamp": time}


def environment(properties: Mapping[str, str]) -> Line:
    """What the application was started with."""
    return {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": dict(properties)}


def executor(number: str = "0", *, cores: int = 4, time: int = 1000, host: str = "h", **attributes: str) -> Line:
    """An executor comes."""
    info = {"Host": host, "Total Cores": cores, "Log Urls": {}, "Attributes": attributes}
    return {"Event": "SparkListenerExecutorAdded", "Timestamp": time, "Executor ID": number, "Executor Info": info}


def removed(number: str = "0", *, time: int, reason: str) -> Line:
    """An executor goes."""
    fields = {"Timestamp": time, "Executor ID": number, "Removed Reason": reason}
    return {"Event": "SparkListenerExecutorRemoved", **fields}


def job(number: int, stages: list[int], **properties: Any) -> Line:
    """A job begins, at a `time`."""
    time = properties.pop("time", 2000)
    fields = {"Job ID": number, "Submission Time": time, "Stage Infos": [], "Stage IDs": stages}
    return {"Event": "SparkListenerJobStart", **fields, "Properties": properties}


def job_ended(number: int, *, time: int = 3000, error: str | None = None) -> Line:
    """A job ends."""
    failed = {"Result": "JobFailed", "Exception": {"Message": error, "Stack Trace": []}}
    result = {"Result": "JobSucceeded"} if error is None else failed
    return {"Event": "SparkListenerJobEnd", "Job ID": number, "Completion Time": time, "Job Result": result}


def stage(number: int, attempt: int = 0, *, end: int | None = None, error: str | None = None, tasks: int = 1) -> Line:
    """A stage attempt begins, or ends where an end is given."""
    info = {"Stage ID": number, "Stage Attempt ID": attempt, "Stage Name": "save at job.py:7", "Number of Tasks": tasks}
    info |= {"Submission Time": 2100} | ({} if end is None else {"Completion Time": end})
    info |= {} if error is None else {"Failure Reason": error}
    return {"Event": f"SparkListenerStage{'Submitted' if end is None else 'Completed'}", "Stage Info": info}


def task(
    number: int, stage: int, attempt: int = 0, *, seconds: float = 0.1, error: str | None = None, **info: Any
) -> Line:
    """A task ends."""
    task_info = {"Task ID": number, "Index": number, "Attempt": 0, "Launch Time": 2200, "Executor ID": "0", "Host": "h"}
    task_info |= {"Finish Time": 2200 + int(seconds * 1000), "Failed": error is not None, "Killed": False} | info
    failed = {"Reason": "ExceptionFailure", "Class Name": "java.lang.IllegalStateException", "Description": error}
    metrics = {"Executor Run Time": int(seconds * 900), "Memory Bytes Spilled": 5}
    fields = {"Stage ID": stage, "Stage Attempt ID": attempt, "Task Type": "ResultTask", "Task Info": task_info}
    reason = {"Reason": "Success"} if error is None else failed
    return {"Event": "SparkListenerTaskEnd", **fields, "Task End Reason": reason, "Task Metrics": metrics}


def starts(tasks: Iterable[Line]) -> list[Line]:
    """The starts of tasks that end."""
    return [{**task, "Event": "SparkListenerTaskStart"} for task in tasks]


def resubmitted(task: Line) -> Line:
    """A task that has succeeded ends once more, because its output was lost with its executor."""
    reason = {"Task End Reason": {"Reason": "Resubmitted"}}
    return {key: value for key, value in task.items() if key != "Task Metrics"} | reason


def exclusion(name: str, *, time: int = 2500, **fields: Any) -> Line:
    """An executor or a host is excluded, or no longer: `ExecutorExcluded`, `NodeUnexcluded`."""
    return {"Event": f"org.apache.spark.scheduler.SparkListener{name}", "time": time, **fields}


def query(number: int, *, root: int | None = None, time: int = 1900) -> Line:
    """A query begins."""
    fields = {"executionId": number, "rootExecutionId": number if root is None else root, "time": time}
    return {"Event": f"{SQL}ExecutionStart", **fields, "description": "d", "details": "", "sparkPlanInfo": PLAN}


def query_ended(number: int, *, time: int = 3100, error: str = "") -> Line:
    """A query ends."""
    return {"Event": f"{SQL}ExecutionEnd", "executionId": number, "time": time, "errorMessage": error}


def session(number: str = "s", *, user: str = "ana", time: int = 1500, is_closed: bool = False) -> Line:
    """A session of Spark Connect begins, or is closed."""
    name = f"{CONNECT}Session{'Closed' if is_closed else 'Started'}"
    return {"Event": name, "sessionId": number, "userId": user, "eventTime": time, "extraTags": {}}


def operation(
    number: str, *, session: str = "s", user: str = "ana", time: int = 1600, statement: str = "range {\n}\n"
) -> Line:
    """An operation of Spark Connect begins."""
    fields = {"jobTag": tag(number), "operationId": number, "eventTime": time, "sessionId": session}
    fields |= {"userId": user, "userName": "", "statementText": statement, "sparkSessionTags": [], "extraTags": {}}
    return {"Event": f"{CONNECT}OperationStarted", **fields}


def tag(operation: str) -> str:
    """The job tag of an operation."""
    return f"SparkConnect_OperationTag_User_ana_Session_s_Operation_{operation}"


def becomes(number: str, what: str, *, time: int, **fields: Any) -> Line:
    """An operation goes on: `Analyzed`, `ReadyForExecution`, `Finished`, `Failed`, `Canceled`, `Closed`."""
    own = {"jobTag": tag(number), "operationId": number, "eventTime": time, **fields, "extraTags": {}}
    return {"Event": f"{CONNECT}Operation{what}", **own}


def packed(lines: Iterable[Line]) -> Iterator[bytes]:
    """Lines as Spark writes them."""
    return (json.dumps(line, separators=(",", ":")).encode() for line in lines)


def events_of(lines: Iterable[Line]) -> Iterator[Event]:
    """The events of lines, which all hold one."""
    for line in packed(lines):
        event = events.event(line)
        assert event is not None, line
        yield event


def application(lines: Iterable[Line]) -> Application:
    """What lines say of an application; all of them can be read."""
    return walking.application(packed(lines))


def read(lines: Iterable[Line]) -> tuple[Application, dict[str, SparkSpan]]:
    """What some lines say of an application, and its spans by kind and number."""
    app, found = walking.read_lines(packed(lines))
    return app, {label(span): span for span in found}


def label(span: SparkSpan) -> str:
    """Its kind and its number: `stage 0.1` is the second attempt of stage 0."""
    kind = span.kind.prefix
    keys = {"sql": "spark.sql.execution.id", "application": "spark.app.id", "batch": "spark.streaming.batch.id"}
    keys |= {"session": "session.id", "operation": "spark.connect.operation.id"}
    number = span.attributes.get(keys.get(kind, f"spark.{kind}.id"))
    return f"{kind} {number}" + (f".{span.attributes['spark.stage.attempt']}" if kind == "stage" else "")
