"""Tunes a program: runs it observed, takes settings to try from its findings, and tries them."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median_low
from typing import Final

import msgspec

from spark_app.annexes.tune import outputs
from spark_app.annexes.tune.memory import MemoryChange, step
from spark_app.annexes.tune.runs import EndedRun, Runner, figures
from spark_app.annexes.tune.search import Figures, Search, Stopped, Trial
from spark_app.annexes.tune.settings import candidates, in_force
from spark_app.errors import UsageError
from spark_app.eventlog.comparison.profile import RunProfile
from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.local_files import write_atomic
from spark_app.settings import Prices

Key = tuple[tuple[str, str], ...]
MAX_STEPS: Final = 3
"""How often a program that dies for its memory is run again. Project."""


@dataclass(slots=True)
class Tuning:
    """A program, and what its runs have shown.

    Attributes:
        runner: Runs it.
        thresholds: Of the diagnoses.
        prices: Of cores and memory.
        say: Is called with a line before and after each run.
        steps: Changes of memory without which the program dies.
        first: Its first run.
        search: The search; None before it.
        profiles: Those of its runs, by their settings.
    """

    runner: Runner
    thresholds: Thresholds
    prices: Prices
    say: Callable[[str], None]
    steps: list[MemoryChange] = field(default_factory=list)
    first: EndedRun | None = None
    search: Search | None = None
    profiles: dict[Key, list[RunProfile]] = field(default_factory=lambda: defaultdict(list))

    def begin(self, *, is_rerunnable: bool) -> EndedRun:
        """Runs the program as it is; one that dies for its memory is run again with more, as far as it may.

        Args:
            is_rerunnable: Whether it may run again, whatever its log says that it wrote.
        """
        self.say("run 1: the program as it is")
        self.first = self.runner.run({})
        while self.first.code and not self.first.is_interrupted and len(self.steps) < MAX_STEPS:
            app = self.first.reading.app if self.first.reading else None
            found = step(app, self.first.printed)
            if found is None or (app is not None and not is_rerunnable and outputs.unrepeatable(app)):
                break
            self.steps.append(found)
            given = ", ".join(f"{name}={value}" for name, value in self.memory.items())
            self.say(f"run {self.runner.count + 1}: {given}, since it died: {found.why}")
            self.first = self.runner.run(self.memory)
        return self.first

    @property
    def memory(self) -> dict[str, str]:
        """The settings of all steps."""
        return {name: value for each in self.steps for name, value in each.settings.items()}

    def require_rerunnable(self, run: EndedRun, *, is_told: bool) -> None:
        """Checks that the program may run again.

        Raises:
            UsageError: It may not, by what its log says that it wrote, and no option allows it.
        """
        reasons = [] if run.reading is None or is_told else outputs.unrepeatable(run.reading.app)
        if reasons:
            listed = "; ".join(reasons[:5])
            raise UsageError(f"the program must not run again: {listed}. If it may, add --rerunnable")

    def look(self, run: EndedRun, *, pairs: int, budget: float) -> Search:
        """Finds what to try by the first run; the search has not begun."""
        assert run.reading is not None
        app = run.reading.app
        found = candidates(app, diagnose(app, self.thresholds))
        self.search = Search(self._measure, found, pairs=pairs, budget=budget, first_seconds=run.seconds)
        return self.search

    def _measure(self, settings: Mapping[str, str], name: str) -> Figures | str:
        """One run with settings: what it took, or why that says nothing.

        Raises:
            Stopped: It was interrupted.
        """
        left = round(self.search.seconds_left / 60) if self.search else 0
        self.say(f"run {self.runner.count + 1}: {name} ({left} min of the budget left)")
        run = self.runner.run(settings)
        if run.is_interrupted:
            raise Stopped("interrupted")
        problem = self._problem(run, settings)
        if problem is not None:
            self.say(f"run {self.runner.count}: {name}: {problem}")
            return problem
        profile = run.profile
        self.profiles[tuple(settings.items())].append(profile)
        return figures(profile, self.prices)

    def _problem(self, run: EndedRun, settings: Mapping[str, str]) -> str | None:
        if run.code:
            return f"failed with exit code {run.code}: {run.log}"
        if run.reading is None or self.first is None or self.first.reading is None:
            return f"left no event log: {run.log}"
        other = outputs.difference(outputs.outputs(self.first.reading.app), outputs.outputs(run.reading.app))
        if other is not None:
            return f"changes the result: {other}"
        return in_force(run.reading.app, settings)

    def kept_profiles(self, trial: Trial | None) -> list[Path]:
        """Writes the profiles of the median runs without and with settings, for `spark-app compare`; their files.

        Raises:
            OSError: They cannot be written.
        """
        wanted: Sequence[tuple[str, Mapping[str, str]]] = [("tuned", trial.settings)] if trial else []
        files = []
        for name, settings in (*wanted, ("baseline", {})):
            profiles = self.profiles.get(tuple(settings.items()))
            if profiles:
                usual = median_low([each.duration_ms for each in profiles])
                profile = next(each for each in profiles if each.duration_ms == usual)
                files.append(self.runner.folder / f"{name}.json")
                write_atomic(files[-1], msgspec.json.encode(profile) + b"\n")
        return files
