import datetime

import pytest
import typer

from app.commands import options
from app.errors import UsageError

DAY = datetime.date(2024, 2, 28)


@pytest.mark.parametrize(
    "text", ["2024-1-1", "20240101", "2024-W01-1", "2024-02-30", "01/02/2024", " 2024-01-01", "２０２４-01-01", ""]
)
def test_only_one_form_of_a_day_is_taken(text: str) -> None:
    """A day is YYYY-MM-DD and exists; nothing else is guessed at."""
    with pytest.raises(typer.BadParameter):
        options.day(text)


def test_a_day_of_the_right_form_is_taken() -> None:
    """A leap day is a day."""
    assert options.day("2024-02-29") == datetime.date(2024, 2, 29)


def test_a_range_has_both_of_its_ends() -> None:
    """Days are in order, over the end of a month, the last included."""
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
        (None, DAY, None, "both ends"),
        (None, None, DAY, "both ends"),
        (None, DAY, datetime.date(2024, 2, 27), "--from 2024-02-28 is after --to 2024-02-27"),
    ],
)
def test_days_that_make_no_sense_are_refused(
    date: datetime.date | None, first: datetime.date | None, last: datetime.date | None, named: str
) -> None:
    """No day, half a range, a range backwards, or a day and a range: the line says what is wrong."""
    with pytest.raises(UsageError, match=named):
        options.days(date, first, last)
