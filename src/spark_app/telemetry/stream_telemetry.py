"""Measures a streaming query: each micro-batch, what state it is in, and its signs of life in between."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from spark_app.telemetry.run_telemetry import RunTelemetry
from spark_app.vocabulary import names
from spark_app.vocabulary.names import StreamState
from spark_app.vocabulary.spark_progress import Progress
from spark_app.vocabulary.stream_lag import AskLag
from spark_app.vocabulary.stream_measurements import measurements

SIGN_OF_LIFE_SECONDS: Final = 15.0
"""How often what changes with time is measured again."""
SILENCE_SECONDS: Final = 60.0
"""Spark reports a micro-batch, and repeats that a query is idle every 10 s, at a trigger: after so long without, or
three triggers, what it reported last holds no longer."""
MAX_TOPICS: Final = 50
"""How many topics of a query are labels; a query that subscribes to a pattern may read any number."""


class StreamTelemetry:
    """The metrics of one streaming query within its run; several threads may call it, and it never raises.

    State and the time without progress are measured again every quarter of a minute while the run is open, even if
    Spark reports nothing, and lag at each flush: a query that hangs falls behind, and one whose process is gone sends
    nothing. Lag is what the brokers say; while it is not known, nothing is sent. Nobody can be asked about files, nor
    about a query in real time: their lag is what Spark says of a trigger.

    A micro-batch costs measurements in memory, on the thread of the listener; the next flush of the run writes them.
    """

    def __init__(
        self,
        run: RunTelemetry,
        *,
        trigger_seconds: float | None = None,
        sink: str | None = None,
        ask_lag: AskLag | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """A query that is starting.

        Args:
            run: The run of the query, which has started.
            trigger_seconds: Time from one trigger to the next; None for a query that ends when all is read.
            sink: The table or topic that the query writes, as label of rows written; None if its batches count them.
            ask_lag: What the query has not read by now; None where only Spark can be asked.
            clock: The Unix time.
        """
        self._run, self._trigger, self._sink, self._clock = run, trigger_seconds, sink, clock
        self._ask_lag = ask_lag
        self._lock = threading.Lock()
        self._state: StreamState | None = None
        self._reported_at = self._measured_at = self._progressed_at = clock()
        self._topics = set[str]()
        self._announced = set[str]()
        self._newest: dict[str, float] = {}
        self._is_unread: Mapping[str, bool] = {}
        self._guarded(self._announce)
        run.before_flush(self.sign_of_life)

    def enter(self, state: StreamState) -> None:
        """The query is in a state; `idle` holds for a minute, or three triggers, unless it is repeated."""
        self._guarded(self._enter, state)

    def progressed(self, progress: Progress) -> None:
        """Spark reports on a trigger; one without a micro-batch changes nothing."""
        if progress.has_batch:
            self._guarded(self._progressed, progress)

    def restarted(self) -> None:
        """The query failed and is started again."""
        self._guarded(self._run.measure, names.STREAM_RESTARTS, 1)

    def deleted(self, topic: str, records: int) -> None:
        """The brokers had deleted records before the query read them."""
        self._guarded(self._run.measure, names.STREAM_DELETED, records, {names.TOPIC: topic})

    def sign_of_life(self) -> None:
        """Measures what changes with time, if that was not done for a while."""
        self._guarded(self._measure_again)

    def _guarded(self, call: Callable[..., object], *arguments: object) -> None:
        with self._lock:
            self._run.errors.guard("a streaming query is not measured", call, *arguments)

    def _announce(self) -> None:
        """Starts counters at 0, in an export of their own: the first value of a series is no increase."""
        self._run.measure(names.STREAM_BATCHES, 0)
        self._run.measure(names.STREAM_RESTARTS, 0)
        if self._sink is not None:
            self._run.announce_table(self._sink)
        self._enter("starting")
        self._run.export_metrics()

    def _enter(self, state: StreamState) -> None:
        self._reported_at = self._clock()
        if state == "idle" or self._state == "waiting":
            self._progressed_at = self._reported_at
        if state == "idle":
            self._is_unread = dict.fromkeys(self._topics, False)
        if state != self._state:
            self._state = state
            self._measure_state()

    def _progressed(self, progress: Progress) -> None:
        self._learn(progress)
        for each in measurements(progress):
            is_answered = each.metric is names.STREAM_LAG_RECORDS and self._ask_lag is not None
            if each.labels.get(names.TOPIC, "") in {"", *self._topics} and not is_answered:
                self._run.measure(each.metric, each.value, each.labels)
        self._run.record(rows_read=progress.rows_read, rows_duplicate=progress.rows_duplicate)
        if self._sink is not None and progress.rows_written is not None:
            self._run.record(rows_written={self._sink: progress.rows_written}, rows_published=progress.rows_written)
        self._progressed_at = self._clock()
        self._enter("running")
        self._measure_ages()

    def _learn(self, progress: Progress) -> None:
        """Keeps what lag in seconds is measured by, also of topics that the next micro-batches do not read."""
        others = sorted(((progress.lag or {}).keys() | progress.newest_records.keys()) - self._topics)
        self._topics.update(others[: MAX_TOPICS - len(self._topics)])
        for topic, newest in progress.newest_records.items():
            if newest is not None and topic in self._topics:
                self._newest[topic] = newest
        self._is_unread = progress.is_unread

    def _measure_again(self) -> None:
        if self._clock() - self._reported_at > max(SILENCE_SECONDS, 3 * (self._trigger or 0)):
            self._is_unread = {}
            if self._state == "idle":
                self._enter("running")
        if self._clock() - self._measured_at >= SIGN_OF_LIFE_SECONDS:
            self._measure_state()
        self._measure_answered_lag()

    def _measure_state(self) -> None:
        self._measured_at = self._clock()
        for state in names.STREAM_STATES:
            self._run.measure(names.STREAM_STATE_NOW, int(state == self._state), {names.STREAM_STATE: state})
        self._run.measure(names.STREAM_STATE_TIME, self._measured_at, {names.STREAM_STATE: f"{self._state}"})
        if self._trigger is not None:
            self._run.measure(names.STREAM_TRIGGER, self._trigger)
        self._measure_ages()

    def _measure_ages(self) -> None:
        """Measures what grows while a query that is alive hangs; lag of files is 0 only where it is known to be.

        A timestamp in the future, as a wrong clock of a producer gives, says nothing about lag.
        """
        if self._state in {"waiting", "stopped", "failed"}:
            return
        self._run.measure(names.STREAM_PROGRESS_AGE, self._clock() - self._progressed_at)
        if self._ask_lag is not None:
            return
        for topic, newest in self._newest.items():
            age = self._clock() - newest if self._is_unread.get(topic, True) else 0.0
            if age >= 0:
                self._run.measure(names.STREAM_LAG_TIME, age, {names.TOPIC: topic})

    def _measure_answered_lag(self) -> None:
        lag = None if self._ask_lag is None or self._state in {"stopped", "failed"} else self._ask_lag()
        if lag is None:
            return
        new = sorted(lag.records.keys() - self._announced)[: MAX_TOPICS - len(self._announced)]
        for topic in new:
            self._run.measure(names.STREAM_DELETED, 0, {names.TOPIC: topic})
        self._announced.update(new)
        for metric, values in (
            (names.STREAM_LAG_RECORDS, lag.records),
            (names.STREAM_LAG_TIME, lag.seconds(self._clock())),
        ):
            for topic in values.keys() & self._announced:
                self._run.measure(metric, values[topic], {names.TOPIC: topic})
