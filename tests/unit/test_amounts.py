import datetime
from collections.abc import Callable

import pytest

from app import amounts

NOON = datetime.datetime(2024, 1, 1, 12, 0, 0, 123456, tzinfo=datetime.UTC)


@pytest.mark.parametrize("shown", [amounts.count, amounts.size, amounts.duration, amounts.share, amounts.moment])
def test_what_is_not_known_is_a_dash(shown: Callable[[None], str]) -> None:
    """A figure that nobody knows is never shown as 0."""
    assert shown(None) == "-"


@pytest.mark.parametrize(
    ("shown", "least", "text"),
    [
        (amounts.count, 0.04, "< 0.1"),
        (amounts.duration, 0.4, "< 1 ms"),
        (amounts.share, 1e-6, "< 0.1 %"),
    ],
)
def test_what_is_there_is_not_shown_as_nothing(shown: Callable[[float], str], least: float, text: str) -> None:
    """One broken row of a million is more than 0 %."""
    assert shown(least) == text
    assert shown(0).startswith("0")


@pytest.mark.parametrize(("number", "text"), [(1234567, "1,234,567"), (2.5, "2.5"), (3.0, "3"), (1234.5, "1,234")])
def test_a_count_has_its_thousands_separated(number: float, text: str) -> None:
    """And a fraction only where it says something: in an average that is small."""
    assert amounts.count(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1023.96 * 1024, "1.0 MiB"),
        (1610612736, "1.5 GiB"),
        (5 * 1024**5, "5120.0 TiB"),
    ],
)
def test_a_size_is_in_the_largest_unit_that_leaves_one(number: float, text: str) -> None:
    """Rounding never gives 1024 of a unit that has a larger one; TiB is the largest."""
    assert amounts.size(number) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (850.4, "850 ms"),
        (999.6, "1.0 s"),
        (12_340, "12.3 s"),
        (59_949, "59.9 s"),
        (59_960, "1 min 00 s"),
        (245_000, "4 min 05 s"),
        (3_599_600, "1 h 00 min"),
        (7_380_000, "2 h 03 min"),
        (3_600_000_000, "1,000 h 00 min"),
    ],
)
def test_a_duration_has_the_units_that_a_person_reads(ms: float, text: str) -> None:
    """Two numbers at most, and rounding never gives 1000 ms, 60 seconds or 60 minutes."""
    assert amounts.duration(ms) == text


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.004, "0.4 %"), (0.02, "2 %"), (0.123, "12 %"), (0.0996, "10 %"), (1.0, "100 %")]
)
def test_a_share_is_a_percentage(ratio: float, text: str) -> None:
    """With a tenth only where it says something."""
    assert amounts.share(ratio) == text


def test_an_instant_is_shown_in_utc() -> None:
    """Whatever zone it comes in, with the Z that says so."""
    berlin = NOON.astimezone(datetime.timezone(datetime.timedelta(hours=1)))
    assert amounts.moment(berlin) == "2024-01-01 12:00:00Z"


def test_one_is_no_plural() -> None:
    """A sentence is read by a person."""
    assert [amounts.things(many, "task") for many in (0, 1, 1200)] == ["0 tasks", "1 task", "1,200 tasks"]
