"""What is wrong with files that a source names is one line with its place, before Spark starts."""

from pathlib import Path
from typing import Any

import pytest

from spark_app import Source, files
from spark_app.engine.code_location import DeclarationError

HERE = Path(__file__).relative_to(Path.cwd())
DAY = "landing/{date}/*"


@pytest.mark.parametrize(
    ("pattern", "options", "expected"),
    [
        (DAY, {"format": "parqet"}, "files of format 'parqet' cannot be read: do you mean parquet?"),
        (DAY, {"format": "avro"}, "files of format 'avro' cannot be read: there are json, csv, parquet, orc, text"),
        (DAY, {"format": "csv", "seperator": ";"}, "files of format csv have no option seperator: there are sep, "),
        (
            DAY,
            {"format": "csv", "encodng": "UTF-8"},
            "files of format csv have no option encodng: do you mean encoding?",
        ),
        (
            DAY,
            {"format": "json", "multiline": True},
            "files of format json have no option multiline: do you mean multiL",
        ),
        (DAY, {"format": "parquet", "sep": ";"}, "files of format parquet have no option sep: there are none"),
        (DAY, {"format": "csv", "sep": ";;"}, "sep=';;' of files: sep is one character"),
        (DAY, {"format": "csv", "header": "no"}, "header='no' of files: header is True or False"),
        (
            DAY,
            {"format": "csv", "encoding": "UTF-16"},
            "encoding='UTF-16' of files: encoding is one of UTF-8, ISO-8859-1,",
        ),
        ("landing/*", {"format": "csv"}, "files 'landing/*': it does not say where the day stands: write {date}, or"),
    ],
)
def test_files_that_cannot_be_read_are_refused(pattern: str, options: dict[str, Any], expected: str) -> None:
    """With the nearest right name, or all of them."""
    with pytest.raises(DeclarationError) as raised:
        files(pattern, **options)
    line = raised.traceback[0].lineno + 1
    assert str(raised.value).startswith(f"{HERE}:{line}: {expected}")


@pytest.mark.parametrize(
    ("given", "schema", "expected"),
    [
        (
            "landing/{date}",
            "line string",
            "source log: 'landing/{date}' does not say where rows come from: write files('landing",
        ),
        (files(DAY, format="text"), "line string, other string", "source log: a line of text is one value: its schema"),
        (
            files(DAY, format="text"),
            "line int",
            "source log: a line of text is one value: its schema has one column, a",
        ),
    ],
)
def test_a_source_whose_files_do_not_fit_is_refused(given: Any, schema: str, expected: str) -> None:
    """Where it is declared."""
    with pytest.raises(DeclarationError, match=":") as raised:
        Source("log", given, schema=schema, key="line", newest="line")
    assert expected in str(raised.value)


def test_what_a_source_says_of_its_files_is_kept() -> None:
    """Format and options, with the place of the declaration for what is said of a file."""
    found = files(DAY, format="csv", sep=";", header=False, quote="'", encoding="windows-1252").format
    assert (found.csv.separator, found.csv.header, found.csv.quote, found.csv.encoding) == (
        ";",
        False,
        "'",
        "windows-1252",
    )
    assert found.set("separator", ";").startswith(f"set sep=';' in {HERE}:")
    assert files(DAY, multiLine=True).format.multi_line
    source = Source("log", files(DAY, format="text"), schema="line string", key="line", newest="line")
    assert source.origin is not None
