"""What is wrong with a table of a database that a source names is one line with its place, before Spark starts."""

import re
from pathlib import Path
from typing import Any

import pytest

from spark_app import jdbc
from spark_app.engine.code_location import DeclarationError

HERE = Path(__file__).name


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"url": "postgresql://me:secret@host/db"}, "jdbc takes the name of the variable that has the URL, so that no"),
        ({"connections": 0}, "connections=0 of jdbc: at least 1 reads the table customers"),
        ({"table": " "}, "jdbc names a table, and by the column that says which day a row belongs to"),
        ({"by": ""}, "jdbc names a table, and by the column that says which day a row belongs to"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(given: dict[str, Any], problem: str) -> None:
    """A URL with a password is not repeated."""
    right = {"url": "CRM_URL", "table": "customers", "by": "updated_at"}
    with pytest.raises(DeclarationError, match=rf"{HERE}:\d+: {re.escape(problem)}") as raised:
        jdbc(**right | given)
    assert "secret" not in str(raised.value)
