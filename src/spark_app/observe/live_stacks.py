"""What the running stages of an observed command do: the samples of stacks of the last seconds, by stage.

Spark flushes its log when stages end, so that the tasks of one that runs are not in it yet. What tells the stage of a
sample nevertheless: its task, if the log has it; else, where the driver says which stages run, that one stage only ran
at that time. What neither tells is not known, and is not guessed.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from spark_app.eventlog.model.application import Application
from spark_app.report.sections.now import RunningStage
from spark_app.report.sections.stacks_now import Window
from spark_app.stack_samples import attribution, stack_profile, task_runs
from spark_app.stack_samples.attribution import CLOCKS_APART_MS, SLACK_MS, Place
from spark_app.stack_samples.captured import PYTHON, RUNNING
from spark_app.stack_samples.growing import GrowingFiles
from spark_app.stack_samples.python_stacks import jvm_of
from spark_app.stack_samples.samples import StackSamples
from spark_app.stack_samples.task_runs import ENDLESS, StageKey, TaskRun

WINDOW_MS: Final = 10_000
LAG_MS: Final = 1_000
"""How old samples are at least: JVMs write them once a second, and by then the log has the stages that have ended."""
LOOK_SECONDS: Final = 2.0
"""The least time between two looks."""
REST: Final = 20
"""How many times as long as a look has taken no other follows: at most a twentieth of one core."""


class LiveStacks:
    """The samples of the application that a page shows."""

    def __init__(self, folder: Path, interval_ms: float) -> None:
        """Reads nothing yet.

        Args:
            folder: The folder that the processes of the command write to.
            interval_ms: The time between two samples of a thread.
        """
        self._files, self._interval_ms = GrowingFiles(folder / RUNNING, folder / PYTHON), interval_ms
        self._tasks: dict[int, TaskRun] = {}
        self._stages: dict[StageKey, tuple[int, int]] = {}
        self._due = self._rested = 0.0
        self._running = frozenset[StageKey]()
        self._window: Window | None = None

    def forget(self) -> None:
        """Forgets an application: another one takes its place."""
        self._tasks, self._stages, self._window, self._due, self._rested = {}, {}, None, 0.0, 0.0

    def take(self, line: bytes) -> None:
        """Takes a line of the log: tasks of the window tell the stages of samples."""
        for run in task_runs.of_lines((line,)):
            known = self._tasks.get(run.id)
            if known is None or known.finished == ENDLESS:
                self._tasks[run.id] = run
            if run.finished < time.time() * 1000 - WINDOW_MS - CLOCKS_APART_MS:
                del self._tasks[run.id]

    def window(self, app: Application, launch: str, running: Sequence[RunningStage]) -> Window | None:
        """The samples of the last seconds; None before the first, and after the end of the application.

        Args:
            app: The application by its log.
            launch: The launch that it belongs to.
            running: The stages that run, as its driver says; empty where that does not answer.
        """
        jvm, now = jvm_of(launch), round(time.time() * 1000)
        if app.ended is not None or jvm is None:
            return None
        self._note_stages(app, running, now)
        shown, before = frozenset((stage.id, stage.attempt) for stage in running), self._running
        if time.monotonic() >= (self._due if shown == before else self._rested):
            began, self._running = time.thread_time(), shown
            self._window = self._look(app, jvm, bool(running), now)
            self._rested = time.monotonic() + REST * (time.thread_time() - began)
            self._due = max(self._rested, time.monotonic() + LOOK_SECONDS)
        return self._window

    def _note_stages(self, app: Application, running: Sequence[RunningStage], now: int) -> None:
        """Notes when stages began and ended: by the log, and those that it does not have yet by the driver."""
        active = {(stage.id, stage.attempt): (stage.since or 0, ENDLESS) for stage in running}
        ended = {key: (begin, min(end, now)) for key, (begin, end) in self._stages.items() if key not in active}
        infos = (stage.info for stage in app.stages.values())
        logged = {(info.id, info.attempt): (info.submitted or 0, info.completed) for info in infos if info.completed}
        known = {**ended, **active, **logged}
        self._stages = {key: times for key, times in known.items() if times[1] >= now - 2 * WINDOW_MS}

    def _look(self, app: Application, jvm: int, is_answered: bool, now: int) -> Window:  # noqa: FBT001 - what is known
        end = now - LAG_MS
        begin = end - WINDOW_MS
        captured = self._files.since(begin)
        taken = captured.of(jvm, app.id, begin, end, interval_ms=self._interval_ms)
        self._tasks = {key: run for key, run in self._tasks.items() if run.finished >= begin - CLOCKS_APART_MS}
        places = attribution.places(taken, self._tasks.values())
        if is_answered:
            places = list(_by_time(taken, places, self._stages))
        return Window(begin, end, stack_profile.of_places(taken, places), is_behind=self._files.is_behind)


def _by_time(
    taken: StackSamples, places: Sequence[Place], stages: Mapping[StageKey, tuple[int, int]]
) -> Iterator[Place]:
    """The places, where they are not known that of the only stage that ran at the time of the sample."""
    for sample, place in zip(taken.samples, places, strict=True):
        ran = [
            key
            for key, (begin, end) in stages.items()
            if place == "unknown" and begin - SLACK_MS <= sample.at_ms <= end + SLACK_MS
        ]
        yield ran[0] if len(ran) == 1 else place
