"""What of a log could not be read, in sentences: a report on half an application must say so before anything else."""

from collections.abc import Iterator

from app.eventlog.reading import Reading
from app.report.scope import Scope


def troubles(reading: Reading, scope: Scope) -> list[str]:
    """One sentence each; none where everything was read."""
    return list(_troubles(reading, scope))


def _troubles(reading: Reading, scope: Scope) -> Iterator[str]:
    app, files = reading.app, reading.troubles
    if app.ended is None:
        yield "The log has no end of the application: it was killed, or is at work. All times end with its last event."
    if reading.unreadable_lines:
        yield f"{reading.unreadable_lines:,} lines of the log are no events that can be read, and are left out."
    if files.torn_lines:
        yield f"{files.torn_lines:,} lines end in their midst: what they would tell is left out."
    if files.lost_files:
        yield f"{files.lost_files:,} files of the log were gone or broken: what they told is missing from all numbers."
    if app.started is None:
        yield "The log does not tell of the start of the application: what came before its first job is not known."
    if scope.run is not None and scope.run.unread:
        yield f"{scope.run.unread:,} lines in the files of the run cannot be read, and are left out."
    if scope.run is not None and scope.run.trace_id is None:
        yield "The run was not traced: what is shown is what Spark did in its time."
