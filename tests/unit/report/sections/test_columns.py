from pathlib import Path

from spark_app.report import page, run_info
from spark_app.report.limits import Limits
from spark_app.report.scope import scope
from spark_app.report.sections.columns import columns
from spark_app.runs import column_lineage
from spark_app.runs.column_lineage import COLUMNS, Origin, TableColumns
from tests.unit.eventlog import log
from tests.unit.report import made
from tests.unit.report.conftest import Read, record_of

LINES = [log.started(), log.ended()]


def test_each_column_of_a_table_names_those_that_it_is_computed_of(reading: Read, run_folder: Path) -> None:
    """A literal says that it has none; the report is folded, and names are text."""
    record_of(run_folder)
    origins = {"total": [Origin("orders", "amount"), Origin("orders", "tax")], "currency": [], made.HOSTILE: []}
    column_lineage.add(run_folder, TableColumns("daily_orders", "/w/daily_orders", {"orders": "/w/orders"}, origins))
    output = run_folder / "r.html"
    page.write(reading(LINES), output=output, run=run_info.read(run_folder))
    text = output.read_text()
    section = text[text.index('<section id="columns">') :]
    section = section[: section.index("</section>")]
    assert '<details class="plain"><summary><b class="foreign">daily_orders</b> 3 columns' in section
    assert section.index(">total<") < section.index(">orders.amount<") < section.index(">orders.tax<")
    assert section.index(">currency<") < section.index("no column: a literal, or a count of rows")
    assert made.HOSTILE not in text


def test_a_run_without_columns_has_no_section(reading: Read, run_folder: Path, tmp_path: Path) -> None:
    """Nor has one whose file of them is damaged."""
    record_of(run_folder)
    (run_folder / COLUMNS).write_text("[")
    page.write(reading(LINES), output=tmp_path / "r.html", run=run_info.read(run_folder))
    assert 'id="columns"' not in (tmp_path / "r.html").read_text()


def test_the_first_columns_are_listed(reading: Read, run_folder: Path) -> None:
    """The others are counted."""
    record_of(run_folder)
    column_lineage.add(run_folder, TableColumns("wide", "/w", {}, {str(number): [] for number in range(600)}))
    [shown] = columns(scope(reading(LINES).app, run_info.read(run_folder)), Limits())
    assert (len(shown.shown), shown.total) == (500, 600)
