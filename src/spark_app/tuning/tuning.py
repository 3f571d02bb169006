"""Tunes a program: runs it observed, takes settings to try from its findings, and tries them."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median_low

import msgspec

from spark_app.errors import UsageError
from spark_app.eventlog.comparison.profile import RunProfile
from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.local_files import write_atomic
from spark_app.settings import Prices
from spark_app.tuning import outputs
from spark_app.tuning.runs import Run, Runner, figures
from spark_app.tuning.search import Figures, Search, Stopped, Trial
from spark_app.tuning.settings import candidates, in_force

Key = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Tuning:
    """A program, and what its runs have shown.

    Attributes:
        runner: Runs it.
        thresholds: Of the diagnoses.
        prices: Of cores and memory.
        say: Is called with a line before and after each run.
        base: Settings that every run gets: without them the program dies for its memory.
        first: Its first run.
        search: The search; None before it.
        profiles: Those of its runs, by their settings.
    """

    runner: Runner
    thresholds: Thresholds
    prices: Prices
    say: Callable[[str], None]
    base: dict[str, str] = field(default_factory=dict)
    first: Run | None = None
    search: Search | None = None
    profiles: dict[Key, list[RunProfile]] = field(default_factory=lambda: defaultdict(list))

    def begin(self) -> Run:
        """Runs the program as it is."""
        self.say("run 1: the program as it is")
        self.first = self.runner.run(self.base)
        return self.first

    def require_rerunnable(self, run: Run, *, is_told: bool) -> None:
        """Checks that the program may run again.

        Raises:
            UsageError: It may not, by what its log says that it wrote, and nobody said that it may.
        """
        reasons = [] if run.reading is None or is_told else outputs.unrepeatable(run.reading.app)
        if reasons:
            listed = "; ".join(reasons[:5])
            raise UsageError(f"the program must not run again: {listed}. If it may, add --rerunnable")

    def look(self, run: Run, *, pairs: int, budget: float) -> Search:
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
        run = self.runner.run(self.base | dict(settings))
        if run.is_interrupted:
            raise Stopped("interrupted")
        problem = self._problem(run, settings)
        if problem is not None:
            self.say(f"run {self.runner.count}: {name}: {problem}")
            return problem
        profile = run.profile
        self.profiles[tuple(settings.items())].append(profile)
        return figures(profile, self.prices)

    def _problem(self, run: Run, settings: Mapping[str, str]) -> str | None:
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
