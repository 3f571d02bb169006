"""Sends a finished log at once: by the program that wrote it, where no bridge follows."""

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from app.eventlog.bridge.followed import Followed
from app.eventlog.bridge.metrics import Aggregate
from app.eventlog.bridge.sending import MAX_BATCH, MAX_BATCH_WEIGHT, OwnedSpan
from app.eventlog.bridge.service import Otlp
from app.eventlog.diagnoses.thresholds import Thresholds
from app.eventlog.logs import Log
from app.telemetry.outlet import outlet
from app.telemetry.problems import Problems

STALLED_SECONDS: Final = 2.0
"""How long a collector that has taken something may then take nothing before it is given up."""
_LOOK_SECONDS: Final = 0.05


def tell(log: Path, *, environment: str, thresholds: Thresholds, patience: float, problems: Problems) -> bool:
    """Sends what a log tells as spans and, as new counts, as metrics; gives back whether all of it was accepted.

    Args:
        log: The file, or the folder of rolled files.
        environment: Where it ran.
        thresholds: Of the diagnoses.
        patience: Seconds until something must have been accepted, or it is given up.
        problems: Collects what goes wrong.
    """
    out = outlet(problems=problems)
    if not (out.takes_spans or out.takes_metrics):
        return True
    spans, numbers = _read(log, thresholds)
    sending = _Sending(Otlp(out, environment=environment), spans, numbers)
    work = threading.Thread(target=problems.guard, args=("Spark's spans are not sent", sending.work), daemon=True)
    deadline = time.monotonic() + patience
    work.start()
    while work.is_alive() and time.monotonic() < max(deadline, sending.accepted_at + STALLED_SECONDS):
        work.join(_LOOK_SECONDS)
    return sending.is_done


class _Sending:
    """Sends batch after batch, until one is not accepted."""

    def __init__(self, otlp: Otlp, spans: Sequence[OwnedSpan], numbers: Aggregate) -> None:
        self._otlp, self._spans, self._numbers = otlp, spans, numbers
        self.accepted_at = 0.0
        self.is_done = False

    def work(self) -> None:
        for batch in _batches(self._spans):
            if not self._otlp.spans(batch):
                return
            self.accepted_at = time.monotonic()
        self.is_done = self._otlp.new_numbers(self._numbers)


def _batches(spans: Sequence[OwnedSpan]) -> Iterator[list[OwnedSpan]]:
    batch: list[OwnedSpan] = []
    weight = 0
    for told in spans:
        batch.append(told)
        weight += told.weight
        if len(batch) == MAX_BATCH or weight > MAX_BATCH_WEIGHT:
            yield batch
            batch, weight = [], 0
    if batch:
        yield batch


def _read(log: Path, thresholds: Thresholds) -> tuple[list[OwnedSpan], Aggregate]:
    told: list[OwnedSpan] = []
    followed = Followed(
        Log(log.name, log, 0),
        tell=lambda name, span: told.append(OwnedSpan(name, span)),
        is_crowded=lambda: False,
        thresholds=thresholds,
        was_counted=False,
    )
    followed.read(float("inf"))
    followed.end()
    return told, followed.meter.aggregate()
