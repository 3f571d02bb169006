"""Events that a log has more than once: as where a file was copied behind another one, or lines were written again."""

from typing import Final

from spark_app.eventlog.parse import events
from spark_app.eventlog.parse.events import Event

MAX_STAGES: Final = 10_000
"""Stages whose tasks are remembered, the newest: streaming queries run for months."""
MAX_LINES: Final = 100_000
"""Lines of other events that are remembered."""
MAX_GAPS: Final = 1 << 16
"""Ids between those of a stage that are remembered: of tasks that run, and of other stages. Beyond that a task is taken
for new, since Spark counts the tasks of an application and a task that is tried again may have a far id."""
_MAY_REPEAT: Final = (events.StagePeaks, events.SqlPlanChanged, events.DriverNumbers, events.LogRecord)
"""Events that have no number of their own, and no time that distinguishes two of them."""


class _Numbers:
    """A set of whole numbers that come nearly in order: its least, its highest, and those between that it lacks."""

    __slots__ = ("gaps", "high", "low")

    def __init__(self, number: int) -> None:
        """It has one number."""
        self.low = self.high = number
        self.gaps = set[int]()

    def has(self, number: int) -> bool:
        """Whether it has a number that is not among the gaps; from now on it does, unless too many are between."""
        if self.low <= number <= self.high:
            return True
        between = range(self.high + 1, number) if number > self.high else range(number + 1, self.low)
        if len(self.gaps) + len(between) > MAX_GAPS:
            return False
        self.gaps.update(between)
        self.low, self.high = min(self.low, number), max(self.high, number)
        return False


Tasks = dict[tuple[int, int], _Numbers]
"""The ids of the tasks of each attempt of a stage."""


class RepeatedEvents:
    """Tells whether an event was there before: starts and ends of tasks by their ids, others by their lines."""

    def __init__(self) -> None:
        """Nothing was there."""
        self._started: Tasks = {}
        self._ended: Tasks = {}
        self._lines: dict[int, None] = {}

    def has(self, event: Event, line: bytes) -> bool:
        """Whether it was there before; from now on it was."""
        kind = type(event)
        if kind is events.TaskEnd:
            tasks = self._ended
        elif kind is events.TaskStart:
            tasks = self._started
        else:
            return kind not in _MAY_REPEAT and self._has_line(hash(line))
        return _has_task(tasks, event)  # type: ignore[arg-type]

    def _has_line(self, key: int) -> bool:
        is_known = key in self._lines
        self._lines[key] = None
        if len(self._lines) > MAX_LINES:
            del self._lines[next(iter(self._lines))]
        return is_known


def _has_task(tasks: Tasks, event: events.TaskStart | events.TaskEnd) -> bool:
    stage, number = (event.stage, event.stage_attempt), event.info.id
    numbers = tasks.get(stage)
    if numbers is None:
        tasks[stage] = _Numbers(number)
        if len(tasks) > MAX_STAGES:
            del tasks[next(iter(tasks))]
        return False
    if number == numbers.high + 1:  # nearly all are
        numbers.high = number
        return False
    if number in numbers.gaps:
        numbers.gaps.discard(number)
        return False
    return numbers.has(number) and not (isinstance(event, events.TaskEnd) and event.is_resubmitted)
