"""Which records of a run the endpoint has accepted, so that the others can be sent later, once.

The folder of a run has the file `delivery.jsonl` as long as the endpoint has not accepted everything. A line names
records that are done with: spans and log records after the endpoint has accepted them, metrics just before they are
sent. Whether a request arrived is unknown if its answer is missing. Spans and log records are then sent again, because
a back end knows a span by its id, and a log line twice is better than none; metrics are not: they would count twice.
"""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.metrics.export import MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from spark_app.local_files import write_atomic
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.vocabulary import names

Kind = Literal["spans", "metrics", "logs"]
DELIVERY: Final = "delivery.jsonl"
MAX_BYTES: Final = 256 * 1024
"""A longer file is shortened: a stream notes something every few seconds, for months."""
MAX_WAITING: Final = 200_000
"""Records of a kind that wait for an endpoint; the files of a run have room for fewer of them."""
LATE_NS: Final = 60_000_000_000
"""How much later than its time a record may be written to the files of a run."""


class _Line(msgspec.Struct, frozen=True):
    kind: Kind
    keys: list[int]
    before: int = 0


@dataclass(slots=True)
class Done:
    """Keys of one kind that are done with: these, and those that are times before one."""

    keys: set[int] = field(default_factory=set)
    before: int = 0

    def __contains__(self, key: int) -> bool:
        return key < self.before or key in self.keys


def span_key(span: ReadableSpan) -> int:
    """The id of a span."""
    return span.context.span_id if span.context else 0


def log_key(record: ReadableLogRecord) -> int:
    """When a log record was observed, in nanoseconds since the epoch."""
    return record.log_record.observed_timestamp or 0


def metrics_key(metrics: MetricsData) -> int:
    """When metrics were collected: the time of their latest point, in nanoseconds since the epoch."""
    data = [each.data for group in metrics.resource_metrics for scope in group.scope_metrics for each in scope.metrics]
    return max((point.time_unix_nano for each in data for point in each.data_points), default=0)


def noted(folder: Path) -> Mapping[Kind, Done]:
    """The keys of the records that are done with; a torn line is left out."""
    done: dict[Kind, Done] = {"spans": Done(), "metrics": Done(), "logs": Done()}
    for line in (folder / DELIVERY).read_bytes().splitlines():
        try:
            content = msgspec.json.decode(line, type=_Line)
        except msgspec.MsgspecError:
            continue
        done[content.kind].keys.update(content.keys)
        done[content.kind].before = max(done[content.kind].before, content.before)
    return done


