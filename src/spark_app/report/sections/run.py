"""What only a spark-app run records: results of its expectations, and warnings and errors of its log."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_app.eventlog.parse.events import LogRecord
from spark_app.quality.results import ExpectationResult
from spark_app.report.limits import Limits
from spark_app.report.scope import Scope
from spark_app.runs.run_record import RunRecord
from spark_app.telemetry.run_files_reader import LogLine

LEVELS: Final[Mapping[str, int]] = {"DEBUG": 5, "INFO": 9, "WARN": 13, "ERROR": 17, "FATAL": 21}
"""Severity numbers of OpenTelemetry's logs data model."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Row counts of the run record and its expectations: violated ones, worst first, and those that all rows met."""

    record: RunRecord
    violated: list[ExpectationResult]
    met: list[ExpectationResult]

    @property
    def worst(self) -> int:
        """The most rows that violate one expectation."""
        return max((result.violations or 0 for result in self.violated), default=0)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A log record, the step that wrote it, and how often the same message was logged."""

    line: LogLine
    step: str | None
    times: int


@dataclass(frozen=True, slots=True)
class Logs:
    """Distinct messages in the order of their first occurrence; `total` counts those that are not listed, too."""

    shown: list[LogEntry]
    total: int


def quality(scope: Scope) -> Quality | None:
    """Results of expectations; None for an application that is no spark-app run, or for a run without a record."""
    record = scope.run.record if scope.run else None
    if record is None:
        return None
    violated = [result for result in record.expectations if result.violations or result.is_breached]
    met = [result for result in record.expectations if result not in violated]
    violated.sort(key=lambda result: (not result.is_breached, -(result.violations or 0)))
    return Quality(record, violated, met)


def logs(scope: Scope, limits: Limits) -> Logs | None:
    """Warnings and errors of a run, or what the Python program of an observed application has logged.

    None for any other application: Spark's event logs have no log lines.
    """
    if scope.run is None:
        return _of_program(scope.app.log_records, limits) if scope.app.log_records else None
    lines = scope.run.warnings
    times = Counter((line.logger, line.message) for line in lines)
    first = {(line.logger, line.message): line for line in reversed(lines)}
    ordered = sorted(first.values(), key=lambda line: line.time)
    entries = [LogEntry(line, scope.run.step_of(line.span_id), times[line.logger, line.message]) for line in ordered]
    return Logs(entries[: limits.logs], len(entries))


def _of_program(records: Collection[LogRecord], limits: Limits) -> Logs:
    """The newest records of a program, in their order; a message of one place is listed once."""
    counts = Counter((record.file, record.line, record.message) for record in records)
    first = {(record.file, record.line, record.message): record for record in reversed(records)}  # type: ignore[call-overload]
    ordered = sorted(first.items(), key=lambda item: item[1].time)[-limits.logs :]
    entries = [
        LogEntry(_line(record), f"{Path(record.file).name}:{record.line}", counts[key]) for key, record in ordered
    ]
    return Logs(entries, len(first))


def _line(record: LogRecord) -> LogLine:
    message = f"{record.message}\n{record.exception}" if record.exception else record.message
    return LogLine(record.time, record.severity, LEVELS.get(record.severity, 0), record.logger, message, None)
