"""Sends spans and metrics on threads of its own: reading never waits for a collector."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from app.eventlog.spans import SparkSpan

MAX_BATCH: Final = 512
"""Spans of one request."""
MAX_BATCH_WEIGHT: Final = 3_000_000
"""Bytes of one request, about: a receiver of gRPC takes 4 MiB unless it is configured otherwise."""
MAX_WEIGHT: Final = 32_000_000
"""Bytes of memory, about, of the spans that wait."""
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 10.0
STRIKES: Final = 3
"""How often a batch may be refused while other batches are accepted."""
_BARE_WEIGHT: Final = 2500

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OwnedSpan:
    """A span, and the name of its application."""

    application: str
    span: SparkSpan

    @property
    def weight(self) -> int:
        """Bytes that it takes in memory, about."""
        texts = sum(len(value) for value in self.span.attributes.values() if isinstance(value, str))
        return _BARE_WEIGHT + texts + 1000 * len(self.span.findings)


@dataclass(slots=True)
class _Batch:
    first: int
    spans: list[OwnedSpan]
    weight: int = 0
    strikes: int = 0
    taken_before: int = 0


class SpanSender:
    """Spans on their way to a collector; while too many wait, new ones are dropped and counted.

    Attributes:
        sent, dropped: Spans.
        failures: Requests that were not accepted.
        is_reachable: Whether the last request was accepted.
    """

    def __init__(self, export: Callable[[Sequence[OwnedSpan]], bool]) -> None:
        """Starts the thread; `export` gives back whether a batch was accepted."""
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

    def put(self, told: OwnedSpan) -> None:
        """Queues a span, or drops it."""
        weight = told.weight
        if self.weight + weight > MAX_WEIGHT:
            self.dropped += 1
            return
        self._added += weight
        self._put += 1
        self._waiting.append((told, weight))

    def flush(self) -> None:
        """Lets waiting spans be sent now."""
        if self._waiting:
            self._wake.set()

    @property
    def weight(self) -> int:
        """Bytes of memory, about, of all spans that wait."""
        return self._added - self._removed

    @property
    def is_crowded(self) -> bool:
        """Whether reading on would soon drop spans that a short wait would save."""
        return self.is_reachable and self.weight > MAX_WEIGHT / 2

    @property
    def queued(self) -> int:
        """Spans that wait."""
        return self._put - self._settled

    def mark(self) -> int:
        """How many spans were put so far, for `is_settled`."""
        return self._put

    def is_settled(self, mark: int) -> bool:
        """Whether all spans that were put before a mark are accepted or given up."""
        return self._settled >= mark

    def close(self, seconds: float) -> None:
        """Sends waiting spans for a time, as long as they are accepted; the rest stays unsettled."""
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
        """A new batch, unless two are refused already or nothing is new."""
        if self._refused and (not self._waiting or len(self._refused) > 1 or self.is_reachable):
            return self._refused.popleft()
        if not self._waiting:
            return None
        batch = _Batch(self._taken + 1, [])
        while self._waiting and len(batch.spans) < MAX_BATCH and batch.weight < MAX_BATCH_WEIGHT:
            told, weight = self._waiting.popleft()
            batch.spans.append(told)
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
        batch.strikes += bool(batch.strikes == 0 or batch.taken_before < self._accepted)
        batch.taken_before = self._accepted
        if batch.strikes > STRIKES:
            self._removed += batch.weight
            self.dropped += len(batch.spans)
            return
        self._refused.append(batch)
        self._ending.wait(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)


class LatestSender(Generic[T]):
    """Sends only the latest value: one that could not be sent is replaced by the next."""

    def __init__(self, export: Callable[[T], bool]) -> None:
        """Starts the thread; `export` gives back whether it was accepted."""
        self.failures = 0
        self._export = export
        self._latest: deque[T] = deque(maxlen=1)  # to put and to take is one step each: no value is lost in between
        self._wake, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="metric-sender", daemon=True)
        self._thread.start()

    def put(self, latest: T) -> None:
        """Sends a value as soon as the one before is sent or has failed."""
        self._latest.append(latest)
        self._wake.set()

    def close(self, seconds: float) -> None:
        """Sends a waiting value, for a time."""
        self._ending.set()
        self._wake.set()
        self._thread.join(seconds)

    def _work(self) -> None:
        while not self._ending.is_set() or self._latest:
            self._wake.wait()
            self._wake.clear()
            if self._latest:
                self.failures += not self._export(self._latest.pop())
