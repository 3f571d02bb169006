"""The columns of tables in the folder of a run."""

from pathlib import Path

import pytest

from spark_app.errors import InputError
from spark_app.runs import column_lineage
from spark_app.runs.column_lineage import COLUMNS, Origin, TableColumns

SALES = TableColumns("sales", "/w/sales", {"orders": "/w/orders"}, {"total": [Origin("orders", "amount")], "n": []})


def test_columns_that_were_added_can_be_read(tmp_path: Path) -> None:
    """In the order of the tables; those of a table that is written again replace those of before."""
    assert column_lineage.read(tmp_path) == []
    other = TableColumns("others", "/w/others", {}, {})
    for each in (other, SALES, SALES):
        column_lineage.add(tmp_path, each)
    assert column_lineage.read(tmp_path) == [other, SALES]


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    """With its path."""
    (tmp_path / COLUMNS).write_text('{"a": 1}')
    with pytest.raises(InputError, match=r"columns\.json does not list the columns of tables"):
        column_lineage.read(tmp_path)
