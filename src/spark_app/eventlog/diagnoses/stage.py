"""A stage attempt that has ended, with the figures that rules need."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Final

from spark_app.eventlog.diagnoses import settings_advice
from spark_app.eventlog.diagnoses.stream import of_batch
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding, Severity
from spark_app.eventlog.model import memory_settings, work_names
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.model.plan_names import SHUFFLED_JOINS, pattern_of_nodes
from spark_app.eventlog.model.stream_skew import has_state
from spark_app.eventlog.parse.events import JobProperties, StageInfo, TaskEnd
from spark_app.redaction import excerpt

MAX_PLACE: Final = 100
MORE_OF_INPUT: Final = "a lower spark.sql.files.maxPartitionBytes (files), more numSlices or repartition (RDDs)"
"""What makes more tasks of a stage that reads no shuffle."""
_JOINS: Final = pattern_of_nodes(SHUFFLED_JOINS)


@dataclass(frozen=True)
class StageView:
    """A stage attempt and the thresholds of the rules.

    Attributes:
        app: The application of the stage.
        stage: The attempt, with the totals of its tasks.
        limits: The thresholds.
    """

    app: Application
    stage: StageAttempt
    limits: Thresholds

    @cached_property
    def wall_ms(self) -> int:
        """The duration of the attempt; 0 if the log lacks its submission or its end."""
        info = self.stage.info
        return (info.completed or 0) - info.submitted if info.submitted is not None else 0

    @cached_property
    def slots(self) -> float | None:
        """How many tasks could run at once, on average over its duration; None if the log has no executor."""
        return None if self.stage.usage is None else self.stage.usage.slots

    @cached_property
    def idle_ms(self) -> float | None:
        """The duration of the attempt, times the share of all slots that ran no task of any stage; None if unknown.

        The attempt could end that much sooner if its work were spread over all slots.
        """
        usage = self.stage.usage
        return None if usage is None or not self.app.is_whole else usage.unused_ms

    def wall_of(self, task_ms: float) -> float:
        """What a part of the time of its tasks took of the wall-clock time; at most its duration.

        The part is divided by the mean number of tasks that ran then, or by the slots where that is unknown.
        """
        wall = None if self.stage.usage is None else self.stage.usage.wall_of(task_ms)
        return min(float(self.wall_ms), task_ms if wall is None else wall)

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """The settings that applied to it."""
        return settings_advice.settings_of(self.app, self.app.query_of(self.app.job_of(self.stage)))

    @property
    def is_of_rdds(self) -> bool:
        """Whether its job runs for no SQL query; unknown jobs may."""
        job = self.app.job_of(self.stage)
        return job is not None and job.query is None

    @property
    def more_partitions(self) -> str:
        """What makes more partitions of the shuffle that it reads."""
        return settings_advice.more_partitions(self.settings, is_rdd=self.is_of_rdds, has_state=has_state(self.stage))

    @property
    def more_memory(self) -> str:
        """What gives each task more memory."""
        settings = self.app.properties
        memory = settings_advice.now(settings, memory_settings.memory(settings))
        return f"a higher {memory}, or fewer {memory_settings.cores(settings)}"

    @property
    def hosts(self) -> int:
        """How many hosts had an executor when the attempt ended; at least 1."""
        ended = self.stage.info.completed or 0
        executors = self.app.executors.values()
        alive = {executor.host for executor in executors if executor.removed is None or executor.removed >= ended}
        return max(1, len(alive))

    @property
    def is_of_join(self) -> bool:
        """Whether its query shuffles rows for a join."""
        query = self.app.query_of(self.app.job_of(self.stage))
        return query is not None and _JOINS.search(query.plan) is not None

    @cached_property
    def median_ms(self) -> float:
        """The median duration of its task attempts; 0 without any."""
        return median(self.stage.durations_ms) if self.stage.durations_ms else 0.0

    @cached_property
    def longest(self) -> TaskEnd | None:
        """The longest task attempt that succeeded."""
        retried = [task for task in self.stage.kept if not (task.info.has_failed or task.info.was_killed)]
        return max([*self.stage.slowest, *retried], key=duration_ms, default=None)

    @property
    def name(self) -> str:
        """The id of the stage, and its call site or description: `stage 3 (collect at job.py:7)`."""
        return stage_name(self.app, self.stage.info, self.stage.properties)

    @property
    def is_shuffled(self) -> bool:
        """Whether the stage reads the shuffle output of other stages."""
        return bool(self.stage.info.parents)

    def finding(
        self,
        rule: str,
        text: str,
        *,
        advice: str,
        numbers: Mapping[str, float],
        cost_ms: float | None = None,
        severity: Severity = "warning",
        cause: str = "",
    ) -> Finding:
        """A finding about this attempt."""
        info, job = self.stage.info, self.app.job_of(self.stage)
        query, key = None if job is None else job.query, (info.id, info.attempt)
        sentence = f"{self.name[:1].upper()}{self.name[1:]}: {text}"
        stream = None if job is None else of_batch(self.app, job.batch)
        return Finding(
            rule, severity, sentence, advice, numbers, cost_ms, stage=key, query=query, cause=cause, batch_of=stream
        )


def stage_name(app: Application, info: StageInfo, properties: JobProperties | None) -> str:
    """The id of a stage, and the name of its work."""
    attempt = f", attempt {info.attempt}" if info.attempt else ""
    return f"stage {info.id}{attempt} ({excerpt(work_names.of_stage(app, info, properties), MAX_PLACE)})"


def name_of(app: Application, key: tuple[int, int]) -> str:
    """The name of the attempt of a stage, or its id where the log lacks it."""
    stage = app.stages.get(key)
    return f"stage {key[0]}" if stage is None else stage_name(app, stage.info, stage.properties)


def duration_ms(task: TaskEnd) -> int:
    """The duration of a task attempt, from its launch to its end."""
    return task.info.duration_ms
