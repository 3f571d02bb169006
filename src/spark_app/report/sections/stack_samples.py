"""Where the time of stages goes by samples of stacks, and the user's hottest functions."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from spark_app.eventlog.document import Name
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.report.limits import Limits
from spark_app.report.scope import Scope, stage_name
from spark_app.report.sections.stack_steps import steps
from spark_app.stack_samples import library_functions
from spark_app.stack_samples.attribution import Place
from spark_app.stack_samples.counts import MIN_FUNCTION_SAMPLES, MIN_STAGE_SAMPLES, NO_SAMPLES, Tally
from spark_app.stack_samples.library_functions import LibraryFunction
from spark_app.stack_samples.stack_profile import Function, FunctionTime, Part, StackProfile

COMPARABLE: Final = 0.2
"""How far the time of samples may be from the CPU time that Spark measured. Project: twice the aim of the samplers."""
MAX_OF_LIBRARIES: Final = 8
"""Functions of Spark and libraries that are listed: below the first ones, all have some percent."""
NAMES: Final[Mapping[Place, str]] = {
    "driver": "driver",
    "executor": "executors, outside of tasks",
    "unknown": "tasks of unknown stages",
}


@dataclass(frozen=True, slots=True)
class HotFunction:
    """A function of the user's program in a stage, or in the driver.

    Attributes:
        place: Where its samples are; in the list for people, it may be the title of a step of several stages.
        function: The function.
        time: Its samples.
        whole: All samples of that place, but those that wait for Python.
    """

    place: Place | str
    function: Function
    time: FunctionTime
    whole: Tally

    @property
    def share(self) -> float | None:
        """Of the time of the place, the share in which it is the innermost of the user's; None of too few samples."""
        return self.time.innermost.ms / self.whole.ms if self.time.innermost.samples >= MIN_FUNCTION_SAMPLES else None

    @property
    def apart(self) -> float | None:
        """How far that share may be off, in 19 of 20 cases."""
        low, high = self.time.innermost.interval_ms()
        return None if self.share is None else (high - low) / 2 / self.whole.ms

    @property
    def total_share(self) -> float:
        """The share with what it calls of the user's."""
        return self.time.total.ms / self.whole.ms


class SparkStep(Struct, frozen=True):
    """What Spark itself did, as compression or planning: its share of the samples, and the function with the most.

    `line` is the program's line that waited for the most of it in the driver, null if that is not known.
    """

    work: str
    ratio: float
    function: Name
    line: Name | None


@dataclass(frozen=True, slots=True)
class Row:
    """The samples of a stage, or of the driver, by what the threads did; `name` is empty if the stage is unknown.

    `collecting` is the share of garbage collection in the run time of its tasks, which Spark measures and no sample
    sees; None where there is none.
    """

    place: Place
    name: str
    part: Part
    collecting: float | None = None

    @property
    def is_stage(self) -> bool:
        """Whether it is a stage, which the report lists."""
        return isinstance(self.place, tuple)

    def share(self, activity: str) -> float | None:
        """The share of an activity of the time; None of too few samples."""
        tally, whole = self.part.activities.get(activity, NO_SAMPLES), self.part.total  # type: ignore[call-overload]
        return tally.ms / whole.ms if tally.samples >= MIN_FUNCTION_SAMPLES and whole.ms else None

    @property
    def works(self) -> list[SparkStep]:
        """What Spark itself did, the most first; what too few samples have is left out."""
        enough = [
            (work, time, time.total)
            for work, time in self.part.works.items()
            if time.total.samples >= MIN_FUNCTION_SAMPLES
        ]
        ranked = sorted(enough, key=lambda each: (-each[2].ms, each[0]))
        whole = self.part.total.ms
        return [SparkStep(work, total.ms / whole, time.function, time.line or None) for work, time, total in ranked]


