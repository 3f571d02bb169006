"""A streaming query over all its runs in an application, in bounded memory."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from spark_app.eventlog.model.stream_samples import Samples, StateSkew, StreamSample
from spark_app.eventlog.model.stream_triggers import Trigger
from spark_app.eventlog.parse.events import QueryStarted, QueryTerminated
from spark_app.vocabulary.spark_progress import Progress

MAX_STOPS: Final = 100
"""Stops of a query that are known: a program may restart a query that fails for as long as it runs."""


@dataclass(slots=True)
class StreamQuery:
    """A streaming query; times in milliseconds since the epoch.

    Attributes:
        id: Its id, which a restart from its checkpoint keeps.
        name: The name that the program gave it.
        run, runs: The id of its last run, and how many runs there were.
        started, ended, error: Of its last run; None where the log does not say it, or while the run goes on.
        settings: What its session has changed, as of its last batch.
        trigger: What is known of its trigger.
        history: Its batches.
        stops: From the end of a run to the start of the next, for the last of them.
        last: The sample of its last batch alone.
        progress: What Spark reported about its last batch.
        is_restart: Whether its run follows one that failed.
        reported_at, is_idle: When Spark last reported a trigger of its run, and whether that found nothing to do.
        longest_silence_ms: The longest time between two reports of its run; None before the second.
    """

    id: str
    name: str | None = None
    run: str = ""
    runs: int = 0
    started: int | None = None
    ended: int | None = None
    error: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    trigger: Trigger = field(default_factory=Trigger)
    history: Samples = field(default_factory=Samples)
    stops: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=MAX_STOPS))
    last: StreamSample | None = None
    progress: Progress | None = None
    is_restart: bool = False
    reported_at: int | None = None
    is_idle: bool = False
    longest_silence_ms: int | None = None

    def begin(self, event: QueryStarted) -> None:
        """Begins a run."""
        ended, self.is_restart = self.ended, self.error is not None
        self._begin(event.run)
        self.name = event.name or self.name
        self.started = None if event.started_at is None else round(event.started_at.timestamp() * 1000)
        if ended is not None and self.started is not None and self.started > ended:
            self.stops.append((ended, self.started))

    def end(self, event: QueryTerminated, time: int) -> None:
        """Ends its run, at the time of the events before or at the end of its last batch."""
        if event.run == self.run:
            self.ended, self.error = max(time, self.last.ended if self.last else 0), event.error

    def add(self, progress: Progress, skew: StateSkew | None) -> bool:
        """Adds a batch.

        Returns:
            Whether it is one: not so for a batch that was reported before, and for a trigger without a batch.
        """
        self.report(progress.run, progress.ended, is_idle=not progress.has_batch)
        is_known = self.progress is not None and self.progress.run == progress.run
        if not progress.has_batch or (is_known and self.progress and progress.batch <= self.progress.batch):
            return False
        self.last = StreamSample.of(progress, self.trigger.add(progress.started, progress.ended), skew)
        self.history.add(self.last)
        self.name, self.progress = progress.name or self.name, progress
        return True

    def report(self, run: str, at: int, *, is_idle: bool) -> None:
        """Notes that Spark has reported a trigger."""
        if run != self.run:  # the log lacks the start of this run
            self._begin(run)
        if self.reported_at is not None:
            self.longest_silence_ms = max(self.longest_silence_ms or 0, at - self.reported_at)
        self.reported_at, self.is_idle = at, is_idle

    def _begin(self, run: str) -> None:
        self.run, self.runs = run, self.runs + 1
        self.started = self.ended = self.error = self.reported_at = self.longest_silence_ms = None
        self.is_idle = False
        self.trigger.begin()


def slim(progress: Progress) -> Progress:
    """A progress that is kept for each batch of a log: without the custom metrics of its state."""
    return replace(progress, state=[replace(state, custom={}) for state in progress.state])
