"""What a replay of the schedule says: how much sooner it would have ended without what its tasks waited for."""

from dataclasses import dataclass

from spark_app.eventlog.replay.blocked_time import BlockedTime, blocked_time
from spark_app.eventlog.replay.work import Work
from spark_app.report.formatting import apart
from spark_app.report.scope import Scope


@dataclass(frozen=True, slots=True)
class Replays:
    """The replays of an application or of a run.

    Attributes:
        error_ratio: How far the replay of what was is off; positive if it is too long.
        blocked_time: What its tasks waited for, most saved first.
        remarks: Why something is not shown.
    """

    error_ratio: float
    blocked_time: list[BlockedTime]
    remarks: list[str]


def replays(scope: Scope) -> Replays | None:
    """The replays; None where there is nothing to replay, as in a log without executors or with streaming queries."""
    done = scope.work
    if done is None:
        return None
    remarks = list(_doubts(done))
    return Replays(done.error, [] if remarks else blocked_time(done), remarks)


def _doubts(done: Work) -> list[str]:
    """Why no replay of this log is to be believed."""
    if not done.app.is_whole:
        return ["The log lacks jobs or tasks."]
    if not done.is_credible:
        return [f"A replay of the stages and tasks as they were is {apart(done.error)}."]
    return []
