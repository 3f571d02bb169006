"""The samples of an application by stage: merged stacks with their weights, and the hottest functions of the user."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal, NamedTuple

from spark_app.errors import InputError
from spark_app.eventlog.parse.locations import LogPath
from spark_app.stack_samples import attribution, samples, scaling, task_runs
from spark_app.stack_samples.activity import WAITING, Activities, Activity
from spark_app.stack_samples.attribution import Place
from spark_app.stack_samples.counts import MIN_FUNCTION_SAMPLES, NO_SAMPLES, Tally
from spark_app.stack_samples.driver_calls import DriverCalls
from spark_app.stack_samples.samples import Frame, Language, Sample, StackSamples
from spark_app.stack_samples.spark_work import SparkWork, Work
from spark_app.stack_samples.task_runs import TaskRun

Kind = Literal["root", Language]
ROOTS: Final[Mapping[Activity, str]] = {
    "jvm": "JVM",
    "reading and writing": "JVM",
    "python": "Python",
    "lock": "waiting",
    "waiting": "waiting",
}
"""What stacks hang below, by what their threads did. A thread of the JVM that waits for Python is not among them: its
worker has samples of its own for the same time."""
NO_NODE: Final = -1


class Label(NamedTuple):
    """What a node of merged stacks says; the line only of functions of the user's program, else 0."""

    kind: Kind
    function: str
    file: str = ""
    line: int = 0
    is_own: bool = False

    @property
    def text(self) -> str:
        """The function, with the line of one of the user's."""
        return f"{self.function} ({self.file}:{self.line})" if self.line else self.function


class Node(NamedTuple):
    """A function below its callers: the number of the node of its caller, and of its label."""

    parent: int
    label: int


class Function(NamedTuple):
    """A function of the user's program."""

    language: Language
    name: str
    file: str


@dataclass(slots=True)
class FunctionTime:
    """Samples with a function in the stack.

    Attributes:
        total: All of them.
        innermost: Those in which it is the innermost of the user's: itself, or what it calls of libraries.
        lines: All of them by its line.
        is_udf: Whether Spark's Python worker called it.
    """

    total: Tally = NO_SAMPLES
    innermost: Tally = NO_SAMPLES
    lines: defaultdict[int, Tally] = field(default_factory=lambda: defaultdict(Tally))
    is_udf: bool = False

    @property
    def line(self) -> int:
        """Its line with the most samples."""
        return max(self.lines, key=lambda line: (self.lines[line].samples, -line), default=0)

    def add(self, other: "FunctionTime") -> None:
        """Adds those of another part."""
        self.total += other.total
        self.innermost += other.innermost
        self.is_udf |= other.is_udf
        for line, tally in other.lines.items():
            self.lines[line] += tally


@dataclass(slots=True)
class WorkTime:
    """Samples in which Spark did one kind of work.

    Attributes:
        functions: By the function of Spark, or of a library, that says so.
        lines: In the driver, by the line of the program that waited for it, `main (job.py:12)`, where one did.
    """

    functions: defaultdict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    lines: defaultdict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))

    @property
    def total(self) -> Tally:
        """All of them."""
        return sum(self.functions.values(), NO_SAMPLES)

    @property
    def function(self) -> str:
        """The function with the most."""
        return max(self.functions, key=lambda name: (self.functions[name].ms, name), default="")

    @property
    def line(self) -> str:
        """The line that waited for the most; empty if too few have one."""
        line = max(self.lines, key=lambda name: (self.lines[name].ms, name), default="")
        return line if self.lines.get(line, NO_SAMPLES).samples >= MIN_FUNCTION_SAMPLES else ""

    def add(self, other: "WorkTime") -> None:
        """Adds those of another part."""
        for to, each in ((self.functions, other.functions), (self.lines, other.lines)):
            for name, tally in each.items():
                to[name] += tally


