"""The interval of a trigger is told, or it is in the starts of batches that have waited; else it is unknown."""

import random

import pytest

from spark_app.eventlog.model.stream_triggers import Trigger, interval_ms


def ran(trigger: Trigger, starts: list[int], *, lasting: int = 300) -> None:
    """Adds batches of a run."""
    trigger.begin()
    for start in starts:
        trigger.add(start, start + lasting)


def test_starts_at_multiples_of_an_interval_tell_it() -> None:
    """The first start of a run is at once, and the others are some milliseconds late."""
    trigger = Trigger()
    ran(trigger, [1871, *(2000 * number + number % 7 for number in range(2, 14))])
    assert (trigger.interval_ms, trigger.is_inferred) == (2000, True)


def test_starts_when_data_arrives_tell_nothing() -> None:
    """Whoever sends it has no clock of Spark."""
    draw, trigger = random.Random(1), Trigger()
    ran(trigger, [1000 * number + draw.randrange(500) for number in range(100)])
    assert trigger.interval_ms is None


def test_batches_one_after_the_other_tell_nothing() -> None:
    """No batch has waited."""
    trigger = Trigger()
    ran(trigger, [2000 * number for number in range(100)], lasting=1990)
    assert trigger.interval_ms is None


def test_few_starts_tell_nothing() -> None:
    """They may be at multiples by chance."""
    trigger = Trigger()
    ran(trigger, [2000 * number for number in range(10)])
    assert trigger.interval_ms is None


def test_a_property_goes_before_what_is_seen() -> None:
    """Also for an interval that nobody else chooses."""
    trigger = Trigger()
    trigger.configured_ms = 1700
    ran(trigger, [2000 * number for number in range(20)], lasting=1900)
    assert (trigger.interval_ms, trigger.is_inferred) == (1700, False)
    assert trigger.add(50_000, 52_000)[1700] == (1, 300)


def test_what_one_run_has_shown_holds_for_the_next() -> None:
    """Until that shows another."""
    trigger = Trigger()
    ran(trigger, [2000 * number for number in range(12)])
    ran(trigger, [1, 2001])
    assert trigger.interval_ms == 2000
    ran(trigger, [5000 * number for number in range(12)])
    assert trigger.interval_ms == 5000


def test_the_first_batch_of_a_run_is_never_too_long() -> None:
    """It loads classes and state."""
    trigger = Trigger()
    trigger.begin()
    assert trigger.add(0, 9000) == {}
    assert trigger.add(9000, 9250) == {100: (1, 150), 200: (1, 50)}


@pytest.mark.parametrize(
    ("text", "interval"),
    [("10 seconds", 10_000), ("500 milliseconds", 500), ("1 minute", 60_000), ("2ms", 2)]
    + [(text, None) for text in (None, "", "0 seconds", "soon", "-1 second", "1 month")],
)
def test_an_interval_is_read_as_spark_takes_it(text: str | None, interval: int | None) -> None:
    """What is no interval is unknown."""
    assert interval_ms(text) == interval
