"""Asks the brokers each second what running queries have not read yet, on a thread that no query waits for."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol, Self

from py4j.protocol import Py4JError

from spark_app.telemetry.exceptions import message_of
from spark_app.vocabulary.stream_lag import BrokerOffsets, Gap, Lag, Partition, unread

ASK_SECONDS: Final = 1.0
"""How often the brokers are asked: two requests, which took 4 ms in all for a topic of two partitions."""
FRESH_SECONDS: Final = 5.0
"""How long an answer holds; then it is unknown what there is."""
SEARCH_SECONDS: Final = 2.0
"""How long timestamps of unread records are looked for before the brokers are asked again."""
_LOG: Final = logging.getLogger(__name__)
_UNREACHABLE: Final = (Py4JError, OSError)


class Brokers(Protocol):
    """Answers what there is; `KafkaOffsets` is one."""

    def ask(self, topics: Sequence[str]) -> BrokerOffsets:
        """The first and end offsets of all partitions of topics."""

    def timestamp(self, partition: Partition, offset: int) -> float | None:
        """The timestamp of the first record at an offset or after it."""

    def close(self) -> None:
        """Closes the connections."""


OnDeleted = Callable[[str, int], object]
"""Hears of a topic and how many of its records were deleted before the query read them."""


@dataclass
class _Query:
    """A query that is watched.

    Attributes:
        topics: What it reads.
        on_deleted: Hears what it will never read.
        processed: The next offset to read of each partition; None while nobody knows.
        gaps: Offsets that it went over, of which the brokers have not said yet whether they deleted them.
        lag: What it has not read, by the last answer.
        missing: Topics that the brokers do not have, by the same answer.
        answered_at: When that came, by the monotonic clock.
    """

    topics: Sequence[str]
    on_deleted: OnDeleted
    processed: Mapping[Partition, int] | None = None
    gaps: list[Gap] = field(default_factory=list)
    lag: Lag | None = None
    missing: Sequence[str] = ()
    answered_at: float = 0.0


class LagWatch(threading.Thread):
    """What queries have not read, by the last answer of the brokers; it never raises.

    Queries may be added and asked about from any thread. While no broker answers, lag is unknown.
    """

    def __init__(self, connect: Callable[[], Brokers], *, clock: Callable[[], float] = time.monotonic) -> None:
        """Asks nobody before it starts.

        Args:
            connect: Gives the client; called on the thread of the watch.
            clock: The monotonic clock.
        """
        super().__init__(name="kafka-lag", daemon=True)
        self._connect, self._clock = connect, clock
        self._queries: dict[str, _Query] = {}
        self._timestamps: dict[tuple[Partition, int], float] = {}
        self._condition = threading.Condition()
        self._is_wanted, self._is_closing = False, False
        self._begun = self._ended = 0
        self._problem: str | None = None

    def __enter__(self) -> Self:
        """Begins to ask."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Asks no more; waits for an answer that is under way."""
        with self._condition:
            self._is_closing = True
            self._condition.notify_all()
        self.join(FRESH_SECONDS)

    def follow(self, query: str, topics: Sequence[str], on_deleted: OnDeleted) -> None:
        """Watches a query whose processed offsets are not known yet."""
        with self._condition:
            self._queries[query] = _Query(topics, on_deleted)

    def processed(self, query: str, offsets: Mapping[Partition, int], gaps: Sequence[Gap] = ()) -> None:
        """A query has processed all records before these offsets: the brokers are asked again at once."""
        with self._condition:
            watched = self._queries[query]
            watched.processed = offsets
            watched.gaps.extend(gaps)
            self._wake()

    def lag(self, query: str) -> Lag | None:
        """What a query has not read by now; None if that is not known."""
        with self._condition:
            watched = self._queries.get(query)
            if watched is None or self._clock() - watched.answered_at > FRESH_SECONDS:
                return None
            return watched.lag

    def missing(self, query: str) -> Sequence[str]:
        """The topics of a query that the brokers do not have; none if they do not answer."""
        self.settle()
        with self._condition:
            watched = self._queries.get(query)
            return () if watched is None else watched.missing

    def settle(self, seconds: float = FRESH_SECONDS) -> None:
        """Waits until the brokers were asked from now on, whether they answer or not."""
        with self._condition:
            wanted = self._begun + 1
            self._wake()
            self._condition.wait_for(lambda: self._ended >= wanted or not self.is_alive(), seconds)

    def run(self) -> None:
        """Asks until it is closed."""
        brokers: Brokers | None = None
        while not self._is_closing:
            with self._condition:
                self._begun, self._is_wanted = self._begun + 1, False
            try:
                brokers = brokers or self._connect()
                self._ask(brokers)
                self._problem = None
            except Exception as error:  # noqa: BLE001 - telemetry never raises
                self._fail(error)
            self._wait()
        if brokers is not None:
            with suppress(*_UNREACHABLE):
                brokers.close()

    def _wake(self) -> None:
        self._is_wanted = True
        self._condition.notify_all()

    def _wait(self) -> None:
        with self._condition:
            self._ended = self._begun
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._is_wanted or self._is_closing, ASK_SECONDS)

    def _ask(self, brokers: Brokers) -> None:
        with self._condition:
            asked = [(query, query.processed, tuple(query.gaps)) for query in self._queries.values()]
        topics = sorted({topic for query, _, _ in asked for topic in query.topics})
        there = brokers.ask(topics) if topics else BrokerOffsets({}, {})
        deadline = self._clock() + SEARCH_SECONDS
        for query, processed, gaps in asked:
            lag = None if processed is None else self._lag(brokers, query.topics, processed, there, deadline)
            with self._condition:
                query.lag, query.answered_at = lag, self._clock()
                query.missing = [each for each in query.topics if not any(topic == each for topic, _ in there.end)]
            self._tell_deleted(query, gaps, there)
        self._forget_timestamps(there)

    def _tell_deleted(self, query: _Query, gaps: Sequence[Gap], there: BrokerOffsets) -> None:
        """Says what of the gaps the brokers had deleted; a topic of which they say nothing is asked for again."""
        known = [gap for gap in gaps if any(topic == gap.topic for topic, _ in there.first)]
        with self._condition:
            query.gaps = [gap for gap in query.gaps if gap not in known]
        for gap in known:
            if deleted := gap.deleted(there):
                query.on_deleted(gap.topic, deleted)

    def _lag(
        self,
        brokers: Brokers,
        topics: Sequence[str],
        processed: Mapping[Partition, int],
        there: BrokerOffsets,
        deadline: float,
    ) -> Lag | None:
        """What is unread of topics; None unless the brokers have all of them."""
        spans = {each: span for each, span in unread(processed, there).items() if each[0] in topics}
        if {topic for topic, _ in spans} != set(topics):
            return None
        records, times = dict.fromkeys(topics, 0), dict[str, list[float | None]]()
        for (topic, number), (first, end) in spans.items():
            records[topic] += end - first
            if first < end:
                seen = self._timestamp(brokers, (topic, number), first, deadline=deadline)
                times.setdefault(topic, []).append(seen)
        return Lag(records, {topic: _lowest(of_topic) for topic, of_topic in times.items()})

    def _timestamp(self, brokers: Brokers, partition: Partition, offset: int, *, deadline: float) -> float | None:
        """The timestamp of a record, which is asked for once."""
        key = (partition, offset)
        if key not in self._timestamps and self._clock() < deadline:
            found = brokers.timestamp(partition, offset)
            if found is not None:
                self._timestamps[key] = found
        return self._timestamps.get(key)

    def _forget_timestamps(self, there: BrokerOffsets) -> None:
        """Keeps only timestamps of records that some query still has to read."""
        with self._condition:
            processed = [query.processed for query in self._queries.values() if query.processed is not None]
        wanted = {(each, span[0]) for offsets in processed for each, span in unread(offsets, there).items()}
        self._timestamps = {key: value for key, value in self._timestamps.items() if key in wanted}

    def _fail(self, error: Exception) -> None:
        """Makes lag unknown, and says once why."""
        with self._condition:
            for query in self._queries.values():
                query.lag, query.missing = None, ()
        lines = message_of(error).splitlines()
        # What py4j says of an exception of Java: a line about the call, and then its text.
        problem = next((line.strip(": ") for line in lines if line.startswith(":")), lines[0] if lines else "")
        if problem != self._problem:
            _LOG.warning("the lag of streaming queries is unknown: Kafka does not say what it has: %s", problem)
        self._problem = problem


def _lowest(times: Sequence[float | None]) -> float | None:
    """The lowest of some times; None unless all are known."""
    known = [each for each in times if each is not None]
    return min(known) if len(known) == len(times) else None