@dataclass(slots=True)
class Part:
    """The samples of a stage, of several, or of the driver.

    Attributes:
        activities: By what the threads did.
        own: Those that end in a node, by its number.
        functions: The user's functions in them.
        works: Those in which Spark did work that a table names; the rest is the program's, or of generated code.
    """

    activities: defaultdict[Activity, Tally] = field(default_factory=lambda: defaultdict(Tally))
    own: defaultdict[int, Tally] = field(default_factory=lambda: defaultdict(Tally))
    functions: defaultdict[Function, FunctionTime] = field(default_factory=lambda: defaultdict(FunctionTime))
    works: defaultdict[Work, WorkTime] = field(default_factory=lambda: defaultdict(WorkTime))

    @property
    def total(self) -> Tally:
        """All samples."""
        return sum(self.activities.values(), NO_SAMPLES)

    @property
    def shown(self) -> Tally:
        """Those with a node: all but those that wait for Python."""
        return sum(self.own.values(), NO_SAMPLES)

    @property
    def hottest(self) -> list[tuple[Function, FunctionTime]]:
        """The functions by the samples in which they are the innermost of the user's."""
        return sorted(self.functions.items(), key=lambda item: (-item[1].innermost.ms, -item[1].total.ms, item[0]))

    def add(self, other: "Part") -> None:
        """Adds another part."""
        for activity, tally in other.activities.items():
            self.activities[activity] += tally
        for node, tally in other.own.items():
            self.own[node] += tally
        for function, time in other.functions.items():
            self.functions[function].add(time)
        for work, of_work in other.works.items():
            self.works[work].add(of_work)


@dataclass
class StackProfile:
    """All samples of an application; the parent of a node has a lower number than itself.

    `scaled_from` is the part of the CPU time of tasks that samples of the JVM have seen, where their times are scaled
    to it; None where they are as they were taken. `driver` are the samples of the driver, of which `builder` makes a
    part.
    """

    samples: StackSamples
    labels: list[Label]
    nodes: list[Node]
    parts: dict[Place, Part]
    scaled_from: float | None
    driver: list[Sample]
    builder: "_ProfileBuilder"

    def within(self, period: tuple[float, float] | None) -> "StackProfile":
        """The same with the driver's samples of a time only, in milliseconds since the epoch; None for no time.

        A sample counts if all the time that it stands for is within.
        """
        parts: dict[Place, Part] = {place: part for place, part in self.parts.items() if place != "driver"}
        if period is not None:
            taken = (sample for sample in self.driver if period[0] <= self._begin(sample) and sample.at_ms <= period[1])
            parts |= self.builder.parts((sample, "driver") for sample in taken)
        return replace(self, parts=parts)

    def _begin(self, sample: Sample) -> float:
        """When the time that a sample stands for has begun, to one interval; not after it was taken."""
        intervals = max(0.0, sample.weight - 1)  # a thread that ran for a part of an interval has a part of a sample
        return sample.at_ms - intervals * self.samples.processes[sample.process].interval_ms

    def of(self, places: Iterable[Place]) -> Part:
        """The samples of some places together."""
        merged = Part()
        for place in places:
            if place in self.parts:
                merged.add(self.parts[place])
        return merged

    @cached_property
    def all(self) -> Part:
        """All of them."""
        return self.of(self.parts)

    @property
    def intervals_ms(self) -> list[float]:
        """The times between two samples of a thread that were set."""
        return sorted({process.interval_ms for process in self.samples.processes})


def of_log(log: LogPath) -> StackProfile | None:
    """The samples beside a log, by stage; None where there are none, or where they cannot be read."""
    file = samples.file_of(log)
    try:
        if not file.is_file():
            return None
        return profile(samples.read(file), task_runs.of_log(log))
    except (InputError, OSError, ValueError):
        return None


def profile(taken: StackSamples, tasks: Sequence[TaskRun]) -> StackProfile:
    """Samples by stage, as the tasks of an event log tell it."""
    return of_places(taken, attribution.places(taken, tasks), tasks)


def of_places(taken: StackSamples, places: Sequence[Place], tasks: Sequence[TaskRun] = ()) -> StackProfile:
    """Samples by the place of each; times of the JVM are scaled by those of tasks, where it is needed.

    Threads of the driver and of executors that run no task and wait are left out: most of them always do.
    """
    activities = Activities(taken)
    factors, scaled_from = scaled(taken, places, tasks, activities)
    builder = _ProfileBuilder(taken, activities, factors)
    placed = [*zip(taken.samples, places, strict=True)]
    parts, interner = builder.parts(placed), builder.interner
    driver = [sample for sample, place in placed if place == "driver"]
    return StackProfile(taken, interner.labels, interner.nodes, parts, scaled_from, driver, builder)


def scaled(
    taken: StackSamples, places: Sequence[Place], tasks: Sequence[TaskRun], activities: Activities
) -> tuple[dict[Place, float], float | None]:
    """The factors of the times of samples of the JVM in tasks, and which part of the CPU time they have seen."""
    if not scaling.is_needed(taken.processes):
        return {}, None
    seen = defaultdict[Place, Tally](Tally)
    for sample, place in zip(taken.samples, places, strict=True):
        if place not in {"driver", "executor"} and activities.of(sample) == "jvm":
            seen[place] += Tally(1, sample.weight * taken.processes[sample.process].interval_ms)
    factors, measured = scaling.factors(seen, tasks), sum(task.cpu_ms for task in tasks)
    return factors, sum(seen.values(), NO_SAMPLES).ms / measured if factors else None


