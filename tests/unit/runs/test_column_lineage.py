"""The columns of tables in the folder of a run."""

from pathlib import Path

import pytest

from spark_app.errors import InputError
from spark_app.runs import column_lineage, run_record
from spark_app.runs.column_lineage import COLUMNS, Origin, TableColumns
from tests.unit.run_records import example_record

SALES = TableColumns("sales", "/w/sales", {"orders": "/w/orders"}, {"total": [Origin("orders", "amount")], "n": []})


def test_columns_that_were_added_can_be_read(tmp_path: Path) -> None:
    """In the order of the tables; those of a table that is written again replace those of before."""
    assert column_lineage.read(tmp_path) == []
    other = TableColumns("others", "/w/others", {}, {})
    for each in (other, SALES, SALES):
        column_lineage.add(tmp_path, each)
    assert column_lineage.read(tmp_path) == [other, SALES]


def test_the_runs_of_an_application_are_found(tmp_path: Path) -> None:
    """The newest last; what cannot be read is left out."""
    for number, application in enumerate(("local-1", "local-2", "local-1", "local-1")):
        folder = tmp_path / str(number)
        run_record.write(example_record(folder, application_id=application), note=pytest.fail)
        column_lineage.add(folder, TableColumns(f"t{number}", "/w", {}, {}))
    (tmp_path / "2" / COLUMNS).write_text("[")
    (tmp_path / "no-run").mkdir()
    (tmp_path / "no-run" / COLUMNS).write_text("[]")
    assert [each.table for each in column_lineage.of_application(tmp_path, "local-1")] == ["t0", "t3"]


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    """With its path."""
    (tmp_path / COLUMNS).write_text('{"a": 1}')
    with pytest.raises(InputError, match=r"columns\.json does not list the columns of tables"):
        column_lineage.read(tmp_path)
