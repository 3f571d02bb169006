import itertools
import threading
from collections.abc import Callable

import pytest

from spark_app.warehouse.lease import Times, lease
from spark_app.warehouse.s3_object import Stored
from tests.polling import poll_until

QUICK = Times(lease=0.5, renewal=0.02, poll=0.01, old=1800)


class Memory:
    """An object that is written on conditions, as S3 does."""

    def __init__(self, age: float = 0) -> None:
        self.stored: Stored | None = None
        self.age, self.writes, self.failures = age, 0, 0
        self.is_cut_off = False
        self._etags, self._lock = itertools.count(), threading.Lock()

    def read(self) -> Stored | None:
        """What is there."""
        return self.stored

    def write(self, content: bytes, *, over: str | None) -> str | None:
        """Refuses a writer that has not seen what is there."""
        with self._lock:
            if self.is_cut_off:
                self.failures += 1
                raise OSError("no network")
            if (self.stored.etag if self.stored else None) != over:
                return None
            self.stored = Stored(str(next(self._etags)), content, self.age)
            self.writes += 1
            return self.stored.etag


def holder(target: Memory, on_wait: Callable[[], None] | None = None) -> tuple[threading.Event, threading.Thread]:
    """A thread that waits for the lock, and the event that tells that it has had it."""
    had = threading.Event()

    def hold() -> None:
        with lease(target, "key", on_wait=on_wait, times=QUICK):
            had.set()

    thread = threading.Thread(target=hold)
    thread.start()
    return had, thread


def test_a_second_holder_waits_for_a_living_one_and_is_told() -> None:
    """For longer than the lease, since the first one renews it; once it ends, the second has it."""
    target, notes = Memory(), list[str]()
    with lease(target, "key", times=QUICK):
        had, thread = holder(target, lambda: notes.append("waits"))
        written = target.writes
        poll_until(lambda: target.writes > written + 2 * QUICK.lease / QUICK.renewal, "renewals for twice the lease")
        assert not had.is_set()
    thread.join(60)
    assert had.is_set()
    assert notes == ["waits"]


def test_a_holder_that_has_died_is_replaced_after_the_lease() -> None:
    """Nobody says that another process works, since none does."""
    target = Memory()
    target.write(b'{"state": "held"}', over=None)
    had, thread = holder(target, lambda: pytest.fail("nobody holds it"))
    thread.join(60)
    assert had.is_set()


def test_a_holder_that_has_died_long_ago_is_replaced_at_once() -> None:
    """Also where whoever asks gives up as soon as it has to wait."""
    target = Memory(age=QUICK.old + 1)
    target.write(b'{"state": "held"}', over=None)
    with lease(target, "key", times=Times(lease=3600)):
        pass


def test_a_lock_is_free_again_at_the_end() -> None:
    """After an error, too; at once."""
    target = Memory()
    with pytest.raises(RuntimeError), lease(target, "key", times=Times()):
        raise RuntimeError
    with lease(target, "key", times=Times(lease=3600)):
        pass


def test_a_store_that_is_away_for_a_moment_costs_no_lock() -> None:
    """The holder writes its object again when it answers again."""
    target = Memory()
    with lease(target, "key", times=QUICK):
        target.is_cut_off = True
        poll_until(lambda: target.failures > 1, "renewals that fail")
        written = target.writes
        target.is_cut_off = False
        poll_until(lambda: target.writes > written, "a renewal")


def test_a_holder_that_was_replaced_leaves_the_lock_to_the_other_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """It stood still for longer than the lease: what it releases is not its own any more."""
    target = Memory()
    with lease(target, "etl.daily_sales", times=QUICK):
        assert target.stored is not None
        while target.write(b'{"state": "held"}', over=target.stored.etag) is None:
            pass
        others = target.stored
        poll_until(lambda: "has taken over the lock of etl.daily_sales" in caplog.text, "a warning")
    assert target.stored is others
