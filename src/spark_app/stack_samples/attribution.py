"""To which stage each sample of an application belongs.

A sample that knows its task belongs to the stage of that. Else the event log has to tell: a sample of a thread with
`Executor$TaskRunner.run` in its stack, or of a Python worker, is of one of the tasks that ran on its executor then.
Where these are of several stages, threads of the JVM distinguish them: one runs one task at a time, each task runs in
one of them only, and the class of the task is in the stack. What this leaves open is not known, and is not guessed.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from spark_app.stack_samples.samples import Sample, Span, StackSamples
from spark_app.stack_samples.task_runs import StageKey, TaskRun
from spark_app.stack_samples.thread_spans import matched, spans_of

TASK_RUNNER: Final = "org.apache.spark.executor.Executor$TaskRunner.run"
TASK_CLASSES: Final = {f"org.apache.spark.scheduler.{kind}.runTask": kind for kind in ("ResultTask", "ShuffleMapTask")}
CLOCKS_APART_MS: Final = 2000
"""How far the clock of an executor may be from that of the driver: a task that a sample names ended longer ago."""
SLACK_MS: Final = 20
"""How long a thread may be in a task before its launch, or after its end, as the driver logs them. Project."""
Place = StageKey | Literal["driver", "executor", "unknown"]
"""Where a sample belongs: a stage; the driver's own threads and Python; threads of executors that run no task; or a
thread of a task, or a Python worker, of a stage that is not known."""
_Thread = tuple[int, int]
"""The process and the thread in it."""


def places(samples: StackSamples, tasks: Iterable[TaskRun]) -> list[Place]:
    """Where each sample belongs, in their order."""
    runs = {task.id: task for task in tasks}
    is_of_task, classes = _of_stacks(samples)
    found: list[Place] = []
    moments = defaultdict[tuple[str, bool], list[_Moment]](list)
    for number, sample in enumerate(samples.samples):
        place = _place(samples, sample, runs, is_of_task=is_of_task[sample.stack])
        found.append(place or "unknown")
        process = samples.processes[sample.process]
        if place is None and process.executor is not None:
            moment = _Moment(sample.at_ms, number, (sample.process, sample.thread), classes[sample.stack])
            moments[process.executor, process.role == "python_worker"].append(moment)
    by_executor = defaultdict[str, list[TaskRun]](list)
    for task in sorted(runs.values(), key=lambda task: task.launched):
        by_executor[task.executor].append(task)
    for (executor, is_worker), each in moments.items():
        spans = [] if is_worker else samples.spans
        for number, stage in _joined(sorted(each), by_executor[executor], spans, is_worker=is_worker):
            found[number] = stage
    return found


class _Moment(NamedTuple):
    """A sample of a thread of a task: its time and number, and the class of the task, empty where no frame says it."""

    at: int
    number: int
    thread: _Thread
    kind: str


def _place(samples: StackSamples, sample: Sample, runs: Mapping[int, TaskRun], *, is_of_task: bool) -> Place | None:
    """Where a sample belongs that needs no join; None for one of a task that the event log has to tell."""
    role = samples.processes[sample.process].role
    if sample.task is not None:
        run = runs.get(sample.task)
        if run is not None and run.launched - CLOCKS_APART_MS <= sample.at_ms <= run.finished + CLOCKS_APART_MS:
            return run.stage
    if role == "python_worker" and sample.state == "waiting":
        return "executor"  # it waits for its next task
    if sample.task is not None:
        return "unknown"
    if role == "python_driver" or (role == "driver" and not is_of_task):
        return "driver"
    return "executor" if role == "executor" and not is_of_task else None


def _of_stacks(samples: StackSamples) -> tuple[list[bool], list[str]]:
    """Of each stack: whether it is of a thread that runs a task, and the class of that task."""
    names = [frame.function for frame in samples.frames]
    runner = {number for number, name in enumerate(names) if name == TASK_RUNNER}
    classes = {number: TASK_CLASSES[name] for number, name in enumerate(names) if name in TASK_CLASSES}
    return (
        [not runner.isdisjoint(stack) for stack in samples.stacks],
        [next((classes[frame] for frame in stack if frame in classes), "") for stack in samples.stacks],
    )


def _joined(
    moments: Sequence[_Moment], tasks: Sequence[TaskRun], spans: Sequence[Span], *, is_worker: bool
) -> Iterator[tuple[int, StageKey]]:
    """The stages of samples of one executor, by number, as far as times and threads tell; both by their times.

    A task may have several Python workers, so that these say nothing of each other.
    """
    choices = {moment.number: choice for moment, choice in _running(moments, tasks)}
    if not is_worker and any(len({task.stage for task in choice}) > 1 for choice in choices.values()):
        choices = _narrowed(moments, _by_span(moments, choices, tasks, spans), tasks)
    for number, choice in choices.items():
        stages = {task.stage for task in choice}
        if len(stages) == 1:
            yield number, stages.pop()


def _by_span(
    moments: Sequence[_Moment], choices: Mapping[int, set[TaskRun]], tasks: Sequence[TaskRun], spans: Sequence[Span]
) -> dict[int, set[TaskRun]]:
    """The tasks that samples may be of, less those that do not fit the time in which the thread was busy."""
    numbers = defaultdict[Span, list[_Moment]](list)
    for moment, span in zip(moments, spans_of(spans, [(each.thread, each.at) for each in moments]), strict=True):
        if span is not None:
            numbers[span].append(moment)
    found = {number: {*choice} for number, choice in choices.items()}
    times = {span: [moment.at for moment in each] for span, each in numbers.items()}
    for span, chain in matched(times, tasks).items():
        for moment in numbers[span]:
            fitting = {task for task in choices[moment.number] if task.stage == chain.stage_at(moment.at)}
            found[moment.number] = fitting & {*chain.tasks} or fitting or found[moment.number]
    return found


def _running(moments: Sequence[_Moment], tasks: Sequence[TaskRun]) -> Iterator[tuple[_Moment, set[TaskRun]]]:
    """The tasks that ran at each moment and may be of its thread."""
    active, begun = set[TaskRun](), 0
    for moment in moments:
        while begun < len(tasks) and tasks[begun].launched - SLACK_MS <= moment.at:
            active.add(tasks[begun])
            begun += 1
        active = {task for task in active if task.finished + SLACK_MS >= moment.at}
        yield moment, {task for task in active if not (moment.kind and task.kind) or task.kind == moment.kind}


def _narrowed(
    moments: Sequence[_Moment], choices: Mapping[int, set[TaskRun]], tasks: Sequence[TaskRun]
) -> dict[int, set[TaskRun]]:
    """What remains of the tasks that samples may be of; those of tasks about which samples contradict each other stay.

    They do where clocks are apart: of a sample, no task remains.
    """
    narrowed = {number: {*choice} for number, choice in choices.items()}
    _Exclusion(moments, narrowed, tasks).run()
    doubtful = {task for number, choice in narrowed.items() if not choice for task in choices[number]}
    return {number: choices[number] if choices[number] & doubtful else choice for number, choice in narrowed.items()}


class _Exclusion:
    """Narrows the tasks that samples of threads may be of, until nothing follows any more.

    Within the time of a task, either all samples of a thread are of it or none is.
    """

    def __init__(
        self, moments: Sequence[_Moment], choices: Mapping[int, set[TaskRun]], tasks: Sequence[TaskRun]
    ) -> None:
        """Takes the samples with the tasks that ran then, whose sets it narrows."""
        self._choices = choices
        self._thread_of = {moment.number: moment.thread for moment in moments}
        self._numbers = defaultdict[tuple[_Thread, TaskRun], list[int]](list)
        self._threads = defaultdict[TaskRun, set[_Thread]](set)
        for moment in moments:
            for task in choices[moment.number]:
                self._numbers[moment.thread, task].append(moment.number)
                self._threads[task].add(moment.thread)
        self._beside = _beside(tasks)

    def run(self) -> None:
        """Narrows."""
        decided = set[tuple[_Thread, TaskRun]]()
        sole = [number for number, choice in self._choices.items() if len(choice) == 1]
        while sole:
            number = sole.pop()
            for task in [*self._choices[number]]:
                pair = self._thread_of[number], task
                if pair not in decided:
                    decided.add(pair)
                    sole += self._decide(*pair)

    def _decide(self, thread: _Thread, task: TaskRun) -> Iterator[int]:
        """A thread ran a task: no other did, and it ran none beside. Gives the samples that one task is left for."""
        for other in self._threads[task] - {thread}:
            yield from self._exclude(other, task)
        for beside in self._beside[task]:
            yield from self._exclude(thread, beside)

    def _exclude(self, thread: _Thread, task: TaskRun) -> Iterator[int]:
        for number in self._numbers.pop((thread, task), ()):
            choice = self._choices[number]
            choice.discard(task)
            if len(choice) == 1:
                yield number


def _beside(tasks: Sequence[TaskRun]) -> Mapping[TaskRun, list[TaskRun]]:
    """The tasks that ran at the same time as each, of tasks by their launch."""
    found, active = defaultdict[TaskRun, list[TaskRun]](list), list[TaskRun]()
    for task in tasks:
        active = [each for each in active if each.finished > task.launched + SLACK_MS]
        for each in active:
            if task.finished > task.launched + SLACK_MS:
                found[each].append(task)
                found[task].append(each)
        active.append(task)
    return found
