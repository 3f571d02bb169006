"""Samples of stacks as profiles of OTLP: the time of threads on a processor, and that in which they waited.

Each observation names its span: that of its stage, or of the application where it is of no stage, or of one not known.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from spark_app.eventlog import span_ids
from spark_app.eventlog.model.application import Application
from spark_app.stack_samples import attribution
from spark_app.stack_samples.activity import WAITING, Activities
from spark_app.stack_samples.attribution import Place
from spark_app.stack_samples.samples import Frame, Process, StackSamples
from spark_app.stack_samples.stack_profile import ROOTS, is_idle, scaled
from spark_app.stack_samples.task_runs import TaskRun
from spark_app.telemetry import spark_names
from spark_app.telemetry.profiles import (
    Attributes,
    FrameType,
    Observations,
    Origin,
    Profile,
    ProfileFrame,
    SpanLink,
    Stack,
    Unit,
)

CPU: Final[Unit] = ("cpu", "nanoseconds")
OFF_CPU: Final[Unit] = ("off_cpu", "nanoseconds")
_NANOSECONDS: Final = 1_000_000
"""Of a millisecond."""
_Frame = tuple[FrameType, str, str, int]
_Kind = tuple[Unit, float]
"""What is observed, and the time between two samples of a thread in milliseconds."""


def profiles(taken: StackSamples, tasks: Sequence[TaskRun], app: Application) -> Iterator[Profile]:
    """The samples that reports show, with the same times, as a profile of processors and one of waits.

    Args:
        taken: All samples.
        tasks: The task attempts of the application.
        app: The application.
    """
    stacks, activities = _stacks(taken), Activities(taken)
    kinds: defaultdict[_Kind, defaultdict[Origin, Observations]] = defaultdict(lambda: defaultdict(Observations))
    link, places = cache(lambda place: _link(app, place)), attribution.places(taken, tasks)
    factors, _ = scaled(taken, places, tasks, activities)
    for sample, place in zip(taken.samples, places, strict=True):
        activity, process = activities.of(sample), taken.processes[sample.process]
        if activity in ROOTS and not is_idle(place, activity):
            origin = Origin(stacks[sample.stack], link(place), _attributes(place, process))
            kind = OFF_CPU if activity in WAITING else CPU, process.interval_ms
            factor = factors.get(place, 1.0) if activity == "jvm" else 1.0
            observations = kinds[kind][origin]
            observations.times.append(sample.at_ms * _NANOSECONDS)
            observations.values.append(round(sample.weight * process.interval_ms * factor * _NANOSECONDS))
    for (unit, interval_ms), found in sorted(kinds.items(), key=lambda item: item[0]):
        key = "\0".join(map(str, (app.id, app.attempt, "profile", *unit, interval_ms)))
        yield Profile(key, unit, found, unit, round(interval_ms * _NANOSECONDS))


def _stacks(taken: StackSamples) -> list[Stack]:
    """Every stack, its innermost function first, as OTLP has it; those with the same functions are one."""
    known_frames, known_stacks = dict[_Frame, ProfileFrame](), dict[tuple[ProfileFrame, ...], Stack]()
    frames = [known_frames.setdefault(each, ProfileFrame(*each)) for each in map(_frame, taken.frames)]
    stacks = (tuple(frames[number] for number in reversed(stack)) for stack in taken.stacks)
    return [known_stacks.setdefault(each, Stack(each)) for each in stacks]


def _frame(frame: Frame) -> _Frame:
    type_: FrameType = "cpython" if frame.language == "python" else "jvm"
    return type_, frame.function, frame.file, max(0, frame.line)


def _link(app: Application, place: Place) -> SpanLink | None:
    """The span of a stage or of the application; None where it is not exported."""
    if isinstance(place, str):
        ids = span_ids.of_application(app) if app.began is not None else None
    else:
        stage = app.stages.get(place)
        ids = span_ids.of_stage(app, stage) if stage is not None else None
    return SpanLink(ids.trace_id, ids.span_id) if ids is not None and ids.is_sampled else None


def _attributes(place: Place, process: Process) -> Attributes:
    stage, attempt = (None, None) if isinstance(place, str) else place
    known = {
        spark_names.HOST: process.host,
        spark_names.EXECUTOR_ID: process.executor,
        spark_names.STAGE_ID: stage,
        spark_names.STAGE_ATTEMPT: attempt,
    }
    return tuple((name.name, value) for name, value in known.items() if value is not None)