def note(folder: Path, kind: Kind, keys: Iterable[int]) -> None:
    """Appends a line, which survives a power cut once this returns.

    Raises:
        OSError: The file cannot be written.
    """
    line = msgspec.json.encode(_Line(kind, list(keys))) + b"\n"
    file = os.open(folder / DELIVERY, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        os.write(file, line)
        os.fsync(file)
    finally:
        os.close(file)


class RunDelivery:
    """The delivery of one run by the process that runs it; several threads may call it."""

    def __init__(self, folder: Path, kinds: Iterable[Kind], *, errors: TelemetryErrors) -> None:
        """Nothing is written yet.

        Args:
            folder: The folder of the run, which exists.
            kinds: What is sent at all.
            errors: Where failures are kept.
        """
        self._folder, self._errors = folder, errors
        self._waiting: dict[Kind, set[int]] = {kind: set() for kind in kinds}
        self._is_over, self._longest = False, MAX_BYTES
        self._lock = threading.Lock()
        try:
            (folder / DELIVERY).touch()
        except OSError:  # neither can the files of the run be written, which is an error of its own
            self._is_open = False
        else:
            self._is_open = True

    def expect(self, kind: Kind, key: int) -> None:
        """A record was written to the files of the run."""
        with self._lock:
            if self._is_open and kind in self._waiting:
                self._waiting[kind].add(key)
                if len(self._waiting[kind]) > MAX_WAITING:
                    self._waiting[kind] = set(sorted(self._waiting[kind])[MAX_WAITING // 2 :])

    def note(self, kind: Kind, keys: Sequence[int]) -> bool:
        """Records are done with; returns whether that is written."""
        with self._lock:
            if not self._is_open:
                return True
            is_written = self._errors.guard("what was delivered is not noted", self._note, kind, keys)
            if is_written:
                self._waiting[kind].difference_update(keys)
                self._close_if_complete()
            return is_written

    def end(self) -> None:
        """The run has ended: nothing more is expected."""
        with self._lock:
            self._is_over = True
            self._close_if_complete()

    def _note(self, kind: Kind, keys: Sequence[int]) -> None:
        """Writes the note; metrics that another process sends at the same time are refused."""
        if kind == "metrics" and any(map(noted(self._folder)["metrics"].__contains__, keys)):
            raise FileExistsError("another process sends these metrics")
        note(self._folder, kind, keys)
        if (self._folder / DELIVERY).stat().st_size > self._longest:
            self._shorten()

    def _shorten(self) -> None:
        """Replaces the file by one that names a time, before which all metrics and log records are done with."""
        lines = list[_Line]()
        for kind, done in noted(self._folder).items():
            waiting, now = self._waiting.get(kind, set()), time.time_ns()
            before = 0 if kind == "spans" else max(done.before, min([now - LATE_NS, *waiting]))
            lines.append(_Line(kind, sorted(key for key in done.keys if key >= before), before))
        content = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        write_atomic(self._folder / DELIVERY, content, is_durable=True)
        self._longest = MAX_BYTES + 2 * len(content)

    def _close_if_complete(self) -> None:
        if self._is_open and self._is_over and not any(self._waiting.values()):
            self._is_open = False
            self._errors.guard("what was delivered is not noted", (self._folder / DELIVERY).unlink)


class Deliveries:
    """The deliveries of the runs of a process, by the ids of the runs."""

    def __init__(self, kinds: Sequence[Kind], *, errors: TelemetryErrors) -> None:
        """No run has started."""
        self._kinds, self._errors = kinds, errors
        self._runs: dict[str, RunDelivery] = {}

    def start(self, run_id: str, folder: Path) -> RunDelivery | None:
        """The delivery of a run that starts; None where nothing is sent."""
        if not self._kinds:
            return None
        return self._runs.setdefault(run_id, RunDelivery(folder, self._kinds, errors=self._errors))

    def accepted(self, kind: Kind, keys: Iterable[tuple[object, int]]) -> None:
        """The endpoint accepted records: the ids of their runs, and their keys."""
        by_run = defaultdict[object, list[int]](list)
        for run_id, key in keys:
            by_run[run_id].append(key)
        for run_id, those in by_run.items():
            delivery = self._runs.get(str(run_id))
            if delivery is not None:
                delivery.note(kind, those)


class _Noting:
    """Sends with another exporter, and notes what was accepted."""

    def __init__(self, exporter: Any, deliveries: Deliveries) -> None:
        self._exporter, self._deliveries = exporter, deliveries

    def shutdown(self) -> None:
        """Shuts the exporter down."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Whether the exporter has flushed."""
        return bool(self._exporter.force_flush(timeout_millis))


class NotingSpanExporter(_Noting, SpanExporter):
    """Notes which spans were accepted."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Sends spans."""
        result: SpanExportResult = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            keys = [((span.attributes or {}).get(names.RUN_ID.name), span_key(span)) for span in spans]
            self._deliveries.accepted("spans", keys)
        return result


class NotingLogExporter(_Noting, LogRecordExporter):
    """Notes which log records were accepted."""

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Sends log records."""
        result: LogRecordExportResult = self._exporter.export(batch)
        if result is LogRecordExportResult.SUCCESS:
            keys = [((each.log_record.attributes or {}).get(names.RUN_ID.name), log_key(each)) for each in batch]
            self._deliveries.accepted("logs", keys)
        return result
