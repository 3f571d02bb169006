"""The files of one run: OTLP JSON Lines of what was traced, measured and logged, whatever a network does.

`started.jsonl` has a span, without its end, as soon as it starts; the other three have what is complete. All are
written line by line as things happen, so a killed run keeps what it had.
"""

import contextlib
import io
import json
import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, cast

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.json.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.json.file import FileMetricExporter
from opentelemetry.exporter.otlp.json.file._log_exporter import FileLogExporter
from opentelemetry.sdk._logs import LogRecordProcessor, ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk.metrics.export import MetricsData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from app.telemetry.problems import Problems

STARTED: Final = "started.jsonl"
TRACES: Final = "traces.jsonl"
METRICS: Final = "metrics.jsonl"
LOGS: Final = "logs.jsonl"
_LOG: Final = logging.getLogger(__name__)


class LineFile(io.TextIOBase):
    """Appends whole lines to a file; a line that does not fit (a full disk) leaves nothing behind.

    A line that somebody left torn, as a computer that lost its power does, is ended first: the next one is not lost.
    """

    def __init__(self, path: Path, *, problems: Problems) -> None:
        """Opens the file; one that cannot be opened is told and takes nothing."""
        self._path = path
        self._problems = problems
        self._file: int | None = None
        self._lock = threading.Lock()
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            size = os.fstat(self._file).st_size
            if size and os.pread(self._file, 1, size - 1) != b"\n":
                self._append(self._file, b"\n")
        except OSError as error:
            self._give_up(error)

    def write(self, line: str) -> int:
        """Appends one line that ends with a line feed; after a first failure, nothing."""
        with self._lock:
            if self._file is not None:
                try:
                    self._append(self._file, line.encode())
                except OSError as error:
                    self._give_up(error)
        return len(line)

    def close(self) -> None:
        """Closes the file; more than once does no harm."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None
        super().close()

    def _append(self, file: int, line: bytes) -> None:
        before = os.fstat(file).st_size
        try:
            while line:
                line = line[os.write(file, line) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(file, before)
            raise

    def _give_up(self, error: OSError) -> None:
        self._problems.tell(f"cannot write {self._path}: {error.strerror}; the run goes on without it")
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None


class RunFiles:
    """The four files of a run, open until the run ends."""

    def __init__(self, folder: Path, *, problems: Problems) -> None:
        """Opens all of them in an existing folder."""
        self._streams: dict[str, IO[str]] = {
            name: cast("IO[str]", LineFile(folder / name, problems=problems))
            for name in (STARTED, TRACES, METRICS, LOGS)
        }
        self._problems = problems
        self._metrics = FileMetricExporter(stream=self._streams[METRICS])
        self._logs = FileLogExporter(stream=self._streams[LOGS])

    def note_start(self, span: ReadableSpan) -> None:
        """Writes a span that has not ended."""
        self._note(STARTED, span)

    def note_end(self, span: ReadableSpan) -> None:
        """Writes a span that has ended."""
        self._note(TRACES, span)

    def note_metrics(self, metrics: MetricsData) -> None:
        """Writes what was measured since the last time."""
        self._metrics.export(metrics)

    def note_log(self, record: ReadableLogRecord) -> None:
        """Writes a log record."""
        self._logs.export([record])

    def close(self) -> None:
        """Closes all of them."""
        for stream in self._streams.values():
            stream.close()

    def _note(self, name: str, span: ReadableSpan) -> None:
        self._problems.guard("a span is not kept in the folder of its run", self._write, name, span)

    def _write(self, name: str, span: ReadableSpan) -> None:
        """Writes a span with its trace flags, which the SDK's encoder leaves out: whether it is to be sent."""
        data = encode_spans([span])
        (encoded,) = data.resource_spans[0].scope_spans[0].spans
        encoded.flags = (encoded.flags or 0) | (span.context.trace_flags if span.context else 0)
        self._streams[name].write(json.dumps(data.to_dict(), separators=(",", ":")) + "\n")


class Current:
    """The run that this process is in, if any: whose files are written, and what each of its log records says."""

    def __init__(self, *, problems: Problems) -> None:
        """No run yet."""
        self.files: RunFiles | None = None
        self.attributes: Mapping[str, str] = {}
        self._problems = problems
        self._folder: Path | None = None

    def enter(self, folder: Path, attributes: Mapping[str, str]) -> None:
        """Opens the files of a run."""
        self._folder = folder
        self.attributes = attributes
        self.files = RunFiles(folder, problems=self._problems)

    def leave(self) -> None:
        """Logs what went wrong with telemetry meanwhile, and closes the files."""
        for problem in self._problems.unreported():
            _LOG.warning("telemetry: %s", problem)
        files, self.files = self.files, None
        if files is not None:
            files.close()

    def report_late(self) -> None:
        """Adds what went wrong after the last run to the log of that run."""
        if self._folder is not None and len(list(self._problems)) > self._problems.reported:
            self.enter(self._folder, self.attributes)
            self.leave()


class LocalSpans(SpanProcessor):
    """Writes spans to the files of the current run, when they start and when they end."""

    def __init__(self, current: Current) -> None:
        """Writes to whatever is current then."""
        self._current = current

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Notes the start."""
        if self._current.files is not None:
            self._current.files.note_start(span)

    def on_end(self, span: ReadableSpan) -> None:
        """Notes the whole span."""
        if self._current.files is not None:
            self._current.files.note_end(span)


class LocalLogs(LogRecordProcessor):
    """Writes log records to the file of the current run."""

    def __init__(self, current: Current) -> None:
        """Writes to whatever is current then."""
        self._current = current

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        """Writes one record."""
        if self._current.files is not None:
            self._current.files.note_log(readable(log_record))

    def shutdown(self) -> None:
        """Nothing is held here."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is held here."""
        return True


def readable(record: ReadWriteLogRecord) -> ReadableLogRecord:
    """A record as exporters take it."""
    return ReadableLogRecord(
        log_record=record.log_record,
        resource=record.resource or Resource.get_empty(),
        instrumentation_scope=record.instrumentation_scope,
        limits=record.limits,
    )
