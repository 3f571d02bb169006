"""Sends spans and metrics from threads of their own: reading never waits for the collector."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

from spark_app.eventlog.spans import SparkSpan

MAX_BATCH: Final = 512
"""The most spans of one request."""
MAX_BATCH_WEIGHT: Final = 3_000_000
"""Approximate bytes of one request: a gRPC receiver accepts 4 MiB by default."""
MAX_WEIGHT: Final = 32_000_000
"""Approximate bytes of memory of the queued spans."""
FIRST_PAUSE_SECONDS: Final = 0.5
MAX_PAUSE_SECONDS: Final = 10.0
MAX_REFUSALS: Final = 3
"""How often the collector may refuse a batch while it accepts others."""
_BARE_WEIGHT: Final = 2500

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OwnedSpan:
    """A span, and the name of its application with its labels."""

    application: str
    span: SparkSpan

    @property
    def weight(self) -> int:
        """Its approximate bytes in memory."""
        texts = sum(len(value) for value in self.span.attributes.values() if isinstance(value, str))
        return _BARE_WEIGHT + texts + 1000 * len(self.span.findings) + 200 * len(self.span.links)


@dataclass(slots=True)
class _Batch:
    first: int
    spans: list[OwnedSpan]
    weight: int = 0
    refusals: int = 0
    taken_before: int = 0


class SpanQueue:
    """The spans on their way to a collector; a full queue drops and counts new ones.

    Attributes:
        sent, dropped: Numbers of spans.
        failures: Requests that the collector did not accept.
        is_reachable: Whether the collector accepted the last request.
    """

    def __init__(self, export: Callable[[Sequence[OwnedSpan]], bool]) -> None:
        """Starts the thread; `export` returns whether the collector accepted a batch."""
        self.sent = self.dropped = self.failures = 0
        self.is_reachable = True
        self._export = export
        self._waiting: deque[tuple[OwnedSpan, int]] = deque()
        self._added = self._removed = 0
        self._put = self._taken = self._settled = self._accepted = 0
        self._refused: deque[_Batch] = deque()
        self._pause = FIRST_PAUSE_SECONDS
        self._wake, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="span-sender", daemon=True)
        self._thread.start()

    def put(self, owned: OwnedSpan) -> None:
        """Queues a span, or drops it."""
        weight = owned.weight
        if self.weight + weight > MAX_WEIGHT:
            self.dropped += 1
            return
        self._added += weight
        self._put += 1
        self._waiting.append((owned, weight))

    def flush(self) -> None:
        """Wakes the thread if spans are queued."""
        if self._waiting:
            self._wake.set()

    @property
    def weight(self) -> int:
        """Approximate bytes of memory of all queued spans."""
        return self._added - self._removed

    @property
    def is_crowded(self) -> bool:
        """Whether reading should pause, so that the queue drops no spans."""
        return self.is_reachable and self.weight > MAX_WEIGHT / 2

    @property
    def queued(self) -> int:
        """The number of queued spans."""
        return self._put - self._settled

    def mark(self) -> int:
        """The number of spans so far, for `is_settled`."""
        return self._put

    def is_settled(self, mark: int) -> bool:
        """Whether all spans before a mark are accepted or dropped."""
        return self._settled >= mark

    def close(self, seconds: float) -> None:
        """Sends queued spans for this time, while the collector accepts them; the rest stays unsettled."""
        self._ending.set()
        self._wake.set()
        self._thread.join(seconds)

    def _work(self) -> None:
        while not self._ending.is_set() or self._waiting or self._refused:
            self._wake.wait()
            self._wake.clear()
            while (batch := self._next()) is not None:
                self._deliver(batch)
                oldest = min((refused.first for refused in self._refused), default=self._taken + 1)
                self._settled = oldest - 1
                if self._ending.is_set() and not self.is_reachable:
                    return

    def _next(self) -> _Batch | None:
        """A new batch, unless two refused ones wait or no span is new."""
        if self._refused and (not self._waiting or len(self._refused) > 1 or self.is_reachable):
            return self._refused.popleft()
        if not self._waiting:
            return None
        batch = _Batch(self._taken + 1, [])
        while self._waiting and len(batch.spans) < MAX_BATCH and batch.weight < MAX_BATCH_WEIGHT:
            owned, weight = self._waiting.popleft()
            batch.spans.append(owned)
            batch.weight += weight
        self._taken += len(batch.spans)
        return batch

    def _deliver(self, batch: _Batch) -> None:
        self.is_reachable = self._export(batch.spans)
        if self.is_reachable:
            self._removed += batch.weight
            self._accepted += 1
            self._pause = FIRST_PAUSE_SECONDS
            self.sent += len(batch.spans)
            return
        self.failures += 1
        batch.refusals += bool(batch.refusals == 0 or batch.taken_before < self._accepted)
        batch.taken_before = self._accepted
        if batch.refusals > MAX_REFUSALS:
            self._removed += batch.weight
            self.dropped += len(batch.spans)
            return
        self._refused.append(batch)
        self._ending.wait(self._pause)
        self._pause = min(2 * self._pause, MAX_PAUSE_SECONDS)


class SumSender(Generic[T]):
    """Sends values that add up: what could not be sent goes with the next value."""

    def __init__(self, export: Callable[[T], bool], add: Callable[[T, T], T]) -> None:
        """Starts the thread; `export` returns whether the collector accepted the value."""
        self._export, self._add = export, add
        self._waiting: SimpleQueue[T | None] = SimpleQueue()
        self._rest: list[T] = []
        self._thread = threading.Thread(target=self._work, name="sum-sender", daemon=True)
        self._thread.start()

    def put(self, value: T) -> None:
        """Sends a value as soon as those before are sent or have failed."""
        self._waiting.put(value)

    def close(self, seconds: float) -> bool:
        """Sends what waits within this time; returns whether it did so."""
        self._waiting.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive() and not self._rest

    def _work(self) -> None:
        while (value := self._waiting.get()) is not None:
            self._rest = [self._add(rest, value) for rest in self._rest] or [value]
            if self._export(self._rest[0]):
                self._rest = []


class LatestSender(Generic[T]):
    """Sends the latest value only: the next value replaces one that could not be sent."""

    def __init__(self, export: Callable[[T], bool]) -> None:
        """Starts the thread; `export` returns whether the collector accepted the value."""
        self.failures = 0
        self._export = export
        self._latest: deque[T] = deque(maxlen=1)  # append and pop are atomic: no value is lost
        self._wake, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="metric-sender", daemon=True)
        self._thread.start()

    def put(self, latest: T) -> None:
        """Sends a value as soon as the previous one is sent or has failed."""
        self._latest.append(latest)
        self._wake.set()

    def close(self, seconds: float) -> None:
        """Sends a waiting value within this time."""
        self._ending.set()
        self._wake.set()
        self._thread.join(seconds)

    def _work(self) -> None:
        while not self._ending.is_set() or self._latest:
            self._wake.wait()
            self._wake.clear()
            if self._latest:
                self.failures += not self._export(self._latest.pop())
