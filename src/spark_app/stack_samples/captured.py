"""What was sampled of the processes of a command, and the samples of one of its applications."""

import re
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from spark_app.stack_samples import flight_recordings, python_stacks
from spark_app.stack_samples.flight_recordings import (
    MONITOR,
    PARK,
    THREAD_START,
    WAITS,
    JavaFrame,
    JavaSample,
    Recording,
)
from spark_app.stack_samples.python_stacks import Names, PythonProcess, PythonSample
from spark_app.stack_samples.samples import Frame, Process, Sample, Span, StackSamples, State

TASK: Final = "org.apache.spark.executor.Executor$TaskRunner"
NATIVE: Final = "jdk.NativeMethodSample"
BY_WALL_CLOCK: Final = ("jdk.ExecutionSample", NATIVE)
BY_CPU: Final = "jdk.CPUTimeSample"
OF_THREADS: Final[dict[str, dict[str, str]]] = {
    **{name: {"enabled": "true", "threshold": "10ms"} for name in WAITS},
    PARK: {"enabled": "true", "threshold": "1ms"},
    THREAD_START: {"enabled": "true"},
}
"""Settings of the events that tell when threads wait, at a lock or for their next task. A shorter wait is not noted:
that of a thread for its next task takes some milliseconds, and what is noted takes a microsecond."""
LOCKS: Final = ("java.util.concurrent.locks.ReentrantLock", "java.util.concurrent.locks.ReentrantReadWriteLock")
POOL: Final = ("java.util.concurrent.ThreadPoolExecutor", "getTask")
"""Where a thread of a pool is that waits for its next task."""
DRIVER: Final = "driver"
POLL_SECONDS: Final = 0.1
FLUSHED_SECONDS: Final = 2.5
"""A JVM that runs writes its recording each second."""
JAVA: Final = "java"
"""Recordings of JVMs that have ended."""
RUNNING: Final = "repository"
"""Recordings of JVMs that run, or were killed."""
PYTHON: Final = "python"
"""Files of Python processes."""
EXECUTORS: Final = "executors"
"""A folder for each executor, with both kinds of recordings."""
DUMPED: Final = re.compile(r"hotspot-pid-(\d+)-")
"""Begins the name of the recording of a JVM that has ended, as Java names it."""
REPOSITORY: Final = re.compile(r"_(\d+)$")
OF_EXECUTOR: Final = re.compile(r"--executor-id (\S+)")
OF_APPLICATION: Final = re.compile(r"--app-id (\S+)")
GENERATED: Final = re.compile(
    r"(?:(\$\$Lambda|LambdaForm\$[A-Z]+|GeneratedConstructorAccessor|GeneratedMethodAccessor).*"
    r"|(?:\$\d+)?[+/.](?:0x[0-9a-f]{6,}|\d{6,})(?:\.\d+)?)$"
)
"""What the JVM adds to the name of a class that it makes, and numbers anew in each run."""


@dataclass(slots=True)
class Captured:
    """The samples of all processes.

    Attributes:
        java: Recordings of JVMs of this machine, by their process.
        python: The Python processes.
        unread: Which recordings could not be read.
        executors: Recordings of executors, which may be on other hosts where another has the same process id.
    """

    java: dict[int, Recording] = field(default_factory=dict)
    python: list[PythonProcess] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    executors: list[tuple[int, Recording]] = field(default_factory=list)

    def of(self, jvm: int, app: str | None, begin: float, end: float, *, interval_ms: float) -> StackSamples:
        """The samples of one application.

        Args:
            jvm: The process of its driver.
            app: Its id.
            begin: Its start in milliseconds since the epoch; a program may have one session after another.
            end: The start of the next session.
            interval_ms: The time between two samples that was set.
        """
        found, executors = _Builder(begin, end, interval_ms), {jvm: DRIVER, **self._executors(app)}
        of = next((each for each in self.python if each.role == "python_driver" and each.jvm_of_launch == jvm), None)
        found.names = Names(of.folder, of.program_folder, of.path) if of else None
        here = (each for each in self.python if each.executor is None and each.jvm_of_launch in executors)
        host = next((each.host for each in here), "")
        for pid, executor in executors.items():
            if pid in self.java:
                found.add_java(pid, executor, self.java[pid], host)
        hosts = {each.executor: each.host for each in self.python if each.executor is not None}
        for pid, recording in self.executors:
            if (who := executor_of(recording.arguments)) is not None and who[0] == app:
                found.add_java(pid, who[1], recording, hosts.get(who, ""))
        for process in self.python:
            if process.executor is not None and process.executor[0] == app:
                found.add_python(process, process.executor[1])
            elif process.executor is None and process.jvm_of_launch in executors:
                is_driver = process.role == "python_driver"
                found.add_python(process, None if is_driver else executors[process.jvm_of_launch])
        return found.samples

    def _executors(self, app: str | None) -> dict[int, str]:
        """The processes of the executors of an application, with their ids."""
        found = {}
        for pid, recording in self.java.items():
            of = executor_of(recording.arguments)
            if of is not None and of[0] == app:
                found[pid] = of[1]
        return found


