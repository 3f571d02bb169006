"""Sends a generated stream at its rate: in the foreground, or beside the queries of a demo."""

import datetime
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol, Self

from app.demo import event_stream, landing
from app.demo.event_records import Record
from app.demo.landing import Landing
from app.demo.ledger import Plan, Tally

DEMO_RATE: Final = 10.0
"""Records per second: as many as keep a tenth of the demo shop's customers busy."""
DROP_SECONDS: Final = 2.0
"""How often a file per topic is written."""
SEND_SECONDS: Final = 0.05
"""How often records are handed to Kafka's producer."""
MOST_RECORDS: Final = 5_000
"""Records of one call: a sender that is behind fills many files of bounded size."""


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
    plan: Plan, *, every: float, stop: threading.Event | None = None, count: int = sys.maxsize, head_start: float = 0
) -> Iterator[Sequence[Record]]:
    """The first records of a plan, in groups, each as soon as its last record is due; ends early when stopped.

    Args:
        plan: What determines the records.
        every: Seconds between two groups.
        stop: Ends the wait, and the records.
        count: How many records.
        head_start: Seconds whose records are due at once.
    """
    records, stop, now, sent = event_stream.records(plan), stop or threading.Event(), time.monotonic(), 0
    began, end = now - head_start, now - head_start + count / plan.rate
    for tick in itertools.count(1):
        due = min(int((time.monotonic() - began) * plan.rate), count)
        while sent < due and not stop.is_set():
            group = list(itertools.islice(records, min(due - sent, MOST_RECORDS)))
            sent += len(group)
            yield group
        if sent == count or stop.wait(max(0.0, min(now + tick * every, end) - time.monotonic())):
            return


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
        currency: str = "EUR",
        history: float = 0,
        note: Callable[[str], None],
    ) -> None:
        """A feed that is not started.

        Args:
            folder: The landing folder, of which `user_events/` and the like are parts.
            rate: Records per second.
            currency: The currency of all amounts.
            history: Seconds before now whose records are written at once, so that windows are there to be closed.
            note: Gets one line if the disk refuses.
        """
        self.plan = Plan(start=now() - datetime.timedelta(seconds=history), rate=rate, currency=currency)
        self.folder, self._history, self._note = folder, history, note
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
        self._attempt(lambda: self._tally.write(self.folder))

    def _run(self) -> None:
        files = Landing(self.folder, self.plan.name)
        for group in paced(self.plan, every=DROP_SECONDS, stop=self._stop, head_start=self._history):
            while not self._attempt(partial(files.send, group)):
                if self._stop.wait(DROP_SECONDS):
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
