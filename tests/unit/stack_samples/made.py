"""Samples of stacks made by hand."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from spark_app.stack_samples import samples
from spark_app.stack_samples.samples import Frame, Language, Process, Role, Sample, Span, StackSamples, State
from spark_app.stack_samples.task_runs import TaskRun

TASK: Final = "org.apache.spark.executor.Executor$TaskRunner.run"
RESULT: Final = "org.apache.spark.scheduler.ResultTask.runTask"
MAP: Final = "org.apache.spark.scheduler.ShuffleMapTask.runTask"
PYTHON: Final = "org.apache.spark.api.python.BasePythonRunner$ReaderIterator.read"


@dataclass
class Taken:
    """Samples that are added one by one; Java functions are named `a.B.c`, Python ones `f@job.py:3`, own with `!`."""

    processes: list[Process] = field(default_factory=list)
    frames: dict[Frame, int] = field(default_factory=dict)
    stacks: dict[tuple[int, ...], int] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    def process(
        self, role: Role = "executor", executor: str | None = "1", *, interval_ms: float = 10.0, is_of_cpu: bool = False
    ) -> int:
        """A process begins to be sampled."""
        number = len(self.processes)
        self.processes.append(Process(role, executor, "h", number, interval_ms, 0, 9000, is_of_cpu=is_of_cpu))
        return len(self.processes) - 1

    def add(
        self,
        at: int,
        *stack: str,
        process: int = 0,
        thread: int = 1,
        state: State = "running",
        task: int | None = None,
        times: int = 1,
    ) -> None:
        """Takes some samples of a stack, a millisecond apart."""
        frames = tuple(self.frames.setdefault(frame_of(each), len(self.frames)) for each in stack)
        number = self.stacks.setdefault(frames, len(self.stacks))
        self.samples += [Sample(at + late, process, thread, number, state, task) for late in range(times)]

    def done(self) -> StackSamples:
        """All of them."""
        return StackSamples(
            self.processes, [*self.frames], [[*stack] for stack in self.stacks], self.samples, self.spans
        )


def frame_of(text: str) -> Frame:
    """The frame that a text names."""
    function, _, place = text.removesuffix("!").partition("@")
    file, _, line = place.partition(":")
    language: Language = "python" if place else "java"
    return Frame(language, function, file, int(line or 0), text.endswith("!"))


def run(number: int, stage: int, launched: int, finished: int, *, executor: str = "1", kind: str = "") -> TaskRun:
    """A task attempt of the first attempt of a stage."""
    return TaskRun(number, (stage, 0), executor, launched, finished, kind)


def beside(log: Path, *, executor: str = "0", task: int = 1, udf: int = 40) -> None:
    """Samples beside a log with stage 0: of a UDF in a task of an executor, and of a sort."""
    taken = Taken()
    taken.process(executor=executor, is_of_cpu=True)
    taken.process("python_worker", executor)
    taken.add(2210, TASK, "a.Sort.next", times=20)
    taken.add(2210, "main@worker.py:9", "score@job.py:3!", process=1, task=task, times=udf)
    samples.write(taken.done(), samples.file_of(log))
