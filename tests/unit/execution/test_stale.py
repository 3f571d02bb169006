"""What was made of what has changed since is found, with the reason, and nothing else."""

import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import DateType, StringType, StructField, StructType

from spark_app.execution.stale import stale, summary
from spark_app.warehouse.periods import RAW, LocalStorage, Period, Periods
from spark_app.warehouse.tables import Table
from tests.declared import pipeline

DAY = datetime.date(2024, 1, 2)
DAYS = StructType([StructField("day", DateType()), StructField("name", StringType())])
PIPELINES = {
    "etl.usage": pipeline(writes=(Table("usage", DAYS, ("day",)), Table("totals", DAYS, key=("name",)))),
    "etl.bills": pipeline(writes=(Table("bills", DAYS, ("day",)),)),
}


@pytest.fixture
def periods(tmp_path: Path) -> Periods:
    """A day of three tables, each made of the one before."""
    periods = Periods(LocalStorage(tmp_path))
    periods.put("usage", DAY, Period("run 1", {f"{RAW}readings": "files"}))
    periods.put("totals", DAY, Period("run 1", {"usage": "run 1"}))
    periods.put("bills", DAY, Period("run 2", {"usage": "run 1", "totals": f"{DAY} run 1"}))
    return periods


def found(periods: Periods, files: str | None = "files") -> list[str]:
    """A line for each day that is stale."""
    return [str(each) for each in stale(periods, PIPELINES, lambda _source, _day, _was: files)]


def test_what_nothing_has_changed_for_is_not_stale(periods: Periods) -> None:
    """Also where nobody can tell which raw files there are."""
    assert found(periods) == found(periods, None) == []


def test_other_raw_files_make_the_first_table_stale(periods: Periods) -> None:
    """What follows is stale when that was written."""
    assert found(periods, "others") == ["usage of 2024-01-02: raw files of readings changed"]


def test_a_day_that_was_written_again_makes_all_stale_that_was_made_of_it(periods: Periods) -> None:
    """In tables of days and in states."""
    periods.put("usage", DAY, Period("run 3", {f"{RAW}readings": "files"}))
    assert found(periods) == ["totals of 2024-01-02: usage changed", "bills of 2024-01-02: usage changed"]


def test_a_state_makes_the_days_stale_that_read_it_as_of_then(periods: Periods) -> None:
    """Another day of the state says nothing of them."""
    periods.put("totals", DAY + datetime.timedelta(days=1), Period("run 4", {"usage": ""}))
    periods.put("totals", DAY - datetime.timedelta(days=1), Period("run 5", {"usage": ""}))
    assert found(periods) == []
    periods.put("totals", DAY, Period("run 6", {"usage": "run 1"}))
    assert found(periods) == ["bills of 2024-01-02: totals changed"]


@pytest.mark.parametrize(
    ("period", "reason"),
    [
        (Period("run 1", {"usage": "run 1"}, is_done=False), "a day before it changed"),
        (Period("", {"usage": "run 1"}, is_done=False), "a run was ended while it wrote it"),
    ],
)
def test_a_day_that_is_not_done_is_stale(periods: Periods, period: Any, reason: str) -> None:
    """Whether a run was killed, or has left it to the run of another day."""
    periods.put("totals", DAY, period)
    assert reason in "\n".join(found(periods))


def test_a_day_that_was_rejected_waits_for_other_files(periods: Periods) -> None:
    """To run it again would be rejected again."""
    periods.put("usage", DAY, Period("run 1", {f"{RAW}readings": "files"}, is_done=False, is_rejected=True))
    assert found(periods) == []
    assert found(periods, "others") == ["usage of 2024-01-02: raw files of readings changed"]


def test_one_line_says_how_many_and_what_to_do(periods: Periods) -> None:
    """And nothing is said of none."""
    assert summary([]) is None
    periods.put("usage", DAY, Period("run 3", {f"{RAW}readings": "files"}))
    line = summary(stale(periods, PIPELINES, lambda _source, _day, _was: None))
    assert line == "1 day of 2 tables were made of what has changed since: spark-app etl --stale"
