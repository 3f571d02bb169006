"""Counts the events of one application."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from statistics import median
from typing import Any, Final

from spark_app.eventlog import span_ids
from spark_app.eventlog.bridge.histograms import COUNTED, DURATION, EXEMPLAR_MS, Exemplar
from spark_app.eventlog.bridge.metrics import OTHER, Aggregate, Numbers, decoded, merged
from spark_app.eventlog.bridge.stream_metrics import StreamMetrics
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.labels import NO_LABELS, LabelSources
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import StageAttempt, totals_of
from spark_app.eventlog.model.executor_loss import is_lost, kind_of
from spark_app.eventlog.model.plan_names import PYTHON_TIME
from spark_app.eventlog.model.stage_groups import group_of
from spark_app.eventlog.parse import events
from spark_app.eventlog.parse.events import Event, StageInfo, TaskEnd, counted
from spark_app.vocabulary import spark_names as names
from spark_app.vocabulary.names import Metric

MAX_WAITING: Final = 500
"""Tasks of a stage that are counted together, which is 3 times as fast as one by one."""
MAX_LATE: Final = 200
"""How many ended stages are kept, because killed tasks end after their stage."""
UNNAMED: Final = "unknown"


@dataclass(slots=True)
class _Stage:
    group: str
    span: tuple[int, str] | None
    waiting: list[TaskEnd] = field(default_factory=list)


class MetricsAggregator:
    """The totals of one log; takes each event after `Application.apply` took it."""

    def __init__(
        self, app: Application, *, labels: LabelSources = NO_LABELS, clock: Callable[[], float] = time.time
    ) -> None:
        """Nothing is counted yet.

        Args:
            app: The application that takes the same events.
            labels: Where the labels of the application are.
            clock: The Unix time.
        """
        self._app, self._clock = app, clock
        self._labels, self._labelled_name = labels, UNNAMED
        self._streams = StreamMetrics(app)
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
            events.QueryStarted: self._query_started,
            events.QueryProgress: self._query_progress,
            events.ApplicationEnd: self._application_end,
            events.Compacted: self._compacted,
        }

    @property
    def labelled_name(self) -> str:
        """The name and the labels of the application; its properties come before its name, and hold from then on."""
        if self._labelled_name == UNNAMED:
            self._labelled_name = self._labels.labelled_name(self._app, unnamed=UNNAMED)
        return self._labelled_name

    def take(self, event: Event) -> None:
        """Counts one event."""
        take = self._take.get(type(event))
        if take:
            take(event)

    def found(self, findings: Iterable[Finding]) -> None:
        """Counts findings."""
        self._numbers.found(findings)

    def stop(self) -> None:
        """Marks the application as ended, even if its log has no end."""
        self._is_over = True

    def aggregate(self) -> Aggregate:
        """A copy of the totals so far."""
        for stage in (self._unknown, *self._stages.values()):
            self._count(stage)
        self._numbers.levels = {metric.name: level for metric, level in self._levels()}
        self._streams.look(self._numbers, now=self._clock(), is_over=self._is_over)
        return merged([Aggregate({self.labelled_name: self._numbers})])

    def drained(self) -> Aggregate:
        """What was counted since the last call, or since the start."""
        aggregate, self._numbers = self.aggregate(), Numbers()
        return aggregate

    def _levels(self) -> Iterator[tuple[Metric, int]]:
        """The current values of the gauges: 0 after the end of the application, absent if unknown."""
        known = self._app.executors.values()
        present = [] if self._is_over else [executor for executor in known if executor.removed is None]
        yield names.TASKS_ACTIVE, 0 if self._is_over else max(0, self._app.running)
        yield names.EXECUTORS_ACTIVE, len(present)
        yield names.CORES_ACTIVE, sum(executor.cores for executor in present)
        if any(executor.stored is not None for executor in known):
            yield names.STORAGE, sum(executor.stored or 0 for executor in present)

    def _task_end(self, event: TaskEnd) -> None:
        stage = self._stages.get((event.stage, event.stage_attempt), self._unknown)
        if event.is_resubmitted:  # its time and metrics were counted at its first end
            self._numbers.count(names.TASKS_FAILED_COUNT)
            return
        stage.waiting.append(event)
        if len(stage.waiting) >= MAX_WAITING:
            self._count(stage)

    def _stage_submitted(self, event: events.StageSubmitted) -> None:
        key = (event.info.id, event.info.attempt)
        attempt = self._app.stages[key]
        ids = span_ids.of_stage(self._app, attempt)
        span = (ids.span_id, f"{ids.trace_id:032x}") if ids.is_sampled else None
        self._stages[key] = _Stage(group_of(self._app, attempt), span)
        for metric in (names.TASKS_FAILED_COUNT, names.STAGES_FAILED):
            self._numbers.count(metric, more=0)

    def _stage_completed(self, event: events.StageCompleted) -> None:
        key = (event.info.id, event.info.attempt)
        stage = self._stages.get(key, self._unknown)
        self._count(stage)
        self._count_python(stage, event.info)
        self._count_skew(stage, self._app.stages.get(key))
        self._numbers.count(names.STAGES_FAILED, more=int(event.info.failure is not None))
        self._ended.append(key)
        if len(self._ended) > MAX_LATE:
            self._forget(self._ended.popleft())

    def _forget(self, key: tuple[int, int]) -> None:
        stage = self._stages.pop(key, None)
        if stage is not None:
            self._count(stage)

    def _job_end(self, event: events.JobEnd) -> None:
        self._numbers.count(names.JOBS_FAILED, more=int(event.result.has_failed))

    def _executor_added(self, event: events.ExecutorAdded) -> None:
        self._numbers.count(names.EXECUTORS_ADDED)

    def _executor_removed(self, event: events.ExecutorRemoved) -> None:
        executor = self._app.executors.get(event.id)
        if executor is not None and is_lost(self._app, executor):
            self._numbers.count(names.EXECUTORS_LOST, kind_of(event.reason))

    def _query_started(self, event: events.QueryStarted) -> None:
        self._streams.started(self._numbers, event)

    def _query_progress(self, event: events.QueryProgress) -> None:
        self._streams.progressed(self._numbers, event.progress)

    def _compacted(self, event: events.Compacted) -> None:
        """Adds the totals of what is left out; executors and open work that follow the line count again after it."""
        self._numbers = Numbers()
        for numbers in decoded(event.numbers).applications.values():
            self._numbers.merge(numbers)

    def _application_end(self, event: events.ApplicationEnd) -> None:
        self.stop()

    def _count(self, stage: _Stage) -> None:
        """Counts the waiting tasks of a stage."""
        if not stage.waiting:
            return
        tasks, stage.waiting = stage.waiting, []
        self._add_durations(stage, tasks)
        group = self._numbers.group(stage.group)
        totals = totals_of(tasks)
        for name, metric in COUNTED.items():
            more = getattr(totals, name)
            if more and metric.labels:
                group.count(metric, more)
            elif more:
                self._numbers.count(metric, more=more)
        self._numbers.count(names.TASKS_FAILED_COUNT, more=sum(task.info.has_failed for task in tasks))

    def _count_python(self, stage: _Stage, info: StageInfo) -> None:
        """Adds the time that a stage spent in Python: the growth of Spark's sums since the previous stage."""
        sums = counted([number for number in info.accumulables if number.name == PYTHON_TIME])
        if not sums:
            return
        spent = sum(milliseconds - self._python.get(number, 0) for number, milliseconds in sums.items())
        self._python = dict(islice((self._python | sums).items(), max(0, len(self._python) - MAX_LATE), None))
        if spent > 0:
            self._numbers.group(stage.group).count(names.STAGE_PYTHON_TIME, spent)

    def _count_skew(self, stage: _Stage, attempt: StageAttempt | None) -> None:
        """Adds the longest and the median task of a stage."""
        if attempt is None or not attempt.durations_ms:
            return
        group = self._numbers.group(stage.group)
        group.count(names.STAGE_LONGEST_TASK, max(attempt.durations_ms))
        group.count(names.STAGE_MEDIAN_TASK, round(median(attempt.durations_ms)))

    def _add_durations(self, stage: _Stage, tasks: list[TaskEnd]) -> None:
        """Adds the durations of tasks; the longest becomes the exemplar."""
        values = [task.info.finished - task.info.launched for task in tasks]
        ordered = sorted(value for value in values if value >= 0)
        if not ordered:
            return
        histogram = self._numbers.group(stage.group).histogram(DURATION)
        histogram.add(ordered, DURATION.bounds)
        if stage.span is not None:
            at = tasks[values.index(ordered[-1])].info.finished
            histogram.saw(Exemplar(at // EXEMPLAR_MS, ordered[-1], at, *stage.span))
