"""What only a spark-app run records: results of its expectations, and warnings and errors of its log."""

from collections import Counter
from dataclasses import dataclass

from app.quality.results import ExpectationResult
from app.report.limits import Limits
from app.report.scope import Scope
from app.runs.run_record import RunRecord
from app.telemetry.run_files_reader import LogLine


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
    """Warnings and errors of a run; None for an application that is no spark-app run: event logs have no log lines."""
    if scope.run is None:
        return None
    lines = scope.run.warnings
    times = Counter((line.logger, line.message) for line in lines)
    first = {(line.logger, line.message): line for line in reversed(lines)}
    ordered = sorted(first.values(), key=lambda line: line.time)
    entries = [LogEntry(line, scope.run.step_of(line.span_id), times[line.logger, line.message]) for line in ordered]
    return Logs(entries[: limits.logs], len(entries))
