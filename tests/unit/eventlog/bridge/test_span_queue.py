"""Spans are sent in batches, tried again, and dropped only when too many wait or nobody will ever take them."""

import threading
from collections.abc import Iterator, Sequence
from functools import partial

import pytest

from spark_app.eventlog.bridge import span_queue
from spark_app.eventlog.bridge.span_queue import MAX_BATCH, LatestSender, OwnedSpan, SpanQueue, SumSender
from spark_app.eventlog.spans import SparkSpan
from tests.polling import poll_until
from tests.unit.eventlog.log import read
from tests.unit.eventlog.logs import program


class Endpoint:
    """Takes batches, but for those that hold one of the spans that it will not take."""

    def __init__(self) -> None:
        """Willing."""
        self.is_willing = True
        self.poison: set[str] = set()
        self.batches: list[Sequence[OwnedSpan]] = []
        self.tried = 0

    def take(self, batch: Sequence[OwnedSpan]) -> bool:
        """Whether a batch is taken."""
        self.tried += 1
        if not self.is_willing or self.poison & {owned.application for owned in batch}:
            return False
        self.batches.append(batch)
        return True

    def has_taken(self, number: int) -> bool:
        """Whether so many were taken."""
        return len(self.taken) >= number

    @property
    def taken(self) -> list[str]:
        """What was taken, in order."""
        return [owned.application for batch in self.batches for owned in batch]


@pytest.fixture
def endpoint() -> Endpoint:
    """A willing one."""
    return Endpoint()


@pytest.fixture
def sender(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Iterator[SpanQueue]:
    """A sender that does not wait long."""
    monkeypatch.setattr(span_queue, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(span_queue, "MAX_PAUSE_SECONDS", 0.01)
    found = SpanQueue(endpoint.take)
    yield found
    found.close(60)


@pytest.fixture(scope="module")
def span() -> SparkSpan:
    """A span of a stage."""
    _, found = read(program())
    return found["stage 0.0"]


def put(sender: SpanQueue, span: SparkSpan, *names: str) -> None:
    """Puts spans, and lets them be sent."""
    for name in names:
        sender.put(OwnedSpan(name, span))
    sender.flush()


def test_spans_go_in_batches_of_a_bounded_size(sender: SpanQueue, endpoint: Endpoint, span: SparkSpan) -> None:
    """In their order, none left behind."""
    names = [str(number) for number in range(2 * MAX_BATCH + 1)]
    put(sender, span, *names)
    poll_until(lambda: sender.is_settled(sender.mark()), "the last span")
    assert endpoint.taken == names
    assert max(len(batch) for batch in endpoint.batches) <= MAX_BATCH
    assert (sender.sent, sender.queued, sender.weight) == (len(names), 0, 0)


def test_what_is_refused_is_tried_again(sender: SpanQueue, endpoint: Endpoint, span: SparkSpan) -> None:
    """As often as it takes; nothing is settled before it is taken."""
    endpoint.is_willing = False
    put(sender, span, "a", "b")
    poll_until(lambda: sender.failures > 5, "tries")
    assert not sender.is_settled(sender.mark())
    assert not sender.is_reachable
    endpoint.is_willing = True
    poll_until(lambda: sender.is_settled(sender.mark()), "the spans")
    assert sorted(endpoint.taken) == ["a", "b"]
    assert sender.dropped == 0


def test_when_too_much_waits_the_rest_is_dropped_and_counted(
    sender: SpanQueue, endpoint: Endpoint, span: SparkSpan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded; putting never waits."""
    monkeypatch.setattr(span_queue, "MAX_WEIGHT", 3 * OwnedSpan("a", span).weight)
    endpoint.is_willing = False
    put(sender, span, *"abcde")
    assert sender.dropped == 2
    endpoint.is_willing = True
    poll_until(lambda: sender.sent == 3, "three spans")
    put(sender, span, "f")
    poll_until(lambda: sender.sent == 4, "room for another")


def test_what_nobody_takes_gives_way_to_what_is_taken(sender: SpanQueue, endpoint: Endpoint, span: SparkSpan) -> None:
    """A batch that is refused while others are taken is dropped and counted."""
    endpoint.poison = {"bad"}
    put(sender, span, "bad")
    poll_until(lambda: endpoint.tried > 0, "the first try")
    for number in range(8):
        put(sender, span, str(number))
        poll_until(partial(endpoint.has_taken, number + 1), "a good one")
    poll_until(lambda: sender.dropped == 1, lambda: sender.failures)
    poll_until(lambda: sender.is_settled(sender.mark()), "the end")
    assert endpoint.taken == [str(number) for number in range(8)]


def test_what_waits_is_sent_at_the_end(sender: SpanQueue, endpoint: Endpoint, span: SparkSpan) -> None:
    """As long as it is taken."""
    put(sender, span, "a")
    sender.close(60)
    assert endpoint.taken == ["a"]
    assert sender.is_settled(sender.mark())


def test_what_is_not_taken_at_the_end_is_not_settled(endpoint: Endpoint, span: SparkSpan) -> None:
    """It is for the next bridge; it is tried and not waited for."""
    before = set(threading.enumerate())
    sender = SpanQueue(endpoint.take)
    endpoint.is_willing = False
    put(sender, span, "a")
    sender.close(60)
    assert set(threading.enumerate()) <= before
    assert endpoint.tried >= 1
    assert not sender.is_settled(sender.mark())


def test_of_what_is_only_worth_sending_as_it_is_the_newest_is_sent() -> None:
    """What waits is replaced by what comes; at the end the last is sent."""
    taken, gate, busy = list[int](), threading.Event(), threading.Event()
    before = set(threading.enumerate())

    def take(number: int) -> bool:
        busy.set()
        gate.wait(60)
        taken.append(number)
        return True

    sender = LatestSender(take)
    sender.put(1)
    busy.wait(60)
    for number in range(2, 10):
        sender.put(number)
    gate.set()
    sender.close(60)
    assert taken == [1, 9]
    assert set(threading.enumerate()) <= before


def test_what_adds_up_is_sent_once_and_none_is_lost() -> None:
    """What an endpoint refuses goes with the next value."""
    taken, answers = list[int](), iter([False, False, True, True])

    def export(value: int) -> bool:
        is_taken = next(answers)
        taken.extend([value] if is_taken else [])
        return is_taken

    sender = SumSender[int](export, lambda one, other: one + other)
    for value in (1, 2, 4, 8):
        sender.put(value)
    assert sender.close(60)
    assert taken == [7, 8]
