"""A service that follows a folder of event logs of many applications, and sends what they tell while they run."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from app.eventlog.bridge.beginnings import Beginnings
from app.eventlog.bridge.followed import Counts, Followed
from app.eventlog.bridge.journal import State
from app.eventlog.bridge.metrics import Aggregate, merged
from app.eventlog.bridge.selfmetrics import Standing
from app.eventlog.bridge.sending import LatestSender, OwnedSpan, SpanSender
from app.eventlog.bridge.shelf import LOOK_AGAIN_SECONDS, Shelf
from app.eventlog.diagnoses.thresholds import Thresholds
from app.eventlog.logs import Log

POLL_SECONDS: Final = 0.5
SLICE_SECONDS: Final = 0.1
"""How long one log may be read before others have their turn."""
MAX_ENDING: Final = 64
"""How many logs may wait for their last spans to be accepted; no other is begun until then."""
JUST_BEFORE_NS: Final = 1_000_000
CLOSE_SECONDS: Final = 2.5


@dataclass(frozen=True, slots=True)
class Options:
    """How a bridge works.

    Attributes:
        dead_after: Seconds of silence after which a log that is not finished is given up.
        metrics_every: Seconds between two exports of metrics.
        thresholds: Of the diagnoses.
    """

    dead_after: float
    metrics_every: float
    thresholds: Thresholds


class Export(Protocol):
    """Where a bridge sends things; each call gives back whether it was accepted."""

    def spans(self, batch: Sequence[OwnedSpan]) -> bool:
        """Sends spans."""

    def numbers(self, numbers: Aggregate, *, started_ns: int, ended_ns: int) -> bool:
        """Sends totals since a start."""


@dataclass(frozen=True, slots=True)
class _Ending:
    """A log that was read to its end; it is done when its spans, up to a mark, are accepted or given up."""

    log: Log
    numbers: Aggregate
    mark: int
    size: int
    is_closed: bool


class Bridge:
    """Follows a folder; `turn` is to be called again and again, from one thread."""

    def __init__(
        self,
        folder: Path,
        *,
        state: State,
        export: Export,
        say: Callable[[str], None],
        options: Options,
        standing: Standing,
    ) -> None:
        """Reads the journal, and starts the threads that send.

        Raises:
            MachineError: The journal cannot be read.
        """
        self.standing = standing
        self._state, self._say, self._options = state, say, options
        self._journal = state.load()
        self._spans = SpanSender(export.spans)
        self._export, self._beginnings = export, Beginnings()
        self._shelf = Shelf(folder, self._journal, follow=self._follow, say=say)
        self._ending: list[_Ending] = []
        self._done = Counts()
        self._looked = self._measured = -1e9
        self._was_reachable = True
        self._beginnings.sent(self._total())
        self._numbers = LatestSender(self._send_numbers)

    def turn(self) -> bool:
        """Reads a slice of what is new; gives back whether more is waiting to be read."""
        if time.monotonic() - self._looked >= POLL_SECONDS:
            self._looked = time.monotonic()
            self._shelf.look(forget_after=self._options.dead_after)
        for followed in self._shelf.due(has_room=len(self._ending) < MAX_ENDING):
            self._read(followed)
        self._spans.flush()
        self._settle()
        if time.monotonic() - self._measured >= self._options.metrics_every:
            self._measure()
        self._stand()
        is_behind = any(followed.is_behind for followed in self._shelf.followed.values())
        return (is_behind or bool(self._shelf.waiting)) and not self._spans.is_crowded

    def close(self) -> None:
        """Sends what waits, for a few seconds; the next bridge reads the logs of the rest again."""
        self._measure()
        self._spans.close(CLOSE_SECONDS)
        self._numbers.close(CLOSE_SECONDS / 5)
        self._settle()
        self._save()
        self._stand()
        self.release()

    def release(self) -> None:
        """Closes the logs."""
        for followed in self._shelf.followed.values():
            followed.close()

    def _follow(self, log: Log) -> Followed:
        return Followed(
            log,
            tell=lambda name, span: self._spans.put(OwnedSpan(name, span)),
            is_crowded=lambda: self._spans.is_crowded,
            thresholds=self._options.thresholds,
            was_counted=self._journal.has_numbers(log),
        )

    def _read(self, followed: Followed) -> None:
        is_finished, was_named = followed.is_finished, followed.app.name is not None
        try:
            followed.read(SLICE_SECONDS)
        except OSError as error:
            self._drop(followed, str(error.strerror), seconds=LOOK_AGAIN_SECONDS)
            return
        if followed.is_no_event_log:
            self._drop(followed, "it is no event log", seconds=float("inf"))
            return
        if followed.app.name is not None and not was_named and not is_finished:
            self._say(f"{followed.title} began")
        if not followed.is_behind:
            self._end_if_over(followed, is_finished=is_finished)

    def _end_if_over(self, followed: Followed, *, is_finished: bool) -> None:
        silent = time.time() - followed.grown_at
        if is_finished:
            self._end(followed, "ended", is_closed=True)
        elif self._shelf.is_gone(followed.log):
            self._end(followed, "is gone", is_closed=False)
        elif silent > self._options.dead_after:
            self._end(followed, f"was silent for {silent:,.0f} s and is given up", is_closed=False)

    def _end(self, followed: Followed, how: str, *, is_closed: bool) -> None:
        followed.end()
        log, size = followed.log, followed.log.size()
        self._say(f"{followed.title} {how}: {followed.told}")
        self._ending.append(_Ending(log, followed.meter.aggregate(), self._spans.mark(), size, is_closed))
        self._shelf.ending.add(log.key)
        self._leave(followed)

    def _drop(self, followed: Followed, why: str, *, seconds: float) -> None:
        followed.close()
        self._shelf.leave_alone(followed.log, why, seconds=seconds)
        self._leave(followed)

    def _leave(self, followed: Followed) -> None:
        del self._shelf.followed[followed.log.key]
        self._done.add(followed.counts)

    def _settle(self) -> None:
        """Marks logs as done whose spans have all been accepted or given up."""
        still = []
        for ending in self._ending:
            if not self._spans.is_settled(ending.mark):
                still.append(ending)
                continue
            if ending.is_closed:
                self._journal.close(ending.log, ending.numbers)
            else:
                self._journal.give_up(ending.log, ending.numbers, size=ending.size)
            self._shelf.ending.discard(ending.log.key)
        self._ending = still

    def _measure(self) -> None:
        """Sends the totals, after they are on disk: the next bridge never sends lower ones."""
        self._measured = time.monotonic()
        for followed in self._shelf.followed.values():
            if followed.may_be_counted:
                self._journal.keep(followed.log, followed.meter.aggregate())
        self._save()
        self._numbers.put((self._total(), time.time_ns()))

    def _send_numbers(self, at: tuple[Aggregate, int]) -> bool:
        """Sends the totals of a time, on the thread of the sender; a new series is first sent with 0, just before."""
        (total, now), started = at, self._journal.started_ns
        zeros = self._beginnings.of(total)
        if zeros.applications and not self._export.numbers(zeros, started_ns=started, ended_ns=now - JUST_BEFORE_NS):
            return False
        is_taken = self._export.numbers(total, started_ns=started, ended_ns=now)
        if is_taken:
            self._beginnings.sent(total)
        return is_taken

    def _save(self) -> None:
        try:
            self._state.save(self._journal)
        except OSError as error:
            self.standing.state_failures += 1
            if self.standing.state_failures == 1:
                self._say(f"the state is not kept, and what is read now will be read again: {error.strerror}")

    def _total(self) -> Aggregate:
        """The totals of all logs; a log that is read again has its earlier ones until it has caught up."""
        ending = {ending.log.key: ending.numbers for ending in self._ending}
        kept = {key: entry.numbers for key, entry in self._journal.logs.items() if entry.numbers is not None}
        return merged([self._journal.totals, *(kept | ending).values()])

    def _stand(self) -> None:
        """Copies the current figures to `Standing`."""
        now, here, spans = time.monotonic(), self.standing, self._spans
        behind = [followed for followed in self._shelf.followed.values() if followed.is_behind]
        waiting = self._shelf.waiting.values()
        read = Counts()
        for counts in (self._done, *(followed.counts for followed in self._shelf.followed.values())):
            read.add(counts)
        here.read = read  # whole: another thread may look
        here.spans_sent, here.spans_dropped, here.spans_waiting = spans.sent, spans.dropped, spans.queued
        here.span_failures, here.metric_failures = spans.failures, self._numbers.failures
        here.logs_followed = len(self._shelf.followed) + len(self._ending) + len(waiting)
        here.logs_done = sum(entry.state != "open" for entry in self._journal.logs.values())
        here.unread_bytes = sum(each.unread_bytes for each in behind) + sum(each.size for each in waiting)
        since = [followed.current_at for followed in behind] + [each.found_at for each in waiting]
        here.lag_seconds = now - min(since, default=now)
        here.beat = now
        if spans.is_reachable != self._was_reachable:
            self._was_reachable = spans.is_reachable
            again = "takes spans again" if spans.is_reachable else "does not take spans; reading goes on, trying again"
            self._say(f"the collector {again}")
