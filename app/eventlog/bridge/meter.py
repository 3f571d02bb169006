"""Counts the events of one application as they come."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from app.eventlog import events, identity
from app.eventlog.application import Application
from app.eventlog.bridge.histograms import DURATION, EXEMPLAR_MS, OF_METERED, PYTHON, Exemplar, Measure
from app.eventlog.bridge.metrics import OTHER, Aggregate, Numbers, merged
from app.eventlog.events import Event, TaskEnd
from app.eventlog.findings import Finding
from app.eventlog.groups import group_of
from app.eventlog.losses import is_lost, kind_of
from app.eventlog.parts import StageInfo, counted
from app.telemetry import spark_names as names
from app.telemetry.names import Metric

WAITING: Final = 500
"""Tasks of a stage that are counted together: 3 times as fast as one by one."""
PYTHON_WORKERS: Final = "time to run Python workers"
"""What Spark calls this number of an operator (`PythonSQLMetrics`): milliseconds, over all stages so far."""
LATE: Final = 200
"""How many stages that have ended are remembered: tasks that were killed with a stage end after it."""
UNNAMED: Final = "unknown"


@dataclass(slots=True)
class _Stage:
    group: str
    span: tuple[int, str] | None
    waiting: list[TaskEnd] = field(default_factory=list)


class Meter:
    """The totals of one log; takes each event after `Application.take` took it."""

    def __init__(self, app: Application) -> None:
        """Nothing is counted yet."""
        self._app = app
        self._numbers = Numbers()
        self._unknown = _Stage(OTHER, None)
        self._stages: dict[tuple[int, int], _Stage] = {}
        self._ended: deque[tuple[int, int]] = deque()
        self._python: dict[int, int] = {}
        self._is_over = False
        self._take: dict[type, Callable[[Any], None]] = {
            events.TaskEnd: self._task_end,
            events.StageSubmitted: self._stage_submitted,
            events.StageCompleted: self._stage_completed,
            events.JobEnd: self._job_end,
            events.ExecutorAdded: self._executor_added,
            events.ExecutorRemoved: self._executor_removed,
            events.ApplicationEnd: self._application_end,
        }

    def take(self, event: Event) -> None:
        """Counts one event."""
        take = self._take.get(type(event))
        if take:
            take(event)

    def found(self, findings: Iterable[Finding]) -> None:
        """Counts findings."""
        self._numbers.found(findings)

    def stop(self) -> None:
        """The application is over, even if its log has no end: nothing of it is at work."""
        self._is_over = True

    def aggregate(self) -> Aggregate:
        """What was counted so far; later events do not change it."""
        for stage in (self._unknown, *self._stages.values()):
            self._count(stage)
        self._numbers.levels = {metric.name: level for metric, level in self._levels()}
        return merged([Aggregate({self._app.name or UNNAMED: self._numbers})])

    def _levels(self) -> Iterator[tuple[Metric, int]]:
        """What is at work now: 0 when the application is over, absent where the log does not say."""
        known = self._app.executors.values()
        there = [] if self._is_over else [executor for executor in known if executor.removed is None]
        yield names.TASKS_ACTIVE, 0 if self._is_over else max(0, self._app.running)
        yield names.EXECUTORS_ACTIVE, len(there)
        yield names.CORES_ACTIVE, sum(executor.cores for executor in there)
        if any(executor.stored is not None for executor in known):
            yield names.STORAGE, sum(executor.stored or 0 for executor in there)

    def _task_end(self, event: TaskEnd) -> None:
        stage = self._stages.get((event.stage, event.stage_attempt), self._unknown)
        stage.waiting.append(event)
        if len(stage.waiting) >= WAITING:
            self._count(stage)

    def _stage_submitted(self, event: events.StageSubmitted) -> None:
        key = (event.info.id, event.info.attempt)
        attempt = self._app.stages[key]
        place = identity.of_stage(self._app, attempt)
        span = (place.span_id, f"{place.trace_id:032x}") if place.is_sampled else None
        self._stages[key] = _Stage(group_of(self._app, attempt), span)
        for metric in (names.TASKS_FAILED_COUNT, names.STAGES_FAILED):
            self._numbers.group(self._stages[key].group).count(metric, 0)

    def _stage_completed(self, event: events.StageCompleted) -> None:
        key = (event.info.id, event.info.attempt)
        stage = self._stages.get(key, self._unknown)
        self._count(stage)
        self._count_python(stage, event.info)
        self._numbers.group(stage.group).count(names.STAGES_FAILED, int(event.info.failure is not None))
        self._ended.append(key)
        if len(self._ended) > LATE:
            self._forget(self._ended.popleft())

    def _forget(self, key: tuple[int, int]) -> None:
        stage = self._stages.pop(key, None)
        if stage is not None:
            self._count(stage)

    def _job_end(self, event: events.JobEnd) -> None:
        self._numbers.count(names.JOBS_FAILED, more=int(event.result.result != "JobSucceeded"))

    def _executor_added(self, event: events.ExecutorAdded) -> None:
        self._numbers.count(names.EXECUTORS_ADDED)

    def _executor_removed(self, event: events.ExecutorRemoved) -> None:
        executor = self._app.executors.get(event.id)
        if executor is not None and is_lost(self._app, executor):
            self._numbers.count(names.EXECUTORS_LOST, kind_of(event.reason))

    def _application_end(self, event: events.ApplicationEnd) -> None:
        self.stop()

    def _count(self, stage: _Stage) -> None:
        """Adds the tasks of a stage that wait to be counted."""
        if not stage.waiting:
            return
        tasks, stage.waiting = stage.waiting, []
        self._fill(stage, DURATION, [task.info.finished - task.info.launched for task in tasks], tasks)
        metered = [task for task in tasks if task.metrics is not None]
        told = [(task.info, task.metrics) for task in metered if task.metrics is not None]
        for measure, values in OF_METERED:
            self._fill(stage, measure, values(told), metered)
        failed = sum(task.info.has_failed for task in tasks)
        self._numbers.group(stage.group).count(names.TASKS_FAILED_COUNT, failed)

    def _count_python(self, stage: _Stage, info: StageInfo) -> None:
        """Adds the time that a stage spent in Python: the growth of Spark's sums since the stage before."""
        told = counted([number for number in info.accumulables if number.name == PYTHON_WORKERS])
        if not told:
            return
        spent = sum(milliseconds - self._python.get(number, 0) for number, milliseconds in told.items())
        self._python = dict(islice((self._python | told).items(), max(0, len(self._python) - LATE), None))
        self._add(stage, PYTHON, PYTHON.values([spent]), at=info.completed)

    def _fill(self, stage: _Stage, measure: Measure, values: list[int], tasks: list[TaskEnd]) -> None:
        """Adds values of tasks to one histogram; the largest of them becomes its exemplar."""
        ordered = measure.values(values)
        if ordered:
            self._add(stage, measure, ordered, at=tasks[values.index(ordered[-1])].info.finished)

    def _add(self, stage: _Stage, measure: Measure, ordered: list[int], *, at: int | None) -> None:
        """Adds values, least first; the largest becomes the exemplar if its time is known."""
        if not ordered:
            return
        histogram = self._numbers.group(stage.group).histogram(measure)
        histogram.add(ordered, measure.bounds)
        if stage.span is not None and at is not None:
            histogram.saw(Exemplar(at // EXEMPLAR_MS, ordered[-1], at, *stage.span))
