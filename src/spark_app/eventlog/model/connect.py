"""Sessions and operations of a Spark Connect server: who asked for what, when it was ready to run, and how it ended."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from spark_app.eventlog.model.clock import Clock
from spark_app.eventlog.model.connect_statements import Statement, parse
from spark_app.eventlog.parse import events

Status = Literal["succeeded", "failed", "canceled", "not finished"]
TAG: Final = "SparkConnect_OperationTag_"
"""The prefix of the job tag that Spark gives to all jobs of an operation."""
DESCRIPTION: Final = "Spark Connect - "
"""Begins the description of the jobs and SQL executions of an operation, which goes on with the text of its request."""
PLUGIN: Final = "org.apache.spark.sql.connect.SparkConnectPlugin"
"""In `spark.plugins` where an application runs a server in its own driver, as PySpark's local mode of Connect does."""


def is_request(description: str | None) -> bool:
    """Whether a description is the text of a request, which Spark gives to jobs and SQL executions of an operation."""
    return (description or "").startswith(DESCRIPTION)


def is_own_server(properties: Mapping[str, str]) -> bool:
    """Whether a program runs a Spark Connect server in its own driver, as PySpark's local mode of Connect does."""
    return PLUGIN in properties.get("spark.plugins", "")


class SessionKey(NamedTuple):
    """A session; its id is the client's, so that sessions of two users may share one."""

    user: str
    id: str


@dataclass(slots=True)
class Session:
    """A session of a client.

    Attributes:
        user: The id of its user, as the client says; empty where it does not.
        is_cut: Whether the log lacks its start.
        ended: None while it is open, and where the log lacks its end.
        open: The operations that are not over, by their ids.
        left: The operations that were not over when it ended: they end with it.
        flows: The operations that have defined the flows of a declarative pipeline, by the names of their datasets.
    """

    key: SessionKey
    started: int
    is_cut: bool = False
    ended: int | None = None
    open: "dict[str, Operation]" = field(default_factory=dict)
    left: "list[Operation]" = field(default_factory=list)
    flows: "dict[str, Operation]" = field(default_factory=dict)

    @property
    def user(self) -> str:
        """The id of its user."""
        return self.key.user


@dataclass(slots=True)
class Operation:
    """What a client asked a server to run.

    Attributes:
        user_name: The name of its user, which few clients give.
        ready: When its plan was analyzed and ready to run; None where that did not happen.
        finished: When it had run, failed or was canceled.
        latest: The end of the last of its SQL executions and jobs that have ended.
        ended: When it was over, with the result at its client; None until then.
        rows: How many rows its client got; None for a command.
        first_task: When the first of its tasks was launched, as far as stages have ended.
    """

    id: str
    tag: str
    session: SessionKey
    user_name: str
    statement: Statement
    started: int
    ready: int | None = None
    finished: int | None = None
    ended: int | None = None
    rows: int | None = None
    error: str | None = None
    is_canceled: bool = False
    first_task: int | None = None
    latest: int = 0

    @property
    def prepare_ms(self) -> int | None:
        """From the request until its plan was ready to run."""
        return None if self.ready is None else self.ready - self.started

    @property
    def wait_ms(self) -> int | None:
        """From then until its first task was launched, which a lack of cores delays; None without any."""
        since = self.started if self.ready is None else self.ready
        return None if self.first_task is None else max(0, self.first_task - since)

    def part_ended(self, time: int) -> None:
        """Notes the end of a SQL execution or a job; a SQL execution may end just after the rows are sent."""
        self.latest = max(self.latest, time)

    def launched(self, task: int | None) -> None:
        """Takes the first launch of a task of a stage."""
        if task is not None:
            self.first_task = task if self.first_task is None else min(self.first_task, task)

    @property
    def status(self) -> Status:
        """How it ended; one that fails because it was canceled was canceled."""
        if self.is_canceled:
            return "canceled"
        if self.error is not None:
            return "failed"
        return "not finished" if self.finished is None else "succeeded"


