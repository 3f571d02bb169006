"""Samples the stacks of the threads of this Python program, a driver or a worker of Spark, into a file.

A thread of the interpreter looks at `sys._current_frames()`. How long each thread has been on a processor since the
last look tells whether it ran, and how many samples it stands for: where a function of C holds the lock of the
interpreter (GIL), the look comes late, and the one sample that follows stands for all that were due. A thread that
gives the lock away itself, as each call that reads a file does, would be seen at such calls only: so this thread asks
for the lock at once, where the program has one thread that runs (docs/decisions/0035-stack-samples.md).

`spark-app observe --profile` loads a copy of this file into the programs of others. So it imports nothing of this
project, runs on Python 3.8 and later, and raises nothing. `spark_app.stack_samples.python_stacks` reads the files.
"""

from __future__ import annotations

import _thread
import functools
import json
import os
import socket
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

# As they are before a program, such as one with gevent's monkey patches, replaces them: the sampler would become a
# greenlet of the program, whose loop would never be empty.
_start_new_thread, _get_ident, _get_native_id = _thread.start_new_thread, _thread.get_ident, _thread.get_native_id
_sleep, _current_frames = time.sleep, sys._current_frames
FOLDER: Final = "SPARK_STACK_SAMPLES"
"""Names the folder of the files, one for each process."""
INTERVAL: Final = "SPARK_STACK_SAMPLES_MS"
"""Names the milliseconds between two samples."""
HOOK: Final = "SPARK_STACK_SAMPLES_HOOK"
"""Names the folder of the hook that starts this in workers, where executors are that do not inherit the environment."""
LAUNCH: Final = "SPARK_OBSERVED_LAUNCH"
"""Names the launch of `spark-app observe` that the process belongs to."""
MAX_BYTES: Final = 16 << 20
"""Size of a file; from half of it on, the interval grows."""
MAX_DEPTH: Final = 200
"""Frames of a stack, the innermost; more are of a recursion."""
RUNNING_SHARE: Final = 0.1
"""Of the time since the last look that a thread has been on a processor, from which on it runs."""
MERGED_NS: Final = 1_000_000_000
"""The time for which looks at a thread that waits at one place are one sample."""
SWITCH_SECONDS: Final = 5e-5
"""The time in seconds after which this thread asks for the interpreter's lock (`sys.setswitchinterval`)."""
LATE_NS: Final = 2_000_000
"""A look that comes so late has asked in vain: a function of C holds the lock, and asking costs a processor."""
MAX_PATIENT: Final = 64
"""Looks that do not ask soon after one that did so in vain; twice as many after each."""


def start_in_driver() -> None:
    """Samples this process from now on, also after it has become the driver of Spark."""
    with suppress(Exception):
        _start("python_driver", None)


def in_workers_of(context: Any) -> None:
    """Gives the variables to the workers of a driver's functions: to their own environment, not that of executors.

    Args:
        context: The class `SparkContext`.
    """
    initialize = context._do_init
    if not os.environ.get(HOOK):
        return

    @functools.wraps(initialize)
    def also_set(self: Any, *args: Any, **options: Any) -> Any:
        result = initialize(self, *args, **options)
        with suppress(Exception):
            give(self.environment, os.environ)
        return result

    context._do_init = also_set


def give(environment: dict[str, str], variables: Mapping[str, str]) -> None:
    """Adds the variables to the environment of workers, as far as they are set."""
    hook = variables.get(HOOK)
    if hook:
        path = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (hook, path)))
        environment.update({name: variables[name] for name in (FOLDER, INTERVAL)})


def start_in_workers(*, is_daemon: bool) -> None:
    """Samples this worker of Spark from now on, or those that this daemon forks, but none of their own children.

    Args:
        is_daemon: Whether this process is `pyspark.daemon`.
    """
    with suppress(Exception):
        if not is_daemon:
            _start("python_worker", os.getppid())
            return
        daemon, jvm = os.getpid(), os.getppid()

        def after_fork() -> None:
            with suppress(Exception):
                if os.getppid() == daemon:
                    _start("python_worker", jvm)

        os.register_at_fork(after_in_child=after_fork)


def _start(role: str, jvm: int | None) -> None:
    start(Sampler(os.environ[FOLDER], float(os.environ[INTERVAL]), role, jvm))


def start(sampler: Sampler) -> None:
    """Samples this process."""
    sampler.ask_soon()
    # A thread that `threading` does not know is in no program's list of threads, and no exit waits for it.
    _start_new_thread(sampler.run, ())


