"""Adds what only `spark-app observe` knows to the end of an event log, so that it travels with the log.

Its events have names that no class of Spark has: Spark's History Server skips them, as its `ReplayListenerBus` skips
all events that it does not know.
"""

import json
import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from spark_app.eventlog.diagnoses import excerpts
from spark_app.eventlog.model.application import MAX_LOG_RECORDS, Application
from spark_app.eventlog.model.host_load import HostLoad
from spark_app.eventlog.parse.events import Event, LogRecord, Observed
from spark_app.eventlog.reader import Reading
from spark_app.redaction import redacted

MAX_BYTES: Final = 1 << 20
"""Of log records in an event log; the oldest are left out."""


def annotate(reading: Reading, records: Sequence[LogRecord], events: Path) -> None:
    """Adds the log records of a driver, its exit code and the load of its host to an application, and to its log.

    Only a log in the folder of spark-app is changed, and only once Spark has closed it, also if its JVM has not ended
    yet, or was killed.

    Args:
        reading: The application, with its exit code and the load of its host.
        records: What its Python program has logged.
        events: The folder for event logs of spark-app.
    """
    app = reading.app
    kept = _newest(records)
    for record in kept:
        app.apply(record)
    is_open = app.is_alive and not reading.is_finished
    if is_open or not isinstance(reading.log, Path) or reading.log.parent != events or not reading.log.is_file():
        return
    added: list[Event] = [*kept, _observed(app)]
    before = reading.log.stat()
    with reading.log.open("r+b") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - 1))
        cut = b"\n" if log.read(1) not in (b"\n", b"") else b""  # of a killed application, the last line
        log.write(cut + b"".join(msgspec.json.encode(event) + b"\n" for event in added))
    os.utime(reading.log, ns=(before.st_atime_ns, before.st_mtime_ns))  # logs are listed by their last event


def _observed(app: Application) -> Observed:
    load = app.host_load or HostLoad(0, ())
    samples = [(sample.time_ms, sample.runnable, dict(sample.stalled_us)) for sample in load.samples]
    python_ms = [sample.python_ms for sample in load.samples if sample.python_ms is not None]
    is_known = len(python_ms) == len(samples)
    known = python_ms if is_known else []
    return Observed(app.process_exit_code, load.processors, samples, known, app.program, app.can_type)  # type: ignore[arg-type]


def _newest(records: Sequence[LogRecord]) -> Sequence[LogRecord]:
    """The newest records, as many as a log may have."""
    size = 0
    for position in range(len(records) - 1, -1, -1):
        size += len(records[position].message) + len(records[position].exception)
        if size > MAX_BYTES or len(records) - position > MAX_LOG_RECORDS:
            return records[position + 1 :]
    return records


def records(lines: Iterable[bytes]) -> list[LogRecord]:
    """The records of a driver, oldest first.

    Args:
        lines: One JSON object each (`spark_app.telemetry.python_logs`).
    """
    return [record for record in map(_record, lines) if record is not None]


def _record(line: bytes) -> LogRecord | None:
    """The record of a line, with its secrets masked; None for one that is cut or none."""
    try:
        content = json.loads(line)
        at = datetime.fromisoformat(content["ts"])
        return LogRecord(
            round(at.timestamp() * 1000),
            content["level"],
            content["logger"],
            redacted(content["msg"]),
            content["code.file.path"],
            content["code.line.number"],
            redacted(content.get("exception", {}).get("stacktrace", "")),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def last_error(lines: Sequence[bytes]) -> str | None:
    """The last error that a driver has logged, or that ended it, in one line; None without any."""
    for record in reversed(records(lines)):
        if record.severity in ("ERROR", "FATAL"):
            return excerpts.error(record.exception or record.message)
    return None
