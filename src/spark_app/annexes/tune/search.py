"""Tries settings one by one and then together, each next to a run without them, until the budget is spent.

A round is one run of the baseline and one with each setting that is still open, in another order each time. A setting
that is no faster on average after two rounds is dropped. What helps (`judgement`) is then tried together in new pairs,
which decide and are what is reported: the luck of the pairs that chose a setting is not in them.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from spark_app.annexes.tune.judgement import MIN_PAIRS, Effect, change
from spark_app.annexes.tune.settings import Candidate
from spark_app.eventlog.diagnoses.trials import Goal

DROPPED_AFTER: Final = 2
FOR_CHOICE: Final = 0.6
"""The share of the budget that may choose settings; the rest confirms them together. Project."""
Verdict = Literal["helps", "no effect beyond the noise", "slower", "too few runs", "not measured"]


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run took: time and CPU time in milliseconds, and its cost, in core-hours where nothing has a price."""

    ms: float
    cpu_ms: float
    cost: float


@dataclass(slots=True)
class Trial:
    """Settings that are tried together, next to the baseline.

    Attributes:
        candidates: The settings, with why.
        pairs: What runs took without and with them.
        problem: Why it was given up; None while it is open.
        is_dropped: Whether it was no faster after two rounds.
    """

    candidates: tuple[Candidate, ...]
    pairs: list[tuple[Figures, Figures]] = field(default_factory=list)
    problem: str | None = None
    is_dropped: bool = False

    @property
    def settings(self) -> dict[str, str]:
        """The Spark properties."""
        return {each.setting: each.value for each in self.candidates}

    @property
    def name(self) -> str:
        """The settings as a person writes them."""
        return ", ".join(f"{name}={value}" for name, value in self.settings.items())

    @property
    def time(self) -> Effect | None:
        """The change of the duration; None without a pair."""
        return change([(before.ms, after.ms) for before, after in self.pairs])

    @property
    def cpu(self) -> Effect | None:
        """The change of the CPU time of tasks."""
        return change([(before.cpu_ms, after.cpu_ms) for before, after in self.pairs])

    @property
    def cost(self) -> Effect | None:
        """The change of the cost."""
        return change([(before.cost, after.cost) for before, after in self.pairs])

    @property
    def verdict(self) -> Verdict:
        """What the pairs say."""
        took, cost = self.time, self.cost
        if self.problem is not None or took is None or cost is None:
            return "not measured"
        goals: set[Goal] = {each.goal for each in self.candidates}
        if took.helps or (goals == {"cost"} and cost.helps and took.is_no_slower):
            return "helps"
        if took.pairs < MIN_PAIRS and not self.is_dropped:
            return "too few runs"
        return "slower" if took.low > 0 else "no effect beyond the noise"

    @property
    def gain(self) -> float:
        """What it saves on average, as a share; for the order of those that help."""
        return max((-each.mean for each in (self.time, self.cost) if each is not None), default=0.0)


class Stopped(Exception):  # noqa: N818 - it is no error: the search keeps what is known
    """The search ends with what is known."""


Measure = Callable[[Mapping[str, str], str], Figures | str]
"""Runs the program with settings, and for a person's eyes what they are for; what it took, or why that is not known.

It raises `Stopped` if nothing more is to be run.
"""


class Search:
    """A search for settings that help.

    Attributes:
        trials: Each setting alone.
        together: Those that helped; None before they are tried.
        stopped: Why the search ended before its end; empty if it did not.
    """

    def __init__(
        self,
        measure: Measure,
        candidates: Sequence[Candidate],
        *,
        pairs: int,
        budget: float,
        first_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Runs nothing yet.

        Args:
            measure: Runs the program.
            candidates: The settings to try, the most promising first.
            pairs: How many pairs of runs for each.
            budget: Seconds for all runs.
            first_seconds: How long the first run took.
            clock: Seconds.
        """
        self._measure, self._most, self._clock = measure, pairs, clock
        self._began, self._budget, self._first = clock(), budget, first_seconds
        self._seconds: dict[int, float] = {}
        self.trials = [Trial((candidate,)) for candidate in candidates]
        self.together: Trial | None = None
        self.stopped = ""

    @property
    def seconds_left(self) -> float:
        """Of the budget."""
        return max(0.0, self._budget - (self._clock() - self._began))

    def go(self) -> None:
        """Searches to the end; what is known so far stands in the attributes at any time."""
        try:
            self._choose()
            self._confirm()
        except Stopped as reason:
            self.stopped = str(reason)

    def _choose(self) -> None:
        self._leave_out()
        for number in range(self._most):
            tried = [trial for trial in self.trials if trial.problem is None and not trial.is_dropped]
            if not tried:
                return
            if not self._fits(tried, of=FOR_CHOICE):
                self.stopped = f"the budget was enough for {number} of {self._most} pairs of each setting"
                return
            self._round(tried, number)

    def _leave_out(self) -> None:
        """Gives up the least promising settings where the budget has no room for pairs of all."""
        room = int(self._budget * FOR_CHOICE / (self._most * self._first)) - 1
        for trial in self.trials[max(1, room) :]:
            trial.problem = "not tried: the budget is too small"

    def _round(self, trials: Sequence[Trial], number: int) -> None:
        """One run of the baseline and one with each; every other round goes backwards."""
        order: list[Trial | None] = [None, *trials]
        figures: dict[int, Figures] = {}
        for trial in order if number % 2 == 0 else reversed(order):
            measured = self._run(trial)
            if isinstance(measured, Figures):
                figures[id(trial)] = measured
            elif trial is not None:
                trial.problem = measured
            else:
                raise Stopped(f"a run without any of the settings: {measured}")
        for trial in trials:
            if id(trial) in figures:
                trial.pairs.append((figures[id(None)], figures[id(trial)]))
            trial.is_dropped = _is_no_faster(trial)

    def _run(self, trial: Trial | None) -> Figures | str:
        began = self._clock()
        measured = self._measure(trial.settings if trial else {}, trial.name if trial else "the baseline")
        self._seconds[id(trial)] = self._clock() - began
        return measured

    def _fits(self, trials: Sequence[Trial], *, of: float = 1.0) -> bool:
        """Whether a round has room in the budget, by how long each took last; a new one takes as long as the first."""
        needed = sum(self._seconds.get(id(trial), self._first) for trial in (None, *trials))
        return needed <= self.seconds_left - (1 - of) * self._budget

    def _confirm(self) -> None:
        """Tries together what helped, in new pairs; if that does not help, the best of them alone."""
        helped = sorted((each for each in self.trials if each.verdict == "helps"), key=lambda each: -each.gain)
        if not helped:
            return
        self._pairs(Trial(_compatible(helped)))
        if self.together is not None and self.together.verdict != "helps" and len(self.together.candidates) > 1:
            self._pairs(Trial(helped[0].candidates))

    def _pairs(self, trial: Trial) -> None:
        self.together = trial
        for number in range(self._most):
            if trial.problem is not None:
                return
            if not self._fits([trial]):
                self.stopped = f"the budget was enough for {number} of {self._most} pairs of what helped"
                return
            self._round([trial], number)
            trial.is_dropped = False


def _is_no_faster(trial: Trial) -> bool:
    return len(trial.pairs) >= DROPPED_AFTER and trial.gain <= 0


def _compatible(helped: Sequence[Trial]) -> tuple[Candidate, ...]:
    """The settings that helped, each once: with the value that saves most."""
    found: dict[str, Candidate] = {}
    for trial in helped:
        for candidate in trial.candidates:
            found.setdefault(candidate.setting, candidate)
    return tuple(found.values())