class Connect:
    """The sessions and operations of an application.

    Attributes:
        sessions, operations: By their keys; empty in an application without Spark Connect.
    """

    def __init__(self, clock: Clock) -> None:
        """Starts without any."""
        self.sessions: dict[SessionKey, Session] = {}
        self.operations: dict[str, Operation] = {}
        self._by_tag: dict[str, str] = {}
        self._clock = clock

    def session_started(self, event: events.ConnectSessionStarted) -> None:
        """Adds a session."""
        key = SessionKey(event.user, event.id)
        self.sessions[key] = Session(key, event.time)

    def session_closed(self, event: events.ConnectSessionClosed) -> Session | None:
        """Ends a session, and the operations that it leaves open."""
        session = self.sessions.get(SessionKey(event.user, event.id))
        if session is None or session.ended is not None:
            return None
        session.ended = self._clock.end(event.time, session.started)
        session.left, session.open = list(session.open.values()), {}
        for operation in session.left:
            operation.ended = max(session.ended, operation.started)
        return session

    def started(self, event: events.ConnectOperationStarted) -> None:
        """Adds an operation, and its session if the log lacks the start of that."""
        key = SessionKey(event.user, event.session)
        session = self.sessions.setdefault(key, Session(key, event.time, is_cut=True))
        time = self._clock.start(event.time, session.started)
        operation = Operation(event.id, event.job_tag, key, event.user_name, parse(event.statement), time)
        self.operations[event.id] = session.open[event.id] = operation
        self._by_tag[event.job_tag] = event.id
        if operation.statement.kind == "define_flow" and operation.statement.subject:
            session.flows[operation.statement.subject] = operation

    def ready(self, event: events.ConnectOperationReady) -> None:
        """Notes when the plan of an operation was ready to run."""
        operation = self.operations.get(event.id)
        if operation is not None and operation.ready is None:
            operation.ready = self._clock.end(event.time, operation.started)

    def finished(self, event: events.ConnectOperationFinished) -> None:
        """Notes that an operation has run."""
        operation = self._finish(event.id, event.time)
        if operation is not None:
            operation.rows = event.rows

    def failed(self, event: events.ConnectOperationFailed) -> None:
        """Notes that an operation has failed."""
        operation = self._finish(event.id, event.time)
        if operation is not None:
            operation.error = event.error

    def canceled(self, event: events.ConnectOperationCanceled) -> None:
        """Notes that an operation was interrupted; a server may also interrupt what has failed just before."""
        operation = self._finish(event.id, event.time)
        if operation is not None:
            operation.is_canceled = operation.error is None

    def closed(self, event: events.ConnectOperationClosed) -> Operation | None:
        """Ends an operation."""
        operation = self.operations.get(event.id)
        if operation is None or operation.ended is not None:
            return None
        operation.ended = self._clock.end(event.time, operation.started, max(operation.finished or 0, operation.latest))
        session = self.sessions.get(operation.session)
        if session is not None:
            session.open.pop(event.id, None)
        return operation

    @property
    def open_sessions(self) -> list[Session]:
        """The sessions that have not ended."""
        return [session for session in self.sessions.values() if session.ended is None]

    def flow(self, operation: Operation, dataset: str) -> Operation | None:
        """The definition of the flow that writes a dataset in a run of a pipeline; None for anything else.

        A flow has the name of its dataset, without the catalog and the database of the pipeline.
        """
        session = self.sessions.get(operation.session)
        if session is None or operation.statement.kind != "start_run":
            return None
        return session.flows.get(dataset) or session.flows.get(dataset.rpartition(".")[2])

    def of_tags(self, tags: Iterable[str]) -> Operation | None:
        """The operation that one of some job tags names; None for work that no operation asked for."""
        ids = (self._by_tag.get(tag) for tag in tags if tag.startswith(TAG)) if self._by_tag else ()
        return next((self.operations[number] for number in ids if number is not None), None)

    def forget(self, operation: Operation) -> None:
        """Forgets an operation that is over."""
        self.operations.pop(operation.id, None)
        self._by_tag.pop(operation.tag, None)

    def _finish(self, number: str, time: int) -> Operation | None:
        operation = self.operations.get(number)
        if operation is not None:
            operation.finished = self._clock.end(time, operation.started)
        return operation
