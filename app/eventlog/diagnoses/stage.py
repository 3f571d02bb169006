"""One attempt of a stage that has ended, with what the rules ask of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Final

from app.eventlog.application import Application
from app.eventlog.diagnoses.thresholds import Thresholds
from app.eventlog.diagnoses.words import cut
from app.eventlog.events import TaskEnd
from app.eventlog.findings import Finding, Severity
from app.eventlog.groups import is_nowhere
from app.eventlog.model import StageAttempt
from app.eventlog.parts import JobProperties, StageInfo

MAX_PLACE: Final = 100


@dataclass(frozen=True)
class StageView:
    """A stage attempt under the thresholds.

    Attributes:
        app: What it is a part of.
        stage: Its tasks, and what they summed up to.
        limits: When rules speak.
    """

    app: Application
    stage: StageAttempt
    limits: Thresholds

    @cached_property
    def wall_ms(self) -> int:
        """From its submission to its end; 0 where one of them is not told."""
        info = self.stage.info
        return (info.completed or 0) - info.submitted if info.submitted is not None else 0

    @cached_property
    def slots(self) -> float | None:
        """How many tasks could run at once, on average over its time; None where the log tells of no executor."""
        return None if self.stage.usage is None else self.stage.usage.slots(self.app.task_cpus)

    @cached_property
    def idle_ms(self) -> float | None:
        """Time in which it ran, times the share of all slots that had no task, of no stage; None if not known.

        So much sooner it could have ended, had its work been spread over all slots.
        """
        usage = self.stage.usage
        if usage is None or not self.slots or not self.app.is_whole:
            return None
        return max(0.0, usage.wall_ms - usage.task_ms / self.slots)

    @cached_property
    def median_ms(self) -> float:
        """Half of its task attempts took longer; 0 where it had none."""
        return median(self.stage.durations_ms) if self.stage.durations_ms else 0.0

    @cached_property
    def longest(self) -> TaskEnd | None:
        """The task attempt that took longest of those that went well."""
        retried = [task for task in self.stage.kept if not (task.info.has_failed or task.info.was_killed)]
        return max([*self.stage.slowest, *retried], key=duration_ms, default=None)

    @property
    def name(self) -> str:
        """Its id, and the call or the description of what it is for: `stage 3 (collect at job.py:7)`."""
        return stage_name(self.app, self.stage.info, self.stage.properties)

    @property
    def is_shuffled(self) -> bool:
        """Whether it reads what other stages have written."""
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
    ) -> Finding:
        """A finding in this attempt."""
        info, job = self.stage.info, self.app.job_of(self.stage)
        query = None if job is None else job.query
        sentence = f"{self.name[:1].upper()}{self.name[1:]}: {text}"
        return Finding(rule, severity, sentence, advice, numbers, cost_ms, stage=(info.id, info.attempt), query=query)


def stage_name(app: Application, info: StageInfo, properties: JobProperties | None) -> str:
    """A stage as a person may know it: by the description or the code line of what it is for."""
    execution = properties.execution if properties else None
    query = app.queries.get(int(execution)) if execution and execution.isdigit() else None
    told = (
        properties.description if properties else None,
        query.description if query else None,
        properties.call_site if properties else None,
        info.name,
    )
    known = [text for text in told if text]
    place = next((text for text in known if not is_nowhere(text)), known[-1] if known else "")
    attempt = f", attempt {info.attempt}" if info.attempt else ""
    return f"stage {info.id}{attempt} ({cut(place, MAX_PLACE)})"


def duration_ms(task: TaskEnd) -> int:
    """How long a task attempt took, from its launch to its end."""
    return task.info.duration_ms
