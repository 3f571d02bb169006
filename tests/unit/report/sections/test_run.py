import datetime
from pathlib import Path

from spark_app.quality.results import FRESHNESS, ExpectationResult
from spark_app.report import page, run_info
from spark_app.report.scope import scope
from spark_app.report.sections.run import quality
from spark_app.runs.run_record import StaleDay
from tests.unit.eventlog import log
from tests.unit.report.conftest import Read, record_of

RESULTS = [
    ExpectationResult("a.range", 0.02, 0.05, 2, 100),
    ExpectationResult("b.type", 0.0, 0.0, 0, 100),
    ExpectationResult(FRESHNESS, 90_000.0, 86_400.0),
    ExpectationResult("c.known", 0.3, None, 30, 100),
]


def test_breached_expectations_come_first(reading: Read, run_folder: Path) -> None:
    """Then those with most violations; those that every row met are apart."""
    record_of(run_folder, expectations=RESULTS)
    result = quality(scope(reading([log.started(), log.ended()]).app, run_info.read(run_folder)))
    assert result is not None
    assert [each.expectation for each in result.violated] == [FRESHNESS, "c.known", "a.range"]
    assert [each.expectation for each in result.met] == ["b.type"]


def test_freshness_is_in_seconds_and_counts_no_rows(reading: Read, run_folder: Path, tmp_path: Path) -> None:
    """All other expectations are shares of rows."""
    record_of(run_folder, expectations=RESULTS)
    output = tmp_path / "r.html"
    page.write(reading([log.started(), log.ended()]), output=output, run=run_info.read(run_folder))
    rows = [line for line in output.read_text().splitlines() if 'data-l="measured"' in line]
    cells = [[cell.partition(">")[2].partition("<")[0] for cell in row.split("<td")[2:6]] for row in rows]
    assert cells == [
        ["–", "–", "90,000 s", "86,400 s"],
        ["30", "100", "30.0000%", "any"],
        ["2", "100", "2.0000%", "5.0000%"],
    ]


def test_days_that_were_made_of_what_has_changed_are_listed(reading: Read, run_folder: Path, tmp_path: Path) -> None:
    """With what to do; a long list ends with the command that shows all."""
    days = [datetime.date(2024, 1, day) for day in range(1, 31)]
    record_of(run_folder, stale=[StaleDay("etl.bills", "bills", day, ["usage changed"]) for day in days])
    output = tmp_path / "r.html"
    page.write(reading([log.started(), log.ended()]), output=output, run=run_info.read(run_folder))
    text = output.read_text()
    assert "<p>30 days of tables: <code>spark-app etl --stale</code> runs them.</p>" in text
    assert [f"bills of {day}: usage changed" in text for day in (days[0], days[29])] == [True, False]
    assert "<code>spark-app stale</code> lists all" in text
