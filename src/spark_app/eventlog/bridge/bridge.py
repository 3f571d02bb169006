"""Follows a folder of event logs, and exports spans and metrics of the applications while they run."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from spark_app.errors import InputError
from spark_app.eventlog.bridge.checkpoint import CheckpointStore
from spark_app.eventlog.bridge.log_directory import LOOK_AGAIN_SECONDS, LogDirectory
from spark_app.eventlog.bridge.log_processor import LogProcessor, ReadCounts
from spark_app.eventlog.bridge.metrics import Aggregate, BasePoints
from spark_app.eventlog.bridge.self_metrics import BridgeStatus
from spark_app.eventlog.bridge.span_queue import LatestSender, OwnedSpan, SpanQueue
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.labels import NO_LABELS, LabelSources
from spark_app.eventlog.parse.locations import LogPath
from spark_app.eventlog.parse.log_files import EventLog
from spark_app.eventlog.parse.storage import NoAnswerError

POLL_SECONDS: Final = 0.5
SLICE_SECONDS: Final = 0.1
"""How long the bridge reads one log before the next."""
MAX_ENDING: Final = 64
"""How many logs may wait until the collector accepts their last spans; until then the bridge starts no new log."""
JUST_BEFORE_NS: Final = 1_000_000
CLOSE_SECONDS: Final = 2.5
SETTLED_SECONDS: Final = 300.0
"""How long the series of an application are sent after its last log was read; then Prometheus shows them for another 5
minutes, its lookback. The totals are forgotten only after the collector has accepted the last ones."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a bridge.

    Attributes:
        dead_after: Seconds without new events after which the bridge abandons an unfinished log.
        metrics_every: Seconds between two exports of metrics.
        thresholds: Thresholds of the diagnoses.
        labels: Where the labels of applications are.
    """

    dead_after: float
    metrics_every: float
    thresholds: Thresholds
    labels: LabelSources = NO_LABELS


class Export(Protocol):
    """The exporter of a bridge; each method returns whether the collector accepted the request."""

    def spans(self, batch: Sequence[OwnedSpan]) -> bool:
        """Sends spans."""

    def numbers(self, numbers: Aggregate, *, started_ns: int, ended_ns: int) -> bool:
        """Sends cumulative totals."""


@dataclass(frozen=True, slots=True)
class _Ending:
    """A log that was read to its end; it is done when all its spans, up to a mark, are accepted or dropped."""

    log: EventLog
    numbers: Aggregate
    mark: int
    size: int
    is_closed: bool


class Bridge:
    """Follows a folder of event logs; one thread calls `turn` in a loop."""

    def __init__(
        self,
        folder: LogPath,
        *,
        state: CheckpointStore,
        export: Export,
        print_line: Callable[[str], None],
        options: Options,
        status: BridgeStatus,
    ) -> None:
        """Reads the checkpoint, and starts the export threads.

        Raises:
            MachineError: The checkpoint cannot be read.
        """
        self.status = status
        self._state, self._print_line, self._options = state, print_line, options
        self._checkpoint = state.load()
        self._spans = SpanQueue(export.spans)
        self._export, self._accepted_at = export, 0.0
        self._directory = LogDirectory(folder, self._checkpoint, follow=self._follow, print_line=print_line)
        self._ending: list[_Ending] = []
        self._done = ReadCounts()
        self._looked = self._measured = -1e9
        self._was_reachable = True
        self._bases = BasePoints(self._checkpoint.total())
        self._numbers = LatestSender(self._send_numbers)

    def turn(self) -> bool:
        """Reads a slice of the new events; returns whether there is more to read."""
        if time.monotonic() - self._looked >= POLL_SECONDS:
            self._looked = time.monotonic()
            self._directory.look(forget_after=self._options.dead_after)
        for followed in self._directory.due(has_room=len(self._ending) < MAX_ENDING):
            self._read(followed)
        self._spans.flush()
        self._settle()
        if time.monotonic() - self._measured >= self._options.metrics_every:
            self._measure()
        self._update_status()
        is_behind = any(followed.is_behind for followed in self._directory.followed.values())
        return (is_behind or bool(self._directory.waiting)) and not self._spans.is_crowded

    def close(self) -> None:
        """Sends the queued spans, for a few seconds; the next bridge reads the logs of unsent spans again."""
        self._measure()
        self._spans.close(CLOSE_SECONDS)
        self._numbers.close(CLOSE_SECONDS / 5)
        self._settle()
        self._save()
        self._update_status()
        self.release()

    def release(self) -> None:
        """Closes the logs."""
        for followed in self._directory.followed.values():
            followed.close()

    def _follow(self, log: EventLog) -> LogProcessor:
        return LogProcessor(
            log,
            on_span=lambda name, span: self._spans.put(OwnedSpan(name, span)),
            is_crowded=lambda: self._spans.is_crowded,
            thresholds=self._options.thresholds,
            labels=self._options.labels,
            was_counted=self._checkpoint.has_numbers(log),
        )

    def _read(self, followed: LogProcessor) -> None:
        is_finished, was_named, had_failed = followed.is_finished, followed.app.name is not None, followed.failure
        try:
            followed.read(SLICE_SECONDS)
        except NoAnswerError:
            return  # the listing of the folder says so
        except (OSError, InputError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            self._drop(followed, str(why), seconds=LOOK_AGAIN_SECONDS)
            return
        if followed.is_no_event_log:
            self._drop(followed, "it is not a Spark event log", seconds=float("inf"))
            return
        if followed.app.name is not None and not was_named and not is_finished:
            self._print_line(f"{followed.title} started")
        if followed.failure and not had_failed:
            self._print_line(f"{followed.title}: a bug of spark-app, and numbers are wrong: {followed.failure}")
        if not followed.is_behind:
            self._end_if_over(followed, is_finished=is_finished)

    def _end_if_over(self, followed: LogProcessor, *, is_finished: bool) -> None:
        silent = time.time() - followed.grown_at
        if is_finished:
            self._end(followed, "ended", is_closed=True)
        elif self._directory.is_gone(followed.log):
            self._end(followed, "lost its event log (deleted or replaced)", is_closed=False)
        elif silent > self._options.dead_after:
            self._end(followed, f"was abandoned after {silent:,.0f} s without new events", is_closed=False)

    def _end(self, followed: LogProcessor, how: str, *, is_closed: bool) -> None:
        followed.end()
        log, size = followed.log, followed.log.size()
        self._print_line(f"{followed.title} {how}: {followed.summary}")
        for remark in followed.remarks:
            self._print_line(f"{followed.title}: {remark}")
        numbers = self._bounded(followed)
        self._checkpoint.keep(log, numbers)  # they may be sent by a bridge that is killed before the spans are accepted
        self._ending.append(_Ending(log, numbers, self._spans.mark(), size, is_closed))
        self._directory.ending.add(log.key)
        self._leave(followed)

    def _drop(self, followed: LogProcessor, why: str, *, seconds: float) -> None:
        followed.close()
        self._directory.postpone(followed.log, why, seconds=seconds)
        self._leave(followed)

    def _leave(self, followed: LogProcessor) -> None:
        del self._directory.followed[followed.log.key]
        self._done.add(followed.counts)

    def _settle(self) -> None:
        """Marks logs as done when all their spans are accepted or dropped."""
        unsettled = []
        for ending in self._ending:
            if not self._spans.is_settled(ending.mark):
                unsettled.append(ending)
                continue
            if ending.is_closed:
                self._checkpoint.close(ending.log, ending.numbers)
            else:
                self._checkpoint.give_up(ending.log, ending.numbers, size=ending.size)
            self._directory.ending.discard(ending.log.key)
        self._ending = unsettled

    def _measure(self) -> None:
        """Writes the totals to the checkpoint and then sends them: the next bridge never sends lower ones."""
        self._measured, now = time.monotonic(), time.time()
        for followed in self._directory.followed.values():
            if followed.may_be_counted:
                self._checkpoint.keep(followed.log, self._bounded(followed))
        since = min(now - SETTLED_SECONDS, self._accepted_at)
        self._checkpoint.update_active(now)
        self._checkpoint.forget_silent(since=since)
        self._save()
        self._numbers.put((self._active_total(since), frozenset(self._checkpoint.active), time.time_ns()))

    def _bounded(self, followed: LogProcessor) -> Aggregate:
        """The totals of a log, under the names that have series."""
        return self._checkpoint.names.bounded(followed.aggregator.aggregate(), now=time.time())

    def _active_total(self, since: float) -> Aggregate:
        """The totals of the applications that are sent: of those whose logs are read, or were since a time."""
        active, total = self._checkpoint.active, self._checkpoint.total()
        return Aggregate({name: each for name, each in total.applications.items() if active[name] >= since})

    def _send_numbers(self, at: tuple[Aggregate, frozenset[str], int]) -> bool:
        """Sends the totals of a time, from the export thread; a series that needs a base gets it dated just before."""
        (total, kept, now), started = at, self._checkpoint.started_ns
        bases = self._bases.of(total)
        if bases.applications and not self._export.numbers(bases, started_ns=started, ended_ns=now - JUST_BEFORE_NS):
            return False
        self._bases.sent(total, kept=kept)  # before the request: one whose answer is missing may have arrived
        is_taken = self._export.numbers(total, started_ns=started, ended_ns=now)
        if is_taken:
            self._accepted_at = now / 1e9
        return is_taken

    def _save(self) -> None:
        try:
            self._state.save(self._checkpoint)
        except OSError as error:
            self.status.state_failures += 1
            if self.status.state_failures == 1:
                effect = "after a restart the bridge reads these events again"
                self._print_line(f"cannot write the checkpoint: {error.strerror}; {effect}")

    def _update_status(self) -> None:
        """Copies the current figures to the status."""
        now, here, spans = time.monotonic(), self.status, self._spans
        behind = [followed for followed in self._directory.followed.values() if followed.is_behind]
        waiting = self._directory.waiting.values()
        read = ReadCounts()
        for counts in (self._done, *(followed.counts for followed in self._directory.followed.values())):
            read.add(counts)
        here.read = read  # replaced as a whole, because the server reads it from another thread
        here.spans_sent, here.spans_dropped, here.spans_waiting = spans.sent, spans.dropped, spans.queued
        here.span_failures, here.metric_failures = spans.failures, self._numbers.failures
        here.logs_followed = len(self._directory.followed) + len(self._ending) + len(waiting)
        here.logs_done = sum(entry.state != "open" for entry in self._checkpoint.logs.values())
        here.unread_bytes = sum(each.unread_bytes for each in behind) + sum(each.size for each in waiting)
        since = [followed.current_at for followed in behind] + [each.found_at for each in waiting]
        here.lag_seconds = now - min(since, default=now)
        here.last_heartbeat = now
        if spans.is_reachable != self._was_reachable:
            self._was_reachable = spans.is_reachable
            change = "accepts spans again" if spans.is_reachable else "does not accept spans; the bridge retries"
            self._print_line(f"the collector {change}")
