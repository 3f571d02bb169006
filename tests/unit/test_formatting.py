import datetime
from collections.abc import Callable

import pytest

from spark_app import formatting

NOON = datetime.datetime(2024, 1, 1, 12, 0, 0, 123456, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    "shown", [formatting.count, formatting.size, formatting.duration, formatting.share, formatting.timestamp]
)
def test_an_unknown_number_is_a_dash(shown: Callable[[None], str]) -> None:
    """Never 0."""
    assert shown(None) == "-"


@pytest.mark.parametrize(
    ("shown", "least", "text"),
    [
        (formatting.count, 0.04, "< 0.1"),
        (formatting.duration, 0.4, "< 1 ms"),
        (formatting.share, 1e-6, "< 0.1 %"),
    ],
)
def test_a_small_number_is_not_rounded_to_0(shown: Callable[[float], str], least: float, text: str) -> None:
    """One row of a million is more than 0 %."""
    assert shown(least) == text
    assert shown(0).startswith("0")


@pytest.mark.parametrize(("number", "text"), [(1234567, "1,234,567"), (2.5, "2.5"), (3.0, "3"), (1234.5, "1,234")])
def test_a_count_has_thousands_separators(number: float, text: str) -> None:
    """And a fraction only if it is small."""
    assert formatting.count(number) == text


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
def test_a_size_is_in_the_largest_unit_that_gives_at_least_1(number: float, text: str) -> None:
    """Rounding never gives 1024 of a unit; TiB is the largest."""
    assert formatting.size(number) == text


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
def test_a_duration_has_at_most_two_units(ms: float, text: str) -> None:
    """Rounding never gives 1000 ms, 60 s or 60 min."""
    assert formatting.duration(ms) == text


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.004, "0.4 %"), (0.02, "2 %"), (0.123, "12 %"), (0.0996, "10 %"), (1.0, "100 %")]
)
def test_a_share_is_a_percentage(ratio: float, text: str) -> None:
    """With a tenth if it is small."""
    assert formatting.share(ratio) == text


def test_an_instant_is_shown_in_utc() -> None:
    """Whatever zone it comes in, with the Z that says so."""
    berlin = NOON.astimezone(datetime.timezone(datetime.timedelta(hours=1)))
    assert formatting.timestamp(berlin) == "2024-01-01 12:00:00Z"


def test_a_quantity_has_its_noun_in_singular_or_plural() -> None:
    """`1 task`, `2 tasks`."""
    assert [formatting.quantity(many, "task") for many in (0, 1, 1200)] == ["0 tasks", "1 task", "1,200 tasks"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "just now"), (59, "just now"), (60, "1 min ago"), (7199, "1 h ago"), (86_400 * 1000, "1,000 d ago")],
)
def test_an_age_is_in_whole_units(seconds: float, text: str) -> None:
    """The largest that fits; clocks of two machines may differ."""
    assert formatting.age(seconds) == text
