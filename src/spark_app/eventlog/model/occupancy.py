"""Cores, task slots and running tasks of an application over time: what was busy, what was idle, and how long.

`Occupancy` has them for a period, by the executors and the tasks of a log that was read. `Utilization` and
`TaskFreeTime` sum them up while events are read, since an application may run for months and is forgotten in part.
Events are not exactly in the order of their times: such sums may be 0.1 % off.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby, pairwise, repeat
from math import inf
from operator import sub
from typing import Final, Literal, NamedTuple

from spark_app.eventlog.model.executors import Executor

Span = tuple[float, float, int]
"""From when to when there was how much of something."""
Kind = Literal["startup", "planning", "waiting", "between", "ending"]
KINDS: Final[tuple[Kind, ...]] = ("startup", "planning", "waiting", "between", "ending")


@dataclass(slots=True)
class Utilization:
    """Sums over time, in milliseconds.

    Attributes:
        wall_ms: Wall-clock time.
        core_ms, slot_ms: Time, multiplied by the cores of the registered executors, and by the tasks that they can run
            at once: an executor runs as many as `spark.task.cpus` allows for its cores.
        task_ms: Time, multiplied by the running tasks.
        busy_ms: Wall-clock time in which a task ran.
    """

    wall_ms: float = 0
    core_ms: float = 0
    slot_ms: float = 0
    task_ms: float = 0
    busy_ms: float = 0

    def spend(self, ms: float, *, cores: int, slots: int, tasks: int) -> None:
        """Adds a stretch of time in which nothing changed."""
        self.wall_ms += ms
        self.core_ms += ms * cores
        self.slot_ms += ms * slots
        if tasks:
            self.task_ms += ms * tasks
            self.busy_ms += ms

    @property
    def slots(self) -> float | None:
        """How many tasks could run at once, on average; None where no executor was there."""
        return self.slot_ms / self.wall_ms if self.wall_ms and self.slot_ms else None

    @property
    def idle_ms(self) -> float:
        """Wall-clock time in which no task ran."""
        return self.wall_ms - self.busy_ms

    @property
    def unused_ms(self) -> float | None:
        """Wall-clock time, multiplied by the share of the slots that ran no task; None where no executor was there."""
        return max(0.0, self.wall_ms - self.task_ms / self.slots) if self.slots else None

    def wall_of(self, task_ms: float) -> float | None:
        """What a part of the task time took of the wall-clock time: divided by the mean number of running tasks.

        Where no task is known to have run, it is divided by the slots; None where those are unknown, too.
        """
        if self.task_ms:
            return task_ms * self.busy_ms / self.task_ms
        return task_ms / max(1.0, self.slots) if self.slots else None

    def copy(self) -> "Utilization":
        """The sums as they are now."""
        return replace(self)

    def since(self, before: "Utilization") -> "Utilization":
        """What was added after an earlier copy."""
        return Utilization(*map(sub, astuple(self), astuple(before)))


class Stretch(NamedTuple):
    """A time without a running task; milliseconds since the epoch."""

    kind: Kind
    started: int
    ended: int

    @property
    def length_ms(self) -> int:
        """How long it took, in milliseconds."""
        return self.ended - self.started


class TaskFreeTime:
    """The time in which no task ran, by what the driver did then.

    The kinds: `startup` is before the first query or job; `planning` and `waiting` are within queries and jobs, with
    and without a registered executor; `between` is between queries and jobs; `ending` is after the last one. Spark logs
    the start of a query after its analysis, so that analysis before the first query counts as `startup`.

    Attributes:
        sums: Milliseconds by kind.
        longest: The longest stretch of each kind.
    """

    def __init__(self) -> None:
        """Starts before the first query."""
        self.sums: dict[Kind, int] = dict.fromkeys(KINDS, 0)
        self.longest: dict[Kind, Stretch] = {}
        self._open: Stretch | None = None
        self._has_worked = False

    @property
    def outside_ms(self) -> int:
        """The time without a running task, query or job."""
        return self.sums["startup"] + self.sums["between"] + self.sums["ending"]

    def spend(self, started: int, ended: int, *, cores: int, tasks: int, is_at_work: bool) -> None:
        """Adds a stretch of time in which nothing changed; `is_at_work`: a query or a job ran."""
        if tasks or is_at_work:
            self._resume()
        if tasks:
            self._open = None
            return
        within: Kind = "planning" if cores else "waiting"
        outside: Kind = "ending" if self._has_worked else "startup"
        kind = within if is_at_work else outside
        self.sums[kind] += ended - started
        if self._open is not None and self._open.kind == kind:
            started = self._open.started
        self._open = self._keep(Stretch(kind, started, ended))

    def _resume(self) -> None:
        """The driver works again: what seemed to be the end was between two queries or jobs."""
        self._has_worked = True
        if self.sums["ending"]:
            self.sums["between"] += self.sums["ending"]
            self.sums["ending"] = 0
            self._keep(self.longest.pop("ending")._replace(kind="between"))
            self._open = None

    def _keep(self, stretch: Stretch) -> Stretch:
        longest = self.longest.get(stretch.kind, stretch)
        self.longest[stretch.kind] = max(longest, stretch, key=lambda each: each.length_ms)
        return stretch


class Occupancy:
    """How many executors, cores, slots and running tasks there were in a period.

    Attributes:
        instants: When one of them changes, from the start of the period to its end; milliseconds since the epoch.
        executors, cores, slots, tasks: How many there were from each instant to the next; a slot runs a task at a time.
        others: The same of what else was to be added up.
    """

    def __init__(
        self,
        executors: Iterable[Executor],
        tasks: Iterable[Span],
        period: tuple[float, float],
        *,
        task_cpus: int,
        others: Sequence[Iterable[Span]] = (),
    ) -> None:
        """Adds up what there was at each instant; an executor that was never removed stays to the end."""
        lives = [(each.added, inf if each.removed is None else each.removed, each.cores) for each in executors]
        numbers = [(added, gone, 1) for added, gone, _ in lives]
        slots = [(added, gone, cores // task_cpus) for added, gone, cores in lives]
        self.instants, values = levels(period, numbers, lives, slots, tasks, *others)
        self.executors, self.cores, self.slots, self.tasks, *self.others = values
        self.lengths_ms = [until - since for since, until in pairwise(self.instants)]

    def total(self, values: Iterable[int]) -> float:
        """Time, multiplied by one of the quantities."""
        return sum(ms * value for ms, value in zip(self.lengths_ms, values, strict=True))

    @cached_property
    def utilization(self) -> Utilization:
        """The sums over the period."""
        used = Utilization()
        for ms, cores, slots, tasks in zip(self.lengths_ms, self.cores, self.slots, self.tasks, strict=True):
            used.spend(ms, cores=cores, slots=slots, tasks=tasks)
        return used

    @cached_property
    def gaps(self) -> list[tuple[float, float]]:
        """The stretches in which no task ran, in order."""
        return zeros(self.instants, self.tasks)

    def means(self, values: Sequence[int], parts: int) -> list[float]:
        """The mean of one of the quantities in each of equally long parts of the period; empty if it has no length."""
        if not values:
            return []
        offsets = list(accumulate(self.lengths_ms, initial=0.0))
        sums = list(accumulate((ms * value for ms, value in zip(self.lengths_ms, values, strict=True)), initial=0.0))
        width = offsets[-1] / parts

        def until(offset: float) -> float:
            index = min(bisect_right(offsets, offset), len(values)) - 1
            return sums[index] + (offset - offsets[index]) * values[index]

        totals = [until(number * width) for number in range(parts + 1)]
        return [round((after - before) / width, 9) for before, after in pairwise(totals)]


def levels(period: tuple[float, float], *quantities: Iterable[Span]) -> tuple[list[float], list[list[int]]]:
    """How much there is of each of some quantities over time.

    Returns:
        The instants at which one of them changes, with the start and the end of the period, and for each quantity how
        much there is from each instant to the next.
    """
    start, end = period
    changes = [_changes(spans, start, end) for spans in quantities]
    instants = sorted({start, max(start, end)}.union(*changes))
    return instants, [list(accumulate(map(own.get, instants[:-1], repeat(0)))) for own in changes]


def _changes(spans: Iterable[Span], start: float, end: float) -> dict[float, int]:
    changes = defaultdict[float, int](int)
    for began, ended, number in spans:
        since, until = max(began, start), min(ended, end)
        if since < until:
            changes[since] += number
            changes[until] -= number
    return changes


def zeros(instants: Sequence[float], values: Iterable[int]) -> list[tuple[float, float]]:
    """The stretches of time in which there is nothing of a quantity, in order."""
    steps = groupby(zip(pairwise(instants), values, strict=True), lambda step: step[1] > 0)
    stretches = [[span for span, _ in own] for is_some, own in steps if not is_some]
    return [(own[0][0], own[-1][1]) for own in stretches]