def is_idle(place: Place, activity: Activity) -> bool:
    """Whether a thread that runs no task waits."""
    return isinstance(place, str) and place != "unknown" and activity in WAITING


class _ProfileBuilder:
    """Makes parts of samples, all by the same nodes."""

    def __init__(self, taken: StackSamples, activities: Activities, factors: Mapping[Place, float]) -> None:
        """Looks at each stack once; times of the JVM in a place are multiplied by its factor."""
        self.interner = _NodeInterner(taken)
        self._taken, self._activities, self._factors = taken, activities, factors
        self._calls, self._works = DriverCalls(taken), [*map(SparkWork(taken).of, taken.stacks)]

    def parts(self, placed: Iterable[tuple[Sample, Place]]) -> dict[Place, Part]:
        """The parts of samples, of which each has its place."""
        parts = defaultdict[Place, Part](Part)
        by_stack = defaultdict[tuple[Place, Activity, int, bool], Tally](Tally)
        for sample, place in placed:
            activity, process = self._activities.of(sample), self._taken.processes[sample.process]
            if is_idle(place, activity):
                continue
            factor = self._factors.get(place, 1.0) if activity == "jvm" else 1.0
            tally = Tally(max(1, round(sample.weight)), sample.weight * process.interval_ms * factor)
            by_stack[place, activity, sample.stack, process.role == "python_worker"] += tally
            if activity not in WAITING:
                self._count_work(parts[place], sample, tally, has_line=place == "driver" and activity == "jvm")
        for (place, activity, stack, is_worker), tally in by_stack.items():
            part = parts[place]
            part.activities[activity] += tally
            if activity in ROOTS:
                part.own[self.interner.node(activity, stack)] += tally
                self.interner.count_functions(part, stack, tally, is_worker=is_worker)
        return dict(parts)

    def _count_work(self, part: Part, sample: Sample, tally: Tally, *, has_line: bool) -> None:
        """Counts what Spark did in a sample, in the driver also for the line of the program that waited for it."""
        step = self._works[sample.stack]
        if step is None:
            return
        time = part.works[step.work]
        time.functions[step.function] += tally
        line = self._calls.line_of(sample) if has_line else ""
        if line:
            time.lines[line] += tally


class _NodeInterner:
    """Nodes for stacks; stacks with the same callers share theirs."""

    def __init__(self, taken: StackSamples) -> None:
        """Gives each frame its label."""
        self.labels: list[Label] = []
        self.nodes: list[Node] = []
        self._taken = taken
        self._numbers = dict[Label, int]()
        self._children = dict[Node, int]()
        self._ends = dict[tuple[Activity, int], int]()
        self._label_of = [self._number(_label(frame)) for frame in taken.frames]

    def node(self, activity: Activity, stack: int) -> int:
        """The node in which a stack ends."""
        key = activity, stack
        if key not in self._ends:
            at = self._child(NO_NODE, self._number(Label("root", ROOTS[activity])))
            for frame in self._taken.stacks[stack]:
                at = self._child(at, self._label_of[frame])
            self._ends[key] = at
        return self._ends[key]

    def count_functions(self, part: Part, stack: int, tally: Tally, *, is_worker: bool) -> None:
        """Counts samples of a stack for the user's functions in it, each once."""
        own = [frame for frame in map(self._taken.frames.__getitem__, self._taken.stacks[stack]) if frame.is_own]
        seen = set[Function]()
        for depth, frame in reversed([*enumerate(own)]):
            function = Function(frame.language, frame.function, frame.file)
            time = part.functions[function]
            time.is_udf |= is_worker and depth == 0
            if depth == len(own) - 1:
                time.innermost += tally
            if function not in seen:
                seen.add(function)
                time.total += tally
                time.lines[frame.line] += tally

    def _number(self, label: Label) -> int:
        if label not in self._numbers:
            self._numbers[label] = len(self.labels)
            self.labels.append(label)
        return self._numbers[label]

    def _child(self, parent: int, label: int) -> int:
        node = Node(parent, label)
        if node not in self._children:
            self._children[node] = len(self.nodes)
            self.nodes.append(node)
        return self._children[node]


def _label(frame: Frame) -> Label:
    return Label(frame.language, frame.function, frame.file, frame.line if frame.is_own else 0, frame.is_own)
