"""What each day of each table was made of is known, also of one whose writer was killed."""

import datetime
from pathlib import Path

import pytest

from spark_app.warehouse.periods import Effect, LocalStorage, Period, Periods, StoredFiles

DAY = datetime.date(2024, 1, 2)
LATER = datetime.date(2024, 1, 4)


@pytest.fixture
def periods(tmp_path: Path) -> Periods:
    """Those of an empty warehouse."""
    return Periods(LocalStorage(tmp_path))


def test_a_day_is_known_after_it_was_written_and_without_spark(periods: Periods, tmp_path: Path) -> None:
    """In the order of the days."""
    written = Period("run 1", {"usage": "run 0"}, base=3, first="2024-01-02")
    periods.put("totals", LATER, Period("run 2"))
    periods.put("totals", DAY, written)
    assert list(periods.days("totals")) == [DAY, LATER]
    assert Periods(StoredFiles(tmp_path)).period("totals", DAY) == written
    assert periods.days("other") == {}


def test_a_file_that_was_not_written_whole_is_a_day_that_is_not_done(periods: Periods, tmp_path: Path) -> None:
    """Its writer was killed."""
    periods.put("totals", DAY, Period("run 1"))
    (tmp_path / "_periods" / "totals" / f"{DAY}.json").write_text('{"content": "ru', encoding="utf-8")
    assert not periods.period("totals", DAY).is_done


def test_a_table_of_days_has_the_content_of_the_day(periods: Periods) -> None:
    """Of another day it has none."""
    periods.put("usage", DAY, Period("run 1"))
    assert periods.content("usage", DAY, is_of_days=True) == "run 1"
    assert periods.content("usage", LATER, is_of_days=True) == ""


def test_a_state_has_the_content_of_the_last_day_until_then(periods: Periods) -> None:
    """A day that comes in between makes it another one."""
    periods.put("totals", DAY, Period("run 1"))
    assert periods.content("totals", LATER, is_of_days=False) == "2024-01-02 run 1"
    assert periods.content("totals", DAY - datetime.timedelta(days=1), is_of_days=False) == ""
    periods.put("totals", datetime.date(2024, 1, 3), Period("run 2"))
    assert periods.content("totals", LATER, is_of_days=False) == "2024-01-03 run 2"


def test_a_history_has_the_content_of_the_last_change_that_is_about_the_day(periods: Periods) -> None:
    """A change of a later day that says nothing of it leaves it as it is."""
    periods.add_effects("meters", [Effect("", "", "run 1")])
    periods.add_effects("meters", [Effect("2024-01-03", "", "run 2")])
    assert periods.content("meters", DAY, is_of_days=False) == "run 1"
    periods.add_effects("meters", [Effect("2024-01-01", "2024-01-02", "run 3")])
    assert periods.content("meters", DAY, is_of_days=False) == "run 3"
    assert periods.content("meters", LATER, is_of_days=False) == "run 2"


def test_changes_that_a_newer_one_covers_are_forgotten(periods: Periods) -> None:
    """So that the file stays small."""
    for number in range(20):
        periods.add_effects("meters", [Effect("2024-01-03", "", f"run {number}")])
    assert periods.effects("meters") == [Effect("2024-01-03", "", "run 19")]


@pytest.mark.parametrize("text", ["", '[["2024-01-03","","ru'])
def test_a_file_of_changes_that_was_cut_short_is_a_change_of_all_days(
    periods: Periods, tmp_path: Path, text: str
) -> None:
    """What was made of the history is made again, once, and the next change is added to it."""
    periods.add_effects("meters", [Effect("2024-01-03", "", "run 1")])
    (tmp_path / "_periods" / "meters" / "effects.json").write_text(text, encoding="utf-8")
    unknown = periods.content("meters", DAY, is_of_days=False)
    assert unknown.startswith("unknown since ")
    assert periods.content("meters", LATER, is_of_days=False) == unknown
    periods.add_effects("meters", [Effect("2024-01-03", "", "run 2")])
    assert periods.content("meters", DAY, is_of_days=False) == unknown
    assert periods.content("meters", LATER, is_of_days=False) == "run 2"
