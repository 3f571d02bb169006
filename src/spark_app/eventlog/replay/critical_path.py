"""The critical path: what the end of an application waited for, step by step back to its start.

Before the end it is the driver, back to the task that ended last; before that the stage of this task, back to its first
task; and then the driver again, or another stage, back to the task that ended last before that. So the steps follow one
another without a gap: what is not on the path may take longer without a later end.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.replay.work import Part, Work


@dataclass(frozen=True, slots=True)
class CriticalStep:
    """A step of the path; times in milliseconds since the epoch.

    Attributes:
        started, ended: From when to when.
        stage: The stage attempt that ran tasks; None for the driver.
        last_launched: When the last task of the stage on the path was launched; None for the driver.
    """

    started: float
    ended: float
    stage: StageAttempt | None = None
    last_launched: float | None = None

    @property
    def length_ms(self) -> float:
        """How long it took."""
        return self.ended - self.started


def critical_path(work: Work) -> list[CriticalStep]:
    """The steps from the start to the end, the first one first."""
    instant, steps, left = work.end, list[CriticalStep](), _Left(work.parts)
    while instant > work.start:
        last = left.take_last(instant)
        ended = work.start if last is None else max(work.start, last.ended)
        if ended < instant:
            steps.append(CriticalStep(ended, instant))
        if last is None:
            break
        instant = max(work.start, min(last.started, ended))
        if instant < ended:
            steps.append(CriticalStep(instant, ended, last.stage, last.last_launched))
    return steps[::-1]


class _Left:
    """The parts that are not on the path yet."""

    def __init__(self, parts: Sequence[Part]) -> None:
        """All of them."""
        self._ended = sorted(parts, key=lambda part: (part.piece.ended, part.piece.began))
        self._running = list[Part]()
        self._ends: dict[int, list[tuple[float, float]]] = {}

    def take_last(self, instant: float) -> CriticalStep | None:
        """The stage whose task ended last before an instant, from its first task to that one; None without one."""
        while self._ended and self._ended[-1].piece.ended > instant:
            self._running.append(self._ended.pop())
        self._running = [part for part in self._running if part.piece.began <= instant]
        left = [*self._running, *self._ended[-1:]]
        found = [(each[-1], part) for part in left if (each := self._until(part, instant))]
        if not found:
            return None
        (ended, launched), part = max(found, key=lambda each: (each[0], each[1].piece.began))
        if self._ended and part is self._ended[-1]:
            self._ended.pop()
        self._running = [each for each in self._running if each is not part]
        return CriticalStep(part.stage.launched[part.places[0]], ended, part.stage, launched)

    def _until(self, part: Part, instant: float) -> Sequence[tuple[float, float]]:
        """The last of the tasks of a part that ended until an instant, with their ends and launches."""
        own = self._ends.get(id(part))
        if own is None:
            launched = part.stage.launched
            ends = zip(part.places, part.piece.durations, strict=True)
            own = self._ends[id(part)] = sorted((launched[place] + ms, float(launched[place])) for place, ms in ends)
        last = bisect_right(own, (instant, float("inf")))
        return own[max(0, last - 1) : last]
