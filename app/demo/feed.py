"""Sends a generated stream at its rate: in the foreground, or beside the queries of a demo."""

import datetime
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, Self

from app.demo import DEMO_SEED, event_stream, landing
from app.demo.event_records import Record
from app.demo.event_stream import Plan
from app.demo.faults import STREAM_SHARES
from app.demo.landing import Landing
from app.demo.stream_ledger import Tally, write_stream_ledger

DEMO_RATE: Final = 10.0
"""Records per second: as many as keep a tenth of the demo shop's customers busy."""
DROP_SECONDS: Final = 2.0
"""How often a file per topic is written."""
SEND_SECONDS: Final = 0.05
"""How often records are handed to Kafka's producer."""


class Sink(Protocol):
    """Where records go."""

    def send(self, records: Sequence[Record]) -> None:
        """Sends records in their order."""

    def close(self) -> None:
        """Comes back when all are sent."""


def now() -> datetime.datetime:
    """The present instant to the millisecond, which is the name of a stream that starts now."""
    instant = datetime.datetime.now(datetime.UTC)
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def paced(
    records: Iterator[Record],
    rate: float,
    *,
    every: float,
    stop: threading.Event,
    count: int = sys.maxsize,
    head_start: float = 0,
) -> Iterator[Sequence[Record]]:
    """The first records, in groups, each as soon as its last record is due; ends early when stopped.

    Args:
        records: The records in the order of sending; no fewer than `count`.
        rate: Records per second.
        every: Seconds between two groups.
        stop: Ends the wait, and the records.
        count: How many records.
        head_start: Seconds whose records are due at once.
    """
    now, sent = time.monotonic(), 0
    began, end = now - head_start, now - head_start + count / rate
    for tick in itertools.count(1):
        due = min(int((time.monotonic() - began) * rate), count)
        while sent < due:
            group = list(itertools.islice(records, min(due - sent, landing.MOST_RECORDS)))
            sent += len(group)
            yield group
            if stop.is_set():
                return
        if sent == count or stop.wait(max(0.0, min(now + tick * every, end) - time.monotonic())):
            return


def send(plan: Plan, count: int, sink: Sink, *, every: float, tally: Tally, progress: Callable[[int], None]) -> None:
    """Sends so many records of a plan at its rate.

    Raises:
        MachineError: The sink refused.
        OSError: The sink refused.
    """
    stream = event_stream.records(plan)
    for group in paced(stream, plan.rate, every=every, stop=threading.Event(), count=count):
        sink.send(group)
        tally.add(group)
        progress(len(group))


class Feed:
    """Drops files into a landing folder in the background, from entering to leaving the with-statement.

    It never fails those beside it: what the disk refuses is noted once, and written when there is room. Each feed has
    ids of its own, since they contain its start; so another feed may have written to the folder before.
    """

    def __init__(
        self,
        folder: Path,
        *,
        rate: float = DEMO_RATE,
        seed: int = DEMO_SEED,
        currency: str = "EUR",
        shares: Mapping[str, int] = STREAM_SHARES,
        history: float = 0,
        note: Callable[[str], None],
    ) -> None:
        """A feed that is not started.

        Args:
            folder: The landing folder, of which `user_events/` and the like are parts.
            rate: Records per second.
            seed: What users do.
            currency: The currency of all amounts.
            shares: Parts of 10,000 of each kind of fault.
            history: Seconds before now whose records are written at once, so that windows are there to be closed.
            note: Gets one line if the disk refuses.
        """
        start = now() - datetime.timedelta(seconds=history)
        self.plan = Plan(start=start, seed=seed, rate=rate, currency=currency, shares=dict(shares))
        self.folder = folder
        self._history, self._note = history, note
        self._is_noted = False
        self._stop = threading.Event()
        self._tally = Tally(self.plan, "files")
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def __enter__(self) -> Self:
        self._attempt(lambda: landing.prepare(self.folder))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._attempt(lambda: write_stream_ledger(self.folder, self._tally.ledger()))

    def _run(self) -> None:
        files, stop = Landing(self.folder, self.plan.name), self._stop
        stream = event_stream.records(self.plan)
        for group in paced(stream, self.plan.rate, every=DROP_SECONDS, stop=stop, head_start=self._history):
            while not self._attempt(lambda group=group: files.send(group)):  # type: ignore[misc]
                if stop.wait(DROP_SECONDS):
                    return
            self._tally.add(group)

    def _attempt(self, write: Callable[[], object]) -> bool:
        try:
            write()
        except OSError as error:
            if not self._is_noted:
                self._note(f"the demo feed cannot write to {self.folder}: {error.strerror or error}; it tries again")
            self._is_noted = True
            return False
        return True