def executor_of(arguments: str) -> tuple[str, str] | None:
    """The application and the id of the executor that a JVM is, by the arguments of its main class."""
    app, executor = OF_APPLICATION.search(arguments), OF_EXECUTOR.search(arguments)
    return (app[1], executor[1]) if app and executor else None


def make_folders(folder: Path, *, mode: int = 0o700) -> None:
    """Makes what processes write to, which may be those of other users."""
    for each in (folder, *(folder / name for name in (JAVA, RUNNING, PYTHON, EXECUTORS))):
        each.mkdir(parents=True)
        each.chmod(mode)


def read_folder(folder: Path, *, patience: float = 0) -> Captured:
    """Reads what processes have written to a folder of `make_folders`.

    Args:
        folder: The folder.
        patience: Seconds that executors may take to end.
    """
    deadline = time.monotonic() + patience
    while _is_recording(folder / EXECUTORS) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    found = read(folder / JAVA, folder / RUNNING, folder / PYTHON)
    for executor in sorted((folder / EXECUTORS).glob("*/")):
        of_executor = Captured(unread=found.unread)
        _read_jvms(executor, executor, of_executor)
        found.executors += of_executor.java.items()
    return found


def _is_recording(executors: Path) -> bool:
    """Whether an executor has written lately: Java removes what it has when it has ended, but not if it is killed."""
    for file in executors.glob("*/*/*.jfr"):
        with suppress(OSError):
            if file.stat().st_mtime > time.time() - FLUSHED_SECONDS:
                return True
    return False


def read(java: Path, repository: Path, python: Path) -> Captured:
    """Reads what the processes of a command have written.

    Args:
        java: The folder of the recordings of JVMs that have ended.
        repository: The folder of those of JVMs that run, or were killed.
        python: The folder of the files of Python processes.
    """
    found = Captured()
    _read_jvms(java, repository, found)
    read_files = (python_stacks.read(file) for file in sorted(python.glob(f"*{python_stacks.SUFFIX}")))
    found.python = [process for process in read_files if process is not None]
    return found


def _read_jvms(java: Path, repository: Path, found: Captured) -> None:
    for file in sorted(java.glob("*.jfr")):
        if file.stat().st_size and (name := DUMPED.search(file.name)) is not None:
            _read_java(file, int(name[1]), found)
    for folder in sorted(repository.glob("*/")):
        name = REPOSITORY.search(folder.name)
        if name is not None and int(name[1]) not in found.java:
            for file in sorted(folder.glob("*.jfr")):
                _read_java(file, int(name[1]), found)


def _read_java(file: Path, pid: int, found: Captured) -> None:
    recording = found.java.setdefault(pid, Recording())
    try:
        flight_recordings.read(file.read_bytes(), recording)
    except (OSError, ValueError) as error:
        found.unread.append(f"process {pid}: {error}")


