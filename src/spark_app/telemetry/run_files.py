"""The files of one run: OTLP JSON Lines of its spans, metrics and log records, independent of any network.

`started.jsonl` has a span, without its end, as soon as it starts; the other three have complete records. Each line is
written at once, so that a killed run keeps what it had.

The size of each file is bounded. A full `traces.jsonl` is renamed to `traces.1.jsonl`, the next one to
`traces.2.jsonl`; the oldest segment is deleted when there are too many. `started.jsonl` is rewritten with the spans
that are still open, at the latest when `traces.jsonl` is renamed: the end of a span in `started.jsonl` is therefore
never in a deleted segment.
"""

import contextlib
import io
import json
import os
import threading
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final, cast

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.json.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.json.file import FileMetricExporter
from opentelemetry.exporter.otlp.json.file._log_exporter import FileLogExporter
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk.metrics.export import MetricsData
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from spark_app.formatting import size
from spark_app.local_files import write_atomic
from spark_app.telemetry.delivery import RunDelivery, log_key, metrics_key, span_key
from spark_app.telemetry.errors import TelemetryErrors

STARTED: Final = "started.jsonl"
TRACES: Final = "traces.jsonl"
METRICS: Final = "metrics.jsonl"
LOGS: Final = "logs.jsonl"
SEGMENT_BYTES: Final = 16 * 2**20
SEGMENTS: Final = 4
"""How many segments of a file are kept, with the one that is written: 64 MiB of spans are about 50,000."""


def segments(folder: Path, name: str) -> list[Path]:
    """The files that a file of a run consists of, in the order they were written."""
    stem, suffix = name.split(".")
    numbered = {_number(path): path for path in folder.glob(f"{stem}.*.{suffix}")}
    last = folder / name
    return [*(numbered[each] for each in sorted(numbered) if each), *([last] if last.is_file() else [])]


def _number(path: Path) -> int:
    """The number of a renamed segment; 0 of another file."""
    number = path.name.split(".")[1]
    return int(number) if number.isdecimal() else 0