@dataclass(frozen=True)
class StackSection:
    """Samples of stacks about a scope.

    Attributes:
        scope: What it is about.
        profile: The samples of the application by stage.
        limits: How much is listed and drawn.
        rows: The samples of its stages, the most first, and of the driver; all of them.
        functions: The user's hottest functions; those of too few samples are left out.
        steps: The stages of steps that ran more than once.
    """

    scope: Scope
    profile: StackProfile
    limits: Limits
    rows: list[Row]
    functions: list[HotFunction]
    steps: dict[str, list[Place]]

    @cached_property
    def functions_of_steps(self) -> list[HotFunction]:
        """The same, with the stages of a step as one."""
        of_step = {place: title for title, places in self.steps.items() for place in places}
        parts = defaultdict[Place | str, Part](Part)
        for row in self.rows:
            parts[of_step.get(row.place, row.place)].add(row.part)
        return hottest(parts)

    @cached_property
    def whole(self) -> Part:
        """All its samples together."""
        return self.profile.of(row.place for row in self.rows)

    @cached_property
    def of_libraries(self) -> list[LibraryFunction]:
        """The hottest functions that are not the user's."""
        return library_functions.hottest(self.profile, self.whole, MAX_OF_LIBRARIES)

    @property
    def total(self) -> Tally:
        """All its samples."""
        return sum((row.part.total for row in self.rows), NO_SAMPLES)

    @property
    def of_tasks(self) -> Tally:
        """Those of tasks, also where the stage is not known."""
        return self.in_stages + self.unknown

    @property
    def in_stages(self) -> Tally:
        """Those whose stage is known."""
        return sum((row.part.total for row in self.stages), NO_SAMPLES)

    @property
    def unknown(self) -> Tally:
        """Those of tasks whose stage is not known."""
        return sum((row.part.total for row in self.rows if row.place == "unknown"), NO_SAMPLES)

    @property
    def stages(self) -> list[Row]:
        """Its stages that have samples."""
        return [row for row in self.rows if row.is_stage]

    @property
    def drawn(self) -> list[Row]:
        """What has enough samples for a picture of its own."""
        return [row for row in self.rows if row.part.shown.samples >= MIN_STAGE_SAMPLES]

    @property
    def jvm_cpu_ratio(self) -> float | None:
        """The time of samples of the JVM in tasks over the CPU time that Spark measured; None if too few tell it."""
        totals = [stage.totals for stage in self.scope.stages]
        measured_ms = sum((each.cpu_ns or 0) + each.deserialize_cpu_ns for each in totals) / 1e6
        tasks = [row.part.activities["jvm"] for row in self.rows if row.is_stage or row.place == "unknown"]
        sampled = sum(tasks, NO_SAMPLES)
        return sampled.ms / measured_ms if measured_ms and sampled.samples >= MIN_STAGE_SAMPLES else None

    @property
    def is_jvm_comparable(self) -> bool:
        """Whether bars of the JVM compare with those of Python: its samples have the time that Spark measured."""
        return self.jvm_cpu_ratio is None or abs(self.jvm_cpu_ratio - 1) <= COMPARABLE

    @property
    def cut(self) -> int:
        """How many Python processes have no samples of their end, since their file was full."""
        return sum(process.is_cut for process in self.profile.samples.processes)

    @property
    def unsampled(self) -> list[str]:
        """The executors that have no samples of their JVM, by id."""
        sampled = {each.executor for each in self.profile.samples.processes if each.role in {"driver", "executor"}}
        return sorted(self.scope.app.executors.keys() - sampled)


def stack_samples(scope: Scope, profile: StackProfile | None, limits: Limits) -> StackSection | None:
    """The samples of what a report covers; None without any.

    Those of the driver are of a run if they were taken in its time, and no other run of its application was.
    """
    if profile is None or not profile.all.shown.samples:
        return None
    profile = profile if scope.run is None else profile.within(scope.run.alone)
    covered = {(stage.info.id, stage.info.attempt): stage for stage in scope.stages}
    names: dict[Place, str] = {key: stage_name(scope, stage) for key, stage in covered.items()}
    names |= NAMES if scope.run is None else {"driver": NAMES["driver"]}
    parts = {place: part for place, part in profile.parts.items() if place in names}
    ranked = sorted(parts, key=lambda place: (isinstance(place, str), -parts[place].total.ms))
    rows = [Row(place, names[place], parts[place], _collecting(covered, place)) for place in ranked]
    return StackSection(scope, profile, limits, rows, hottest(parts), steps(scope, names)) if rows else None


def _collecting(stages: Mapping[tuple[int, int], StageAttempt], place: Place) -> float | None:
    totals = stages[place].totals if isinstance(place, tuple) else None
    return totals.gc_ms / totals.run_ms if totals is not None and totals.run_ms else None


def hottest(parts: Mapping[Any, Part]) -> list[HotFunction]:
    """The user's functions in all places, the hottest first; UDFs also where only what they call is hot."""
    found = [
        HotFunction(place, function, time, part.shown)
        for place, part in parts.items()
        for function, time in part.hottest
        if (time.total if time.is_udf else time.innermost).samples >= MIN_FUNCTION_SAMPLES
    ]
    return sorted(found, key=lambda hot: (-hot.time.innermost.ms, -hot.time.total.ms, hot.function, str(hot.place)))
