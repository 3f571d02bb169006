"""What was logged at warning and above during a run, and by which step."""

from collections import Counter
from dataclasses import dataclass

from app.report.limits import Limits
from app.report.scope import Scope
from app.telemetry.lines import LogLine


@dataclass(frozen=True, slots=True)
class Entry:
    """A log record with the step that it belongs to, and how often the same was said."""

    line: LogLine
    step: str | None
    times: int


@dataclass(frozen=True, slots=True)
class Logs:
    """In the order of their times; the same said again is counted, not listed."""

    shown: list[Entry]
    total: int


def logs(scope: Scope, limits: Limits) -> Logs | None:
    """None for an application that is no run of ours: an event log holds no log lines."""
    if scope.run is None:
        return None
    lines = scope.run.warnings
    counted = Counter((line.logger, line.message) for line in lines)
    first = {(line.logger, line.message): line for line in reversed(lines)}
    ordered = sorted(first.values(), key=lambda line: line.time)
    entries = [Entry(line, scope.run.step_of(line.span_id), counted[line.logger, line.message]) for line in ordered]
    return Logs(entries[: limits.logs], len(entries))
