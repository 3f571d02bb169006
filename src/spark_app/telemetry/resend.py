"""Sends what runs could not deliver, from their files: once, with the same ids."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

from spark_app.formatting import quantity
from spark_app.local_files import try_lock
from spark_app.telemetry.crash_recovery import ended_span
from spark_app.telemetry.delivery import DELIVERY, log_key, metrics_key, note, noted, span_key
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.export import Deadline, all_done
from spark_app.telemetry.otlp_client import OtlpClient, otlp_client
from spark_app.telemetry.run_files import LOGS, METRICS
from spark_app.telemetry.run_files_reader import RunFilesReader
from spark_app.telemetry.stored_records import logs_of, metrics_of, parts_of

T = TypeVar("T")

QUIET_SECONDS: Final = 30.0
"""How long nothing was written in the folder of a run: longer than its process may wait for an answer."""
EARLIER_SECONDS: Final = 3.0
"""How long the end of a run may take for what earlier runs have left."""
CLOSE_SECONDS: Final = 0.5
BATCH: Final = 200
_APART_NS: Final = 3_000_000
"""Between two points of a series: each has a base before it, and a collector drops points that are not newer."""


@dataclass(slots=True)
class Resent:
    """What was sent of one run.

    Attributes:
        spans, metrics, logs: Spans, collections of metrics, and log records that were accepted.
        unsure: Collections of metrics whose answer is missing: they may have arrived, and are not sent again.
        is_complete: Whether nothing is left to send.
    """

    spans: int = 0
    metrics: int = 0
    logs: int = 0
    unsure: int = 0
    is_complete: bool = False

    def __str__(self) -> str:
        """What was sent, in a line."""
        sent = f"sent {quantity(self.spans, 'span')}, {quantity(self.metrics, 'collection')} of metrics"
        text = f"{sent} and {quantity(self.logs, 'log line')}"
        unsure = f"; {quantity(self.unsure, 'collection')} of metrics may be missing, and cannot be sent twice"
        return text + (unsure if self.unsure else "") + ("" if self.is_complete else "; the rest is still to be sent")


def undelivered(runs: Path, *, quiet_seconds: float = QUIET_SECONDS) -> list[Path]:
    """The folders of runs that the endpoint has not accepted all of, and whose processes are done with them.

    Raises:
        OSError: The folder of all runs exists and cannot be read.
    """
    latest = time.time() - quiet_seconds
    found = [file.parent for file in runs.glob(f"*/{DELIVERY}")]
    return sorted(folder for folder in found if all(file.stat().st_mtime <= latest for file in folder.glob("*.jsonl")))


def resend_earlier(
    runs: Path, *, seconds: float = EARLIER_SECONDS, quiet_seconds: float = QUIET_SECONDS
) -> dict[str, Resent]:
    """Sends what earlier runs have left, oldest first, and ends in time, or with the first request that fails.

    What is left then stays in the folders of the runs. An error is of no interest to the run that has just ended.

    Args:
        runs: The folder of all runs.
        seconds: How long it may take.
        quiet_seconds: How long nothing was written in the folder of a run that is over.

    Returns:
        What was sent of the runs that are delivered now.
    """
    errors, results = TelemetryErrors(), dict[str, Resent]()
    client = otlp_client(errors=errors)

    def send() -> None:
        for folder in undelivered(runs, quiet_seconds=quiet_seconds):
            resent = resend(folder, client)
            if not resent.is_complete:
                break
            results[folder.name] = resent

    if client.takes_anything:
        all_done([send], deadline=Deadline(seconds), errors=errors)
    errors.is_listening = False  # the SDK would log that its exporters are shut down
    all_done([client.close], deadline=Deadline(CLOSE_SECONDS), errors=errors)  # ends what is under way
    return dict(results)


def resend(folder: Path, client: OtlpClient) -> Resent:
    """Sends what is left of one run; not while another process does so.

    Raises:
        OSError: The folder cannot be read or written.
    """
    with try_lock(folder / DELIVERY) as is_locked:
        resent = Resent()
        if is_locked and (folder / DELIVERY).exists():
            resent.is_complete = all(send(folder, client, resent) for send in (_spans, _metrics, _logs))
        if resent.is_complete:
            (folder / DELIVERY).unlink()
        return resent


def _spans(folder: Path, client: OtlpClient, resent: Resent) -> bool:
    done = noted(folder)["spans"]
    spans = (ended_span(stored) for stored in RunFilesReader(folder).ended())
    left = (span for span in spans if span.context and span.context.trace_flags.sampled and span_key(span) not in done)
    for batch in _batches(left) if client.takes_spans else ():
        if not client.send_spans(batch):
            return False
        note(folder, "spans", map(span_key, batch))
        resent.spans += len(batch)
    return True


def _metrics(folder: Path, client: OtlpClient, resent: Resent) -> bool:
    done, now = noted(folder)["metrics"], 0
    collections = RunFilesReader(folder).records(METRICS, lambda line: [metrics_of(line)])
    for metrics in collections if client.takes_metrics else ():
        key = metrics_key(metrics)
        if key in done:
            continue
        if not client.accepts_metrics():
            return False
        note(folder, "metrics", [key])  # before: what is not surely lost is not sent again
        now = max(time.time_ns(), now + _APART_NS)
        if all(client.send_metrics(part) for part in parts_of(metrics, now)):
            resent.metrics += 1
        else:
            resent.unsure += 1
    return True


def _logs(folder: Path, client: OtlpClient, resent: Resent) -> bool:
    done = noted(folder)["logs"]
    records = RunFilesReader(folder).records(LOGS, lambda line: list(logs_of(line)))
    for batch in _batches(each for each in records if log_key(each) not in done) if client.takes_logs else ():
        if not client.send_logs(batch):
            return False
        note(folder, "logs", map(log_key, batch))
        resent.logs += len(batch)
    return True


def _batches(records: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(records)
    return iter(lambda: list(islice(rest, BATCH)), [])
