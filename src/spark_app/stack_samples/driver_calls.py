"""Which line of the program waited for the JVM of the driver when that was sampled: what made Spark plan.

Python calls the JVM by Py4J, and waits for the answer. Where one thread of the program does so at the time of a sample
of the JVM, its innermost line of the program is the caller. Where several do, that is not known.
"""

from bisect import bisect_right
from collections import defaultdict
from typing import Final

from spark_app.stack_samples.samples import Frame, Sample, StackSamples

_PY4J: Final = "py4j/"


class DriverCalls:
    """The calls of the program to the JVM of its driver."""

    def __init__(self, samples: StackSamples) -> None:
        """Collects the times in which threads of the driver's Python wait for the JVM."""
        self._frames = samples.frames
        callers = [self._caller(stack) for stack in samples.stacks]
        self._calls = defaultdict[tuple[int, int], list[tuple[float, float, Frame]]](list)
        for sample in samples.samples:
            caller, process = callers[sample.stack], samples.processes[sample.process]
            if caller is not None and process.role == "python_driver":
                # It waits since the look before, and one sample stands for the looks that follow.
                began, ended = sample.at_ms - process.interval_ms, sample.at_ms + sample.weight * process.interval_ms
                self._calls[sample.process, sample.thread].append((began, ended, caller))
        for calls in self._calls.values():
            calls.sort(key=lambda call: call[0])

    def line_of(self, sample: Sample) -> str:
        """The function and line that had called the JVM, `main (job.py:12)`; empty if none or several had."""
        waiting = [call for calls in self._calls.values() if (call := _at(calls, sample.at_ms)) is not None]
        return f"{waiting[0].function} ({waiting[0].file}:{waiting[0].line})" if len(waiting) == 1 else ""

    def _caller(self, stack: list[int]) -> Frame | None:
        """The program's innermost function of a stack that waits for the JVM."""
        frames = [self._frames[number] for number in stack]
        if not any(frame.language == "python" and frame.file.startswith(_PY4J) for frame in frames[-6:]):
            return None
        return next((frame for frame in reversed(frames) if frame.is_own), None)


def _at(calls: list[tuple[float, float, Frame]], moment: float) -> Frame | None:
    """The call of a thread at a moment."""
    number = bisect_right(calls, moment, key=lambda call: call[0]) - 1
    return calls[number][2] if number >= 0 and moment <= calls[number][1] else None
