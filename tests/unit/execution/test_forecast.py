"""How long days take to be written again, by the runs that are kept."""

import datetime
from pathlib import Path

import pytest
from pyspark.sql.types import DateType, StructField, StructType

from spark_app.execution.forecast import Forecast, forecasts, together
from spark_app.runs import run_record
from spark_app.runs.run_record import RunRecord
from spark_app.warehouse.periods import LocalStorage, Period, Periods
from spark_app.warehouse.tables import Table
from tests.declared import pipeline

DAYS = [datetime.date(2024, 1, number) for number in range(1, 5)]
SCHEMA = StructType([StructField("day", DateType())])
PIPELINES = {
    "etl.usage": pipeline(writes=(Table("usage", SCHEMA, ("day",)), Table("peaks", SCHEMA, ("day",)))),
    "etl.bills": pipeline(writes=(Table("bills", SCHEMA, ("day",)),)),
}


@pytest.fixture
def periods(tmp_path: Path) -> Periods:
    """Four days of one pipeline, and one of another."""
    periods = Periods(LocalStorage(tmp_path))
    for day in DAYS:
        periods.put("usage", day, Period("run"))
    periods.put("peaks", DAYS[0], Period("run"))
    periods.put("bills", DAYS[0], Period("run"))
    return periods


def keep(
    runs: Path, pipeline: str, day: datetime.date, seconds: float, number: int, outcome: str = "succeeded"
) -> None:
    """Keeps the record of a run."""
    started = datetime.datetime(2024, 2, 1, tzinfo=datetime.UTC) + datetime.timedelta(hours=number)
    run_id = f"{started:%Y%m%dT%H%M%SZ}-{pipeline}-{day}-{number:06x}"
    (runs / run_id).mkdir(parents=True)
    record = RunRecord(run_id, pipeline, outcome, started, seconds, runs / run_id, str(day))  # type: ignore[arg-type]
    run_record.write(record, note=print)


def test_a_day_takes_what_its_newest_run_took_and_others_the_median(periods: Periods, tmp_path: Path) -> None:
    """The interval is as wide as the runs differ; runs that failed say nothing."""
    runs = tmp_path / "runs"
    for number, (day, seconds) in enumerate([(0, 100), (0, 10), (1, 20), (2, 10), (2, 10)]):
        keep(runs, "etl.usage", DAYS[day], seconds, number)
    keep(runs, "etl.usage", DAYS[3], 1, 9, "failed")
    (runs / "of-something-else").mkdir()
    [found] = forecasts({"usage"}, PIPELINES, periods, runs)
    total = 10 + 20 + 10 + 10  # the fourth day has no run that succeeded
    assert (found.pipeline, found.days, found.runs) == ("etl.usage", 4, 5)
    assert found.low_seconds == pytest.approx(total)
    assert found.high_seconds == pytest.approx(total * (2 + 0.6 * 8))
    assert together([found]) == (found.low_seconds, found.high_seconds)


def test_few_runs_do_not_say_how_long(periods: Periods, tmp_path: Path) -> None:
    """Nor does the sum with such a pipeline."""
    keep(tmp_path / "runs", "etl.bills", DAYS[0], 5, 1)
    found = forecasts({"bills", "peaks"}, PIPELINES, periods, tmp_path / "runs")
    assert found == [Forecast("etl.usage", 1, 0), Forecast("etl.bills", 1, 1)]
    assert together(found) is None


def test_what_has_no_days_takes_nothing(periods: Periods, tmp_path: Path) -> None:
    """Of tables that nothing was written of."""
    assert forecasts({"others"}, PIPELINES, periods, tmp_path) == []
