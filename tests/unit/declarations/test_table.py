"""What is wrong with a table that a source names is one line with its place, before Spark starts."""

import re
from pathlib import Path
from typing import Any

import pytest

from spark_app import table
from spark_app.engine.code_location import DeclarationError
from spark_app.settings import Raw, load_settings

HERE = Path(__file__).name


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("lake/orders", {"format": "detla"}), "a table of format 'detla' cannot be read: do you mean delta?"),
        (("sales.orders", {"format": "delta"}), "table 'sales.orders' is a name of a catalog, which knows its format"),
        (("lake/orders", {"by": " "}), "table 'lake/orders': by is empty: name the column that says which day"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(arguments: tuple[str, dict[str, Any]], problem: str) -> None:
    """With the nearest right word."""
    name, options = arguments
    with pytest.raises(DeclarationError, match=rf"{HERE}:\d+: {re.escape(problem)}"):
        table(name, **{"by": "day"} | options)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("lake/orders", "/raw/lake/orders"),
        ("./orders", "/raw/orders"),
        ("/lake/orders/", "/lake/orders"),
        ("s3a://lake/orders", "s3a://lake/orders"),
        ("sales.orders", None),
    ],
)
def test_a_folder_is_below_the_raw_rows_unless_it_is_absolute(name: str, path: str | None) -> None:
    """A name without a slash is one of a catalog, which is in no folder."""
    settings = load_settings().model_copy(update={"raw": Raw(path="/raw/", formats={})})
    assert table(name, by="day").of(settings).path == path
