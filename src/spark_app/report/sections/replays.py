"""What replays of the schedule say: blocked time, and how long it would have taken with changes."""

from collections.abc import Sequence
from dataclasses import dataclass

from spark_app.eventlog.replay import doubts, what_if
from spark_app.eventlog.replay.blocked_time import BlockedTime, blocked_time
from spark_app.eventlog.replay.what_if import Change, Forecast
from spark_app.report.scope import Scope


@dataclass(frozen=True, slots=True)
class Replays:
    """The replays of an application or of a run.

    Attributes:
        error_ratio: How far the replay of what was is off; positive if it is too long.
        blocked_time: What its tasks waited for, most saved first.
        forecasts: How long it would have taken with changes.
        remarks: Why nothing is shown.
    """

    error_ratio: float
    blocked_time: list[BlockedTime]
    forecasts: list[Forecast]
    remarks: list[str]


def replays(scope: Scope, changes: Sequence[Change] | None = None) -> Replays | None:
    """The replays; None where there is nothing to replay, as in a log without executors or with streaming queries.

    Args:
        scope: What they are of.
        changes: What is forecast; None for other cores.
    """
    done = scope.work
    if done is None:
        return None
    remarks = doubts.of_replays(done)
    forecasts = what_if.forecasts(done, what_if.usual_changes(done) if changes is None else changes)
    return Replays(done.error, [] if remarks else blocked_time(done), forecasts, remarks)