class LineFile(io.TextIOBase):
    """Appends whole lines to a file; a line that does not fit (a full disk) leaves nothing behind.

    A torn last line, as a computer that lost its power leaves one, is ended first, so that the next line is readable.
    """

    def __init__(self, path: Path, *, errors: TelemetryErrors, limit: int) -> None:
        """Opens the file; one that cannot be opened is added to the errors, and its lines are dropped.

        Args:
            path: The file; it may exist.
            errors: Where failures are kept.
            limit: The size in bytes beyond which `make_room` is called before a line is written.
        """
        self.path = path
        self._errors = errors
        self.limit = limit
        self._file: int | None = None
        self._lock = threading.Lock()
        try:
            self.open()
        except OSError as error:
            self._give_up(error)

    def write(self, line: str) -> int:
        """Appends one line that ends with a line feed; does nothing after a failure."""
        with self._lock:
            if self._file is not None:
                try:
                    self._append(line.encode())
                except OSError as error:
                    self._give_up(error)
        return len(line)

    def open(self) -> None:
        """Opens the file under its path, and closes the one that was open."""
        self._close()
        self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        length = self._size()
        if length and os.pread(self._file, 1, length - 1) != b"\n":
            os.write(self._file, b"\n")

    def close(self) -> None:
        """Closes the file; a second call does nothing."""
        with self._lock:
            self._close()
        super().close()

    @abstractmethod
    def make_room(self) -> None:
        """Puts a shorter file in the place of this one.

        Raises:
            OSError: The disk is full, or the folder cannot be written.
        """

    def _append(self, line: bytes) -> None:
        if self._size() and self._size() + len(line) > self.limit:
            self.make_room()
        before, file = self._size(), cast("int", self._file)
        try:
            while line:
                line = line[os.write(file, line) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(file, before)
            raise

    def _size(self) -> int:
        return os.fstat(cast("int", self._file)).st_size

    def _give_up(self, error: OSError) -> None:
        self._errors.add(f"cannot write {self.path}: {error.strerror}; the run continues without this file")
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None


class SegmentedFile(LineFile):
    """A file that is renamed when it is full; of the renamed ones, the newest are kept."""

    def __init__(
        self, path: Path, *, errors: TelemetryErrors, limit: int, before_rotation: Callable[[], None] = lambda: None
    ) -> None:
        """Opens the file; `before_rotation` is called each time before it is renamed."""
        self._before_rotation = before_rotation
        super().__init__(path, errors=errors, limit=limit)

    def make_room(self) -> None:
        """Renames the file, deletes segments that are too many, and opens a new file."""
        self._before_rotation()
        full = segments(self.path.parent, self.path.name)[:-1]
        number = _number(full[-1]) + 1 if full else 1
        self.path.rename(self.path.with_suffix(f".{number}{self.path.suffix}"))
        for oldest in full[: len(full) + 2 - SEGMENTS]:
            oldest.unlink(missing_ok=True)
            self._errors.add(
                f"the oldest lines of {self.path} were deleted: it keeps {SEGMENTS} segments of {size(self.limit)}",
                key=("deleted", self.path),
            )
        self.open()


class StartedFile(LineFile):
    """The spans that started; those that ended leave the file when it is rewritten."""

    def __init__(self, path: Path, *, errors: TelemetryErrors, limit: int) -> None:
        """Opens the file; no span is open."""
        self._unended: dict[int, str] = {}
        self._least = limit
        super().__init__(path, errors=errors, limit=limit)

    def start(self, span_id: int, line: str) -> None:
        """Writes the start of a span."""
        self._unended[span_id] = line
        self.write(line)

    def end(self, span_id: int) -> None:
        """Takes note that the end of a span is in `traces.jsonl`."""
        self._unended.pop(span_id, None)

    def compact(self) -> None:
        """Rewrites the file with the open spans only."""
        with self._lock:
            if self._file is not None:
                self.make_room()

    def make_room(self) -> None:
        """Rewrites the file; the next time at twice its size at the earliest, however many spans are open."""
        write_atomic(self.path, "".join(list(self._unended.values())).encode())
        self.open()
        self.limit = max(self._least, 2 * self._size())


class RunFiles:
    """The four files of a run, open until the run ends; several threads may write."""

    def __init__(
        self,
        folder: Path,
        *,
        errors: TelemetryErrors,
        segment_bytes: int = SEGMENT_BYTES,
        delivery: RunDelivery | None = None,
    ) -> None:
        """Opens all of them in an existing folder; the delivery expects each complete record that is written."""
        self.delivery = delivery
        self._errors = errors
        self._started = StartedFile(folder / STARTED, errors=errors, limit=segment_bytes)
        self._traces = SegmentedFile(
            folder / TRACES, errors=errors, limit=segment_bytes, before_rotation=self._started.compact
        )
        metrics, logs = (SegmentedFile(folder / name, errors=errors, limit=segment_bytes) for name in (METRICS, LOGS))
        self._all: tuple[LineFile, ...] = (self._started, self._traces, metrics, logs)
        self._metrics = FileMetricExporter(stream=cast("IO[str]", metrics))
        self._logs = FileLogExporter(stream=cast("IO[str]", logs))

    def write_start(self, span: ReadableSpan) -> None:
        """Writes a span that has not ended."""
        self._errors.guard("the start of a span was not written", lambda: self._started.start(_id(span), _line(span)))

    def write_end(self, span: ReadableSpan) -> None:
        """Writes a span that has ended."""
        self._errors.guard("a span was not written", lambda: self._traces.write(_line(span)))
        if self.delivery is not None and span.context and span.context.trace_flags.sampled:
            self.delivery.expect("spans", span_key(span))
        self._started.end(_id(span))

    def write_metrics(self, metrics: MetricsData) -> None:
        """Writes the points of one collection."""
        self._metrics.export(metrics)
        if self.delivery is not None:
            self.delivery.expect("metrics", metrics_key(metrics))

    def write_log(self, record: ReadableLogRecord) -> None:
        """Writes a log record."""
        self._logs.export([record])
        if self.delivery is not None:
            self.delivery.expect("logs", log_key(record))

    def touch(self) -> None:
        """Sets the time of `started.jsonl`, the last sign of life of a run that is killed later."""
        with contextlib.suppress(OSError):
            os.utime(self._started.path)

    def close(self) -> None:
        """Closes all of them."""
        for file in self._all:
            file.close()


def _id(span: ReadableSpan) -> int:
    return span.context.span_id if span.context else 0


def _line(span: ReadableSpan) -> str:
    """A span with its trace flags, which the SDK's encoder leaves out: whether it is sampled."""
    data = encode_spans([span])
    (encoded,) = data.resource_spans[0].scope_spans[0].spans
    encoded.flags = (encoded.flags or 0) | (span.context.trace_flags if span.context else 0)
    return json.dumps(data.to_dict(), separators=(",", ":")) + "\n"


class FileSpanProcessor(SpanProcessor):
    """Writes the spans of one run to its files, when they start and when they end."""

    def __init__(self, files: RunFiles) -> None:
        """Writes to the files until they are closed."""
        self._files = files

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Writes the start."""
        self._files.write_start(span)

    def on_end(self, span: ReadableSpan) -> None:
        """Writes the whole span."""
        self._files.write_end(span)
