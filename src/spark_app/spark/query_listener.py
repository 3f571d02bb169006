"""Hears what Spark reports about streaming queries: their starts, micro-batches, idle times and ends.

PySpark's own `StreamingQueryListener` builds its events by a call to the JVM for each field, 50 and more for a
micro-batch, while Spark's listener bus waits. This one fetches the JSON of an event, which is one call or two.
"""

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from spark_app.telemetry.errors import TelemetryErrors

EventKind = Literal["started", "progress", "idle", "terminated"]
MAX_QUEUED: Final = 1_000
CLOSE_SECONDS: Final = 5.0
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class QueryEvent:
    """What Spark reports about a streaming query.

    Attributes:
        kind: What happened.
        query: The name of the query; empty if it has none, or started before it was listened to.
        run_id: Spark's id of the run of the query, which each start draws anew.
        json: Of a micro-batch, its `StreamingQueryProgress`; else the event.
    """

    kind: EventKind
    query: str
    run_id: str
    json: str


class _Event(msgspec.Struct):
    """What all events of Spark say."""

    run_id: str = msgspec.field(name="runId")
    name: str | None = None


class QueryListener:
    """Hands the events of all streaming queries of a session to a function, on a thread of its own, in their order.

    Spark only waits until an event is in a queue. Events that come while the queue is full are dropped and counted; an
    exception of the function is logged, once for each type, and does not reach Spark.

    Attributes:
        dropped: How many events were dropped.
    """

    def __init__(
        self, spark: SparkSession, handle: Callable[[QueryEvent], object], *, queued: int = MAX_QUEUED
    ) -> None:
        """Listens until it is closed.

        Args:
            spark: A session of this process, not one of Spark Connect.
            handle: Called with each event.
            queued: How many events may wait.
        """
        self.dropped = 0
        self._handle = handle
        self._names: dict[str, str] = {}
        self._errors = TelemetryErrors()
        self._queue: queue.Queue[tuple[EventKind, str] | None] = queue.Queue(queued)
        self._thread = threading.Thread(target=self._handle_queued, name="query-listener", daemon=True)
        self._thread.start()
        gateway: Any = SparkContext._gateway
        ensure_callback_server_started(gateway)
        package = gateway.jvm.org.apache.spark.sql.streaming
        self._queries = spark._jsparkSession.streams()
        self._registered = package.PythonStreamingQueryListenerWrapper(_JavaListener(self))
        self._queries.addListener(self._registered)

    def close(self) -> None:
        """Listens no more, and handles what is queued, within some seconds, also if the JVM has ended."""
        try:
            self._queries.removeListener(self._registered)
        except (Py4JError, OSError) as error:
            _LOG.info("the listener of streaming queries was not removed: %s", type(error).__name__)
        if self._thread.is_alive():
            self._end_thread()

    def receive(self, kind: EventKind, fetch: Callable[[], str]) -> None:
        """Queues the JSON of an event; called by Spark, which gets no exception and waits for nothing."""
        self._guard("an event of a streaming query is lost", self._receive, kind, fetch)

    def _end_thread(self) -> None:
        try:
            self._queue.put(None, timeout=CLOSE_SECONDS)
        except queue.Full:
            _LOG.warning("events of streaming queries were not handled: their handler hangs")
        self._thread.join(CLOSE_SECONDS)

    def _receive(self, kind: EventKind, fetch: Callable[[], str]) -> None:
        try:
            self._queue.put_nowait((kind, fetch()))
        except queue.Full:
            self.dropped += 1

    def _handle_queued(self) -> None:
        while (queued := self._queue.get()) is not None:
            self._guard("an event of a streaming query was not handled", self._handle_one, *queued)

    def _handle_one(self, kind: EventKind, text: str) -> None:
        event = msgspec.json.decode(text, type=_Event)
        run_id, name = event.run_id, event.name or self._names.get(event.run_id, "")
        if kind == "terminated":
            self._names.pop(run_id, None)
        else:
            self._names[run_id] = name
        self._handle(QueryEvent(kind, name, run_id, text))

    def _guard(self, what: str, call: Callable[..., object], *arguments: object) -> None:
        self._errors.guard(what, call, *arguments)
        for error in self._errors.unlogged():
            _LOG.warning("%s", error)


class _JavaListener:
    """What Spark calls, through Py4J: an interface of Java."""

    class Java:
        implements: Final = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]

    def __init__(self, listener: QueryListener) -> None:
        self._listener = listener

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Java's name
        self._listener.receive("started", event.json)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Java's name
        self._listener.receive("progress", lambda: str(event.progress().json()))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Java's name
        self._listener.receive("idle", event.json)

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Java's name
        self._listener.receive("terminated", event.json)
