"""Sends a finished log at once: by the program that wrote it, where no bridge follows."""

import threading
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from app.eventlog.bridge.followed import Followed
from app.eventlog.bridge.metrics import Aggregate
from app.eventlog.bridge.sending import MAX_BATCH, MAX_BATCH_WEIGHT, OwnedSpan
from app.eventlog.bridge.service import Otlp
from app.eventlog.diagnoses.thresholds import Thresholds
from app.eventlog.logs import Log
from app.eventlog.spans import SparkSpan
from app.telemetry.outlet import outlet
from app.telemetry.problems import Problems

STALLED_SECONDS: Final = 2.0
"""How long a collector that has taken something may then take for a request before it is given up."""
_LOOK_SECONDS: Final = 0.05


def tell(log: Path, *, environment: str, thresholds: Thresholds, patience: float, problems: Problems) -> bool:
    """Sends what a log tells as spans and, as new counts, as metrics; gives back whether all of it was accepted.

    It sends while it reads: who takes what is sent gets all of it, however long reading takes; where nobody does,
    reading ends, too.

    Args:
        log: The file, or the folder of rolled files.
        environment: Where it ran.
        thresholds: Of the diagnoses.
        patience: Seconds that the first request, of the first span, may take.
        problems: Collects what goes wrong.
    """
    out = outlet(problems=problems)
    if not (out.takes_spans or out.takes_metrics):
        return True
    sending = _Sending(Otlp(out, environment=environment), patience=patience, problems=problems)
    followed = Followed(
        Log(log.name, log, 0),
        tell=sending.put,
        is_crowded=lambda: sending.is_given_up,
        thresholds=thresholds,
        was_counted=False,
    )
    try:
        followed.read(float("inf"))
        if followed.has_caught_up:
            followed.end()
            sending.finish(followed.meter.aggregate())
    finally:
        followed.close()
        sending.close()
    return sending.is_done


class _Sending:
    """Sends batch after batch on a thread of its own, until one is not accepted or takes too long."""

    def __init__(self, otlp: Otlp, *, patience: float, problems: Problems) -> None:
        self.is_done = False
        self._otlp, self._patience = otlp, patience
        self._batch: list[OwnedSpan] = []
        self._weight, self._allowed = 0, 1  # the first span goes alone: soon it is known whether anybody takes any
        self._busy_since: float | None = None
        self._waiting: SimpleQueue[list[OwnedSpan] | Aggregate | None] = SimpleQueue()
        what = "Spark's spans are not sent"
        self._thread = threading.Thread(target=problems.guard, args=(what, self._work), daemon=True)
        self._thread.start()

    @property
    def is_given_up(self) -> bool:
        """Whether a request was not accepted, or has been under way for too long."""
        since = self._busy_since
        is_late = since is not None and time.monotonic() > since + self._patience
        return not self.is_done and (is_late or not self._thread.is_alive())

    def put(self, application: str, span: SparkSpan) -> None:
        """Takes a span, to be sent with others."""
        told = OwnedSpan(application, span)
        self._batch.append(told)
        self._weight += told.weight
        if len(self._batch) == self._allowed or self._weight > MAX_BATCH_WEIGHT:
            self._flush()

    def finish(self, numbers: Aggregate) -> None:
        """Sends what is left and then the numbers, and waits until they are accepted or given up."""
        self._flush()
        self._waiting.put(numbers)
        while not self.is_done and not self.is_given_up:
            self._thread.join(_LOOK_SECONDS)

    def close(self) -> None:
        """Sends nothing more."""
        self._waiting.put(None)

    def _flush(self) -> None:
        if self._batch:
            self._waiting.put(self._batch)
        self._batch, self._weight, self._allowed = [], 0, MAX_BATCH

    def _work(self) -> None:
        while not self.is_done and (told := self._waiting.get()) is not None:
            self._busy_since = time.monotonic()
            is_last = isinstance(told, Aggregate)
            is_accepted = self._otlp.new_numbers(told) if isinstance(told, Aggregate) else self._otlp.spans(told)
            if not is_accepted or self.is_given_up:
                return
            self._busy_since, self._patience, self.is_done = None, STALLED_SECONDS, is_last
