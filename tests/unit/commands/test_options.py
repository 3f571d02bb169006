import datetime

import pytest
import typer

from spark_app.commands import options
from spark_app.errors import UsageError

DAY = datetime.date(2024, 2, 28)


@pytest.mark.parametrize(
    "text", ["2024-1-1", "20240101", "2024-W01-1", "2024-02-30", "01/02/2024", " 2024-01-01", "２０２４-01-01", ""]
)
def test_a_date_must_be_yyyy_mm_dd_and_exist(text: str) -> None:
    """No other form is guessed."""
    with pytest.raises(typer.BadParameter):
        options.day(text)


def test_a_valid_date_is_accepted() -> None:
    """Leap days too."""
    assert options.day("2024-02-29") == datetime.date(2024, 2, 29)


def test_a_day_may_be_so_many_days_ago() -> None:
    """In UTC, whatever the zone of the machine: schedules need no program that computes days."""
    before = datetime.datetime.now(datetime.UTC).date()
    found = options.day("3d")
    after = datetime.datetime.now(datetime.UTC).date()
    assert before <= found + datetime.timedelta(days=3) <= after
    assert options.day("0d") in {before, after}


def test_a_range_includes_both_ends() -> None:
    """Days are in order, across months."""
    last = datetime.date(2024, 3, 1)
    assert options.days(None, DAY, last) == [DAY, datetime.date(2024, 2, 29), last]
    assert options.days(None, DAY, DAY) == [DAY]
    assert options.days(DAY, None, None) == [DAY]


@pytest.mark.parametrize(
    ("date", "first", "last", "named"),
    [
        (None, None, None, "--date"),
        (DAY, DAY, None, "not both"),
        (DAY, None, DAY, "not both"),
        (None, DAY, None, "require each other"),
        (None, None, DAY, "require each other"),
        (None, DAY, datetime.date(2024, 2, 27), "--from 2024-02-28 is after --to 2024-02-27"),
    ],
)
def test_invalid_combinations_of_dates_are_refused(
    date: datetime.date | None, first: datetime.date | None, last: datetime.date | None, named: str
) -> None:
    """No date, half a range, a reversed range, or a date and a range."""
    with pytest.raises(UsageError, match=named):
        options.days(date, first, last)
