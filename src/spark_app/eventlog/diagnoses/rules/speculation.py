"""Copies of tasks that Spark took for slow (`spark.speculation`), and that ended after the tasks that they copied."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate, pairwise
from typing import Final

from spark_app.eventlog.diagnoses.rule import rule
from spark_app.eventlog.diagnoses.stage import duration_ms, stage_name
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.model.occupancy import Span, levels
from spark_app.eventlog.parse.events import TaskEnd
from spark_app.formatting import count, duration, quantity, share
from spark_app.redaction import excerpt

_SETTINGS: Final = ("spark.speculation.multiplier", "spark.speculation.quantile", "spark.speculation.minTaskRuntime")


@rule(adds=("copies", "lost_copies", "lost_copies_ms", "waited_ms"))
def speculation(app: Application, _limits: Thresholds) -> list[Finding]:
    """Copies of tasks that Spark took for slow (`spark.speculation`), and that ended after the tasks that they copied.

    Evidence: how many tasks were copied, and how many of the copies were killed because the task itself had ended; the
        time of these, its share of the time of all tasks of the stage, and how long tasks of other stages waited for a
        core meanwhile.
    Why: a copy of a task that is not slow but has more to do takes a core from others and saves nothing.
    Change: a higher `spark.speculation.multiplier`, `spark.speculation.quantile` or
        `spark.speculation.minTaskRuntime`, so that only far slower tasks are copied; tasks of the same size, as for
        `partition_skew`; or `spark.speculation=false`.
    Threshold: only the cost.
    Cost: the time of these copies (of 50 attempts of a stage at most) in which another stage had been submitted and not
        all of its tasks had begun, divided by the mean number of running tasks. Copies on cores that nobody else waits
        for cost nothing. At least it is that time without the core time that was idle while tasks ran, since what
        waited may have ended in time all the same; at most all time of these copies. What the copies that were faster
        saved is not in the log, and not subtracted.
    """
    lost = {key: copies for key, stage in app.stages.items() if (copies := _lost_copies(stage))}
    if not lost:
        return []
    waiting = _time_within(filter(None, map(_waiting, app.stages.values())))
    waits = {key: sum(waiting(copy.info.finished) - waiting(copy.info.launched) for copy in lost[key]) for key in lost}
    idle_ms = max(0.0, app.usage.busy_ms * (app.slots or 0) - app.usage.task_ms)
    sure = max(0.0, 1 - idle_ms / sum(waits.values())) if any(waits.values()) else 0.0
    return [_finding(app, app.stages[key], copies, waits[key], sure) for key, copies in lost.items()]


def _finding(app: Application, stage: StageAttempt, copies: list[TaskEnd], waited_ms: float, sure: float) -> Finding:
    """What is found about the copies of a stage.

    `sure` is the share of what others waited that idle cores cannot have made up for.
    """
    lost_ms, info, job = float(sum(map(duration_ms, copies))), stage.info, app.job_of(stage)
    name = stage_name(app, info, stage.properties)
    part = share(lost_ms / sum(stage.durations_ms))
    text = (
        f"{name[:1].upper()}{name[1:]}: Spark copied {quantity(stage.speculative, 'task')} that it took for slow, and "
        f"killed {count(len(copies))} of the copies because the task itself ended first; they took "
        f"{duration(lost_ms)}, {part} of the task time of the stage, and in {duration(waited_ms)} of that tasks of "
        "other stages waited for a core"
    )
    usage = app.usage
    return Finding(
        "speculation",
        "warning",
        text,
        _advice(app),
        {"copies": stage.speculative, "lost_copies": len(copies), "lost_copies_ms": lost_ms, "waited_ms": waited_ms},
        usage.wall_of(waited_ms),
        stage=(info.id, info.attempt),
        query=None if job is None else job.query,
    ).within((usage.wall_of(waited_ms * sure) or 0.0, usage.wall_of(lost_ms) or 0.0))


def _lost_copies(stage: StageAttempt) -> list[TaskEnd]:
    """The copies that were killed because the task itself had ended; those of a stage that failed ended with it."""
    if stage.info.failure is not None or not stage.speculative:
        return []
    return [task for task in stage.kept if task.info.is_speculative and task.info.was_killed]


def _waiting(stage: StageAttempt) -> Span | None:
    """When a stage had tasks that had not begun; later attempts of a task do not count."""
    again = {task.info.launched for task in stage.kept if task.info.attempt}
    last = max((launched for launched in stage.launched if launched not in again), default=None)
    return None if last is None or stage.info.submitted is None else (stage.info.submitted, last, 1)


def _time_within(spans: Iterable[Span]) -> Callable[[float], float]:
    """How long any of some spans lasted until an instant."""
    known = list(spans)
    period = min((since for since, _, _ in known), default=0), max((until for _, until, _ in known), default=0)
    instants, (numbers,) = levels(period, known)
    parts = zip(pairwise(instants), numbers, strict=True)
    sums = list(accumulate(((until - since) * (number > 0) for (since, until), number in parts), initial=0.0))

    def until(instant: float) -> float:
        index = bisect_right(instants, instant) - 1
        if index < 0 or index >= len(numbers):
            return 0.0 if index < 0 else sums[-1]
        return sums[index] + (instant - instants[index]) * (numbers[index] > 0)

    return until


def _advice(app: Application) -> str:
    """What makes Spark copy fewer tasks."""
    values = (f"{name} ({_value(app, name)})" for name in _SETTINGS)
    return (
        f"Let Spark copy only tasks that are far slower than the others: raise {', '.join(values)}. Copies do not help "
        "tasks that have more to do: make tasks of the same size (more partitions, another key), or set "
        "spark.speculation=false."
    )


def _value(app: Application, name: str) -> str:
    return f"now {excerpt(app.properties[name], 40)}" if name in app.properties else "not set"