class Sampler:
    """Writes the samples of this process, until it ends or the file is full.

    Each line of the file is a JSON array that begins with its kind: `process` once, `frame`, `stack` (indices of
    frames, the outermost first), `sample`, `jvm` (the process id of the JVM that a driver has started), `executor` (of
    a worker, its application and id), `full`.

    Attributes:
        is_stopped: Set to end it.
    """

    def __init__(self, folder: str, interval_ms: float, role: str, jvm: int | None) -> None:
        """Opens the file."""
        self.is_stopped = False
        self._interval = self._nominal = round(interval_ms * 1_000_000)
        self._is_worker, self._jvm, self._bytes = role == "python_worker", jvm, 0
        self._main, self._main_native = _get_ident(), _get_native_id()
        self._frames: dict[tuple[str, str, int], int] = {}
        self._stacks: dict[tuple[int, ...], int] = {}
        self._cpu: dict[int, int] = {}
        self._owed: dict[int, int] = {}
        self._carried: dict[int, int] = {}
        self._waits: dict[int, tuple[int, int | None, int, int]] = {}
        self._given = self._set = sys.getswitchinterval()
        self._running, self._patient, self._penalty, self._queued = 0, 0, 1, 0
        self._lines: list[bytes] = []
        file = os.path.join(folder, f"{os.getpid()}-{time.time_ns()}.stacks")
        self._file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._write([
            "process", role, os.getpid(), jvm, socket.gethostname(), interval_ms, time.time_ns() // 1_000_000,
            os.environ.get(LAUNCH), os.getcwd(), sys.argv[0] if sys.argv else "", sys.path, sys.prefix,
        ])  # fmt: skip
        if jvm is not None:
            self._note_executor(jvm)
        self._flush()

    def run(self) -> None:
        """Looks at all threads, again and again."""
        own, before = _get_ident(), time.monotonic_ns()
        due = before + self._interval
        _wake_on_time()
        with suppress(Exception):
            while self._bytes < MAX_BYTES and not self.is_stopped:
                wait = due - time.monotonic_ns()
                if wait > 0:  # even a sleep of 0 s gives the lock away, and with it the place that a late look is for
                    _sleep(wait / 1e9)
                # Both at once: the program may get the lock back after each statement, and have it for long.
                at, frames = time.time_ns() // 1_000_000, _current_frames()
                has_asked_soon = self._has_asked_soon()
                stacks = {each: _stack_of(frame) for each, frame in frames.items() if each != own}
                del frames  # they hold the variables of the program
                now = time.monotonic_ns()
                passed = (1 + (now - due) // self._interval) * self._interval
                self._look(stacks, at, now - before, passed)
                self._learn(now - due, has_asked_soon=has_asked_soon)
                self.ask_soon(is_wanted=self._running <= 1 and self._patient <= 0)
                self._flush()
                before, due = now, due + passed
                if self._bytes > MAX_BYTES // 2:
                    self._interval = self._nominal * 2 ** (8 * self._bytes // MAX_BYTES - 3)
            if not self.is_stopped:
                self._write(["full"])
                self._flush()
        if self._has_asked_soon():
            sys.setswitchinterval(self._given)

    def ask_soon(self, *, is_wanted: bool = True) -> None:
        """Lets the next look ask for the lock at once, and not after some milliseconds as is usual."""
        sys.setswitchinterval(min(SWITCH_SECONDS, self._given) if is_wanted else self._given)
        self._set = sys.getswitchinterval()

    def _has_asked_soon(self) -> bool:
        """Whether this look has asked for the lock at once.

        The interval stays as it is until the end of the look: a thread that waits takes the lock away in the midst of
        it, and this one would get it back late.
        """
        if sys.getswitchinterval() != self._set:
            self._given = self._set = sys.getswitchinterval()  # the program has set it since
        return self._set != self._given

    def _learn(self, late_ns: int, *, has_asked_soon: bool) -> None:
        """Asks less often where asking is in vain: a function of C holds the lock, and asking costs a processor.

        A look that waited for a processor of a busy host was late for another reason.
        """
        if has_asked_soon:
            is_in_vain = late_ns > LATE_NS and late_ns - self._queued_ns() > LATE_NS
            self._penalty = min(2 * self._penalty, MAX_PATIENT) if is_in_vain else max(1, self._penalty // 2)
            self._patient = self._penalty if is_in_vain else 0
        else:
            self._patient -= 1

    def _queued_ns(self) -> int:
        """How long this thread was ready to run without a processor since the last call; 0 where Linux does not say."""
        before, path = self._queued, f"/proc/self/task/{_get_native_id()}/schedstat"
        with suppress(OSError, ValueError, IndexError), open(path, "rb", buffering=0) as file:
            self._queued = int(file.read().split()[1])
        return self._queued - before

    def _look(self, stacks: dict[int, list[tuple[str, str, int]]], at: int, elapsed: int, due: int) -> None:
        """Writes what the threads do.

        Args:
            stacks: The frames of each, the innermost first.
            at: When they were taken, in milliseconds since the epoch.
            elapsed: Nanoseconds since the last look.
            due: Nanoseconds that this look stands for: the intervals that have begun since the last one.
        """
        task, self._running = self._task(), 0
        if not self._is_worker or task is not None:
            for thread, stack in stacks.items():
                self._sample(thread, stack, task, at, elapsed, due)
        for thread in [each for each in self._cpu if each not in stacks]:
            self._end_wait(thread)
            for known in (self._cpu, self._owed, self._carried):
                known.pop(thread, None)
        if self._is_worker and task is None:
            for thread in list(self._waits):
                self._end_wait(thread)
            self._cpu = {thread: self._used(thread) or 0 for thread in stacks}
            self._owed.clear()
            self._carried.clear()
        elif self._jvm is None:
            self._note_jvm()

    def _sample(
        self, thread: int, frames: list[tuple[str, str, int]], task: int | None, at: int, elapsed: int, due: int
    ) -> None:
        """Writes a sample of a thread, or counts it to the one before where the thread still waits at its place.

        What a thread has used beyond what a late look stands for belongs to its next sample.
        """
        cpu = self._used(thread)
        if cpu is None:
            return
        used = cpu - self._cpu.get(thread, max(0, cpu - elapsed)) + self._owed.pop(thread, 0)
        self._cpu[thread] = cpu
        if used >= RUNNING_SHARE * elapsed:
            self._running += 1
            self._end_wait(thread)
            used += self._carried.get(thread, 0)
            self._carried[thread] = max(0, used - due)
            weight = round(min(used, due) / self._nominal, 3)
            self._write(["sample", at, thread, self._stack(frames), "running", task, weight])
            return
        self._owed[thread] = used
        stack = self._stack(frames)
        known = self._waits.get(thread)
        if known is not None and (known[0], known[1]) == (stack, task) and known[3] < MERGED_NS:
            self._waits[thread] = (stack, task, known[2], known[3] + due)
            return
        self._end_wait(thread)
        self._waits[thread] = (stack, task, at, due)

    def _end_wait(self, thread: int) -> None:
        known = self._waits.pop(thread, None)
        if known is not None:
            stack, task, at, waited = known
            self._write(["sample", at, thread, stack, "waiting", task, round(waited / self._nominal, 3)])

    def _stack(self, frames: list[tuple[str, str, int]]) -> int:
        """The index of a stack, which is written when it is new, as its frames are."""
        for frame in frames:
            if frame not in self._frames:
                self._frames[frame] = len(self._frames)
                self._write(["frame", *frame])
        stack = tuple(self._frames[frame] for frame in reversed(frames))
        known = self._stacks.get(stack)
        if known is None:
            known = self._stacks[stack] = len(self._stacks)
            self._write(["stack", *stack])
        return known

    def _used(self, thread: int) -> int | None:
        """Nanoseconds that a thread has been on a processor; None where that is not known."""
        number = self._main_native if thread == self._main else _native(thread)
        if number is None or not sys.platform.startswith("linux"):
            return None
        try:
            # The clock of a thread by its number (`make_thread_cpuclock` of Linux): it may have ended by now.
            return time.clock_gettime_ns((~number << 3) | 6)
        except OSError:
            return None

    def _task(self) -> int | None:
        """The task that a worker serves."""
        context = getattr(sys.modules.get("pyspark.taskcontext"), "TaskContext", None)
        return getattr(getattr(context, "_taskContext", None), "_taskAttemptId", None) if self._is_worker else None

    def _note_jvm(self) -> None:
        """Writes once which JVM this driver has started."""
        context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
        self._jvm = getattr(getattr(getattr(context, "_gateway", None), "proc", None), "pid", None)
        if self._jvm is not None:
            self._write(["jvm", self._jvm])

    def _note_executor(self, jvm: int) -> None:
        """Writes which executor the JVM of this worker is; one in the driver is none."""
        with suppress(OSError), open(f"/proc/{jvm}/cmdline", encoding="utf-8", errors="replace") as file:
            words = file.read().split("\0")
            if "--executor-id" in words and "--app-id" in words:
                app, executor = (words[words.index(option) + 1] for option in ("--app-id", "--executor-id"))
                self._write(["executor", app, executor])

    def _write(self, line: list[Any]) -> None:
        self._lines.append(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def _flush(self) -> None:
        """Writes the lines of a look in one call: each call gives the lock away, and may wait long to have it back.

        The next look comes at once then, and finds the function that had the lock.
        """
        content = b"".join(self._lines)
        self._lines.clear()
        self._bytes += len(content)
        if content:
            os.write(self._file, content)


def _stack_of(frame: FrameType | None) -> list[tuple[str, str, int]]:
    """The file, the function and the line of each frame, the innermost first."""
    found: list[tuple[str, str, int]] = []
    while frame is not None and len(found) < MAX_DEPTH:
        code = frame.f_code
        found.append((code.co_filename, getattr(code, "co_qualname", code.co_name), frame.f_lineno or 0))
        frame = frame.f_back
    return found


def _wake_on_time() -> None:
    """Lets Linux wake this thread within a nanosecond of a time that it waits for, not within 50 microseconds."""
    with suppress(OSError):
        file = os.open(f"/proc/{_get_native_id()}/timerslack_ns", os.O_WRONLY)
        try:
            os.write(file, b"1")
        finally:
            os.close(file)


def _native(thread: int) -> int | None:
    """The number that the operating system knows a thread by; None for one that `threading` does not know."""
    known = getattr(sys.modules.get("threading"), "_active", {}).get(thread)
    return getattr(known, "native_id", None)