class _Builder:
    """Puts the samples of processes together, each frame and stack once."""

    def __init__(self, begin: float, end: float, interval_ms: float) -> None:
        self.samples = StackSamples([], [], [], [])
        self.names: Names | None = None
        self._begin, self._end, self._interval = begin, end, interval_ms
        self._frames: dict[Frame, int] = {}
        self._stacks: dict[tuple[int, ...], int] = {}

    def add_java(self, pid: int, executor: str, recording: Recording, host: str) -> None:
        """Adds the samples of a JVM: all that run, and those in native methods that are of a task."""
        process = Process(
            "driver" if executor == DRIVER else "executor",
            executor,
            host,
            pid,
            self._interval,
            recording.started_ms,
            recording.ended_ms,
            is_of_cpu=any(each.event == BY_CPU for each in recording.samples),
        )
        index = len(self.samples.processes)
        of_task: dict[tuple[JavaFrame, ...], bool] = {}
        known: dict[tuple[JavaFrame, ...], int] = {}
        for each in recording.samples:
            stack = each.frames
            if stack not in of_task:
                of_task[stack] = any(frame.type == TASK for frame in stack)
            if not self._is_in_time(each) or (each.event == NATIVE and not of_task[stack]):
                continue
            if process.is_of_cpu and each.event != BY_CPU:
                continue  # it would count twice
            if stack not in known:
                known[stack] = self._stack([_java_frame(frame) for frame in stack])
            state: State = "native" if each.event == NATIVE else "running"
            self.samples.samples.append(Sample(each.at_ms, index, each.thread, known[stack], state))
        self._add_waits(recording, index)
        self.samples.spans += self._spans(recording, index)
        self.samples.processes.append(process)

    def _add_waits(self, recording: Recording, process: int) -> None:
        """Adds the waits of tasks that Java has noted, each as the samples that would have seen it."""
        for each in recording.waits:
            if self._is_in_time(each) and any(frame.type == TASK for frame in each.frames):
                stack = self._stack([_java_frame(frame) for frame in each.frames])
                is_locked = each.event == MONITOR or any(frame.type.startswith(LOCKS) for frame in each.frames[-6:])
                state: State = "locked" if is_locked else "waiting"
                weight = round(each.duration_ms / self._interval, 3)
                self.samples.samples.append(Sample(each.at_ms, process, each.thread, stack, state, weight=weight))

    def _spans(self, recording: Recording, process: int) -> Iterator[Span]:
        """The times between which threads that ran tasks waited for their next one."""
        ran = {each.thread for each in recording.samples if any(frame.type == TASK for frame in each.frames)}
        pauses = defaultdict[int, list[tuple[float, float]]](list)
        for each in recording.waits:
            if each.thread in ran and any((frame.type, frame.method) == POOL for frame in each.frames):
                pauses[each.thread].append((each.began_ms, each.began_ms + each.duration_ms))
        for thread in sorted(ran):
            began = recording.threads.get(thread)
            for pause, end in sorted(pauses[thread]):
                if began is not None and self._begin <= pause and began < self._end:
                    yield Span(process, thread, round(began, 1), round(pause, 1))
                began = end
            if began is not None and began < self._end:
                yield Span(process, thread, round(began, 1), None)

    def add_python(self, process: PythonProcess, executor: str | None) -> None:
        """Adds the samples of a Python process."""
        names = self.names or Names(process.folder, process.program_folder, process.path)
        frames = [names.frame(*each) for each in process.frames]
        stacks = [self._stack([frames[index] for index in stack]) for stack in process.stacks]
        number, kept = len(self.samples.processes), [each for each in process.samples if self._is_in_time(each)]
        if not kept and executor is not None:  # it served another session
            return
        self.samples.samples += [
            Sample(each.at_ms, number, each.thread, stacks[each.stack], each.state, each.task, each.weight)
            for each in kept
        ]
        ended = max((each.at_ms for each in process.samples), default=process.started_ms)
        self.samples.processes.append(
            Process(
                process.role,
                executor,
                process.host,
                process.pid,
                process.interval_ms,
                process.started_ms,
                ended,
                is_cut=process.is_cut,
            )
        )

    def _is_in_time(self, sample: JavaSample | PythonSample) -> bool:
        return self._begin <= sample.at_ms < self._end

    def _stack(self, frames: list[Frame]) -> int:
        indices = tuple(self._frame(each) for each in frames)
        if indices not in self._stacks:
            self._stacks[indices] = len(self._stacks)
            self.samples.stacks.append(list(indices))
        return self._stacks[indices]

    def _frame(self, frame: Frame) -> int:
        if frame not in self._frames:
            self._frames[frame] = len(self._frames)
            self.samples.frames.append(frame)
        return self._frames[frame]


def _java_frame(frame: JavaFrame) -> Frame:
    """A recording names no files; a class has the same name in each run."""
    name = GENERATED.sub(lambda found: found[1] or "", frame.type)
    return Frame("java", f"{name}.{frame.method}", "", frame.line)
