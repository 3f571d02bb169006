import json
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DecimalType, StringType, StructField, StructType

from spark_app.errors import InputError
from spark_app.settings import Csv
from spark_app.warehouse import hadoop_files, raw_files
from spark_app.warehouse.raw_files import FileFormat, Kind

SCHEMA = StructType([StructField("key", StringType()), StructField("amount", DecimalType(12, 2))])


class Row(NamedTuple):
    """What a test looks at of a raw row."""

    file: str
    key: str | None
    amount: str | None
    extra: dict[str, str] | None
    is_malformed: bool


def rows(read: DataFrame) -> list[Row]:
    """The raw rows, in the order of their files and keys."""
    found = read.select("source_file", "text.key", "text.amount", "extra", "is_malformed").collect()
    return sorted((Row(*row) for row in found), key=lambda row: (row.file, row.key or "", row.amount or ""))


def read_day(spark: SparkSession, folder: Path, form: FileFormat) -> DataFrame:
    """The raw rows of the files of a folder."""
    return raw_files.read(spark, hadoop_files.listed(spark, str(folder)), schema=SCHEMA, form=form)


def read(spark: SparkSession, folder: Path, kind: Kind, **texts: str) -> list[Row]:
    """The rows of a day with these files: the name without its ending, and the content."""
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.{kind}").write_text(text, encoding="utf-8")
    return rows(read_day(spark, folder, FileFormat(kind, source="orders")))


def parquet(folder: Path, name: str, **columns: list[Any]) -> None:
    """A Parquet file with these columns."""
    pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def test_a_line_that_is_not_one_object_is_malformed(spark: SparkSession) -> None:
    """Whatever follows an object is not dropped: two in a line, a comma, brackets, rubbish; nor is a key of two."""
    one = '{"key":"a","amount":1}'
    whole = [one, f"  {one} ", "{}", '{"key":"a","other":{"x":1,"x":2}}']
    broken = [f"{one}{one}", f"{one} x", f"{one},", f"{one}]", f"{one}]]}}", f"{one}}}", f"{one},{one}", f"[{one}]"]
    broken += ["null", '"a"', one[:-1], '{"key":"a","key":"a"}', '{"key":"a","other":1,"other":2}']
    lines = spark.createDataFrame(
        [(line, "a.json") for line in [*whole, *broken, " "]], "value string, source_file string"
    )
    read = raw_files.json_rows(lines, schema=SCHEMA).collect()
    assert [row.raw for row in read if not row.is_malformed] == whole
    assert [row.raw for row in read if row.is_malformed] == broken
    assert [row.extra for row in read if row.extra] == [{"other": '{"x":1,"x":2}'}]
    assert {tuple(row.text) for row in read if row.is_malformed} == {(None, None)}


def test_a_json_number_of_15_digits_or_a_whole_one_keeps_its_value(spark: SparkSession, tmp_path: Path) -> None:
    """However it is written, so that money of 12 digits is exact; whole numbers may be longer than any type."""
    numbers = ["9999999999.99", "-0.01", "12.50", "0.00", "1e2", "1.5E+2", "123456789.012345", "9007199254740993"]
    numbers += ["123456789012345678901234567890"]
    found = read(spark, tmp_path, "json", a="\n".join(f'{{"amount":{number}}}' for number in numbers))
    assert sorted(Decimal(row.amount or "") for row in found) == sorted(map(Decimal, numbers))


@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
def test_a_name_is_no_pattern(spark: SparkSession, tmp_path: Path, kind: Kind) -> None:
    """Characters of patterns in names of files and folders stand for themselves: each file is read once."""
    folder = tmp_path / "a [x]{y,z}?*"
    folder.mkdir()
    names = ["b1", "b[1]", "b*", "b?", "{b}", "b,c d\\e"]
    for name in names:
        if kind == "parquet":
            parquet(folder, name, key=[name])
        else:
            text = json.dumps({"key": name}) if kind == "json" else f'key\n"{name}"\n'
            (folder / f"{name}.{kind}").write_text(text, encoding="utf-8")
    found = rows(read_day(spark, folder, FileFormat(kind, source="orders")))
    assert sorted(row.key or "" for row in found) == sorted(names)


def test_csv_files_have_the_header_that_is_not_blank(spark: SparkSession, tmp_path: Path) -> None:
    """Blank lines before it hide no order of columns; files without a header, or of 0 bytes, have no rows."""
    first, second = "\n \nkey,amount\na,1\n", "\n \namount,key\n2,b\n"
    found = read(spark, tmp_path, "csv", a=first, b=second, c="", d="\n\n")
    assert found == [Row("a.csv", "a", "1", None, False), Row("b.csv", "b", "2", None, False)]


def test_a_day_of_empty_files_has_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Also where no file tells the columns."""
    for kind in ("json", "csv", "parquet"):
        assert read(spark, tmp_path / kind, kind, a="") == []


def test_csv_quotes_are_doubled_within_quotes(spark: SparkSession, tmp_path: Path) -> None:
    """As RFC 4180 says; a comma within quotes is text, and a row with a field too few is malformed."""
    text = 'key,amount\n"a ""b"", c",1\n"say ""hi""",2\n"back\\slash",3\n5\n'
    found = read(spark, tmp_path, "csv", a=text)
    assert [row.key for row in found if not row.is_malformed] == ['a "b", c', "back\\slash", 'say "hi"']
    assert len([row for row in found if row.is_malformed]) == 1


def test_a_line_break_within_quotes_makes_no_wrong_value(spark: SparkSession, tmp_path: Path) -> None:
    """The parts of such a row are malformed, each kept as it was, in any column; so is a line with a stray quote."""
    parts = ['a,"1', '2"', '"b', 'c",3', 'd,"4', '5,"', 'e,"6', 'f" g,7']
    text = "\n".join(["key,amount", *parts, 'h,"8"'])
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    found = read_day(spark, tmp_path, FileFormat("csv", source="orders")).collect()
    assert [row.raw for row in found if row.is_malformed] == parts
    assert {tuple(row.text) for row in found if row.is_malformed} == {(None, None)}
    assert [tuple(row.text) for row in found if not row.is_malformed] == [("h", "8")]
    kept = spark.createDataFrame([(part, "a.csv") for part in parts], "value string, source_file string")
    assert raw_files.json_rows(kept, schema=SCHEMA).where("is_malformed").count() == len(parts)


def test_a_byte_order_mark_is_no_text(spark: SparkSession, tmp_path: Path) -> None:
    """A header after one is a header, and an object an object."""
    assert read(spark, tmp_path / "csv", "csv", a="\ufeffkey,amount\na,1\n") == [Row("a.csv", "a", "1", None, False)]
    assert read(spark, tmp_path / "json", "json", a='\ufeff{"key":"a","amount":1}\n') == [
        Row("a.json", "a", "1", None, False)
    ]


def test_new_columns_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    """Names that mean something to Spark are names."""
    names = ["_metadata", "source_file", "a`b", "a.b", "raw"]
    extra = dict.fromkeys(names, "x")
    found = read(spark, tmp_path / "csv", "csv", a=",".join(["key", *names]) + "\nk" + ",x" * len(names) + "\n")
    assert found == [Row("a.csv", "k", None, extra, False)]
    (tmp_path / "parquet").mkdir()
    parquet(tmp_path / "parquet", "a", key=["k"], **{name: ["x"] for name in names})
    assert read(spark, tmp_path / "parquet", "parquet") == [Row("a.parquet", "k", None, extra, False)]


def test_parquet_files_of_a_day_may_have_different_types(spark: SparkSession, tmp_path: Path) -> None:
    """Each is read as text by its own schema; a name in other letters is another column."""
    parquet(tmp_path, "a", key=["a"], amount=[1.5])
    parquet(tmp_path, "b", key=["b"], amount=pa.array(["2.500"]).cast(pa.decimal128(14, 3)))
    parquet(tmp_path, "c", key=[3], amount=["3.50"])
    parquet(tmp_path, "d", key=["d"], Amount=[4])
    assert read(spark, tmp_path, "parquet") == [
        Row("a.parquet", "a", "1.5", None, False),
        Row("b.parquet", "b", "2.500", None, False),
        Row("c.parquet", "3", "3.50", None, False),
        Row("d.parquet", "d", None, {"Amount": "4"}, False),
    ]


def test_a_parquet_file_that_cannot_be_read_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """An error of the input, not a bug."""
    parquet(tmp_path, "twice", amount=[1], Amount=[2])
    with pytest.raises(InputError, match=r"cannot read \S+/twice\.parquet: .*`amount` already exists"):
        read(spark, tmp_path, "parquet")
    with pytest.raises(InputError, match=r"cannot read \S+/a\.parquet: .* is not a Parquet file"):
        read(spark, tmp_path, "parquet", a="key,amount\n")


def test_rows_of_bronze_are_read_again(spark: SparkSession) -> None:
    """As they were read: from the raw text where it was kept, otherwise from the columns."""
    kept = [
        ("a", "1.00", None, {"other": "x"}, "a.json"),
        (None, None, '{"key":"a","key":"b"}', None, "b.json"),
    ]
    bronze = spark.createDataFrame(
        kept, "key string, amount string, raw string, extra map<string,string>, source_file string"
    )
    assert rows(raw_files.rows_from_bronze(bronze, schema=SCHEMA, names=SCHEMA.names)) == [
        Row("a.json", "a", "1.00", {"other": "x"}, False),
        Row("b.json", None, None, None, True),
    ]


def test_columns_are_delivered_under_other_names(spark: SparkSession, tmp_path: Path) -> None:
    """And are read again from bronze, of the raw text as it came and of the columns as they are called there."""
    delivered = StructType([StructField(name, StringType()) for name in ("Order ID", "Betrag, netto")])
    lines = ['{"Order ID":"a","Betrag, netto":"1.00","more":"x"}', '{"Order ID":"b","Betrag, netto":"?"}']
    frame = spark.createDataFrame([(line, "a.json") for line in lines], "value string, source_file string")
    names = SCHEMA.names[:2]
    found = raw_files.renamed(raw_files.json_rows(frame, schema=delivered), schema=delivered, names=names)
    expected = [("a", "1.00", {"more": "x"}), ("b", "?", None)]
    assert [(*row.text, row.extra) for row in found.collect()] == expected
    kept = [("a", Decimal("1.00"), None, {"more": "x"}, "a.json"), ("b", None, lines[1], None, "a.json")]
    bronze = spark.createDataFrame(
        kept, "key string, amount decimal(9, 2), raw string, extra map<string,string>, source_file string"
    )
    again = raw_files.rows_from_bronze(bronze, schema=delivered, names=names)
    again = raw_files.renamed(again, schema=delivered, names=names)
    assert [(*row.text, row.extra) for row in again.collect()] == expected


def test_json_that_is_read_as_csv_says_what_to_set(spark: SparkSession, tmp_path: Path) -> None:
    """And not that its first line is no header."""
    day = tmp_path / "orders" / "date=2024-01-01"
    day.mkdir(parents=True)
    (day / "a.json").write_text('{"key":"k","amount":1}\n', encoding="utf-8")
    with pytest.raises(
        InputError, match=r"is JSON, and is read as CSV: set raw\.formats\.orders to json in config/app"
    ):
        read_day(spark, day, FileFormat("csv", source="orders"))


def test_a_csv_file_of_other_separators_says_what_to_set(spark: SparkSession, tmp_path: Path) -> None:
    """And is read once that is set."""
    day = tmp_path / "orders" / "date=2024-01-01"
    day.mkdir(parents=True)
    (day / "a.csv").write_text("key;amount;note\nk;1.5;x\n", encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_day(spark, day, FileFormat("csv", source="orders"))
    assert str(raised.value).endswith(
        "a.csv has 2 semicolons and no comma: set raw.csv.orders.separator to ';' in config/app.yml"
    )
    [found] = rows(read_day(spark, day, FileFormat("csv", Csv(separator=";"))))
    assert (found.key, found.amount, found.extra, found.is_malformed) == ("k", "1.5", {"note": "x"}, False)


def test_a_csv_file_without_a_header_says_what_to_set(spark: SparkSession, tmp_path: Path) -> None:
    """And each of its lines is a row once that is set, in all files alike."""
    day = tmp_path / "orders" / "date=2024-01-01"
    day.mkdir(parents=True)
    (day / "a.csv").write_text("k,1.5\n", encoding="utf-8")
    (day / "b.csv").write_text("l,2.5\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a.csv names none of the columns key, amount: .* raw.csv.orders.header to"):
        read_day(spark, day, FileFormat("csv", source="orders")).collect()
    found = rows(read_day(spark, day, FileFormat("csv", Csv(header=False))))
    assert [(row.key, row.amount) for row in found] == [("k", "1.5"), ("l", "2.5")]


def test_a_file_of_json_over_many_lines_has_its_objects(spark: SparkSession, tmp_path: Path) -> None:
    """An array of them, or one; what follows, what is no object, and a key of two are malformed, as in lines."""
    texts = {
        "a": '\ufeff[\n {"key": "a1",\n "amount": 1.5},\n {"key": "a2", "x": {"y": 1}}\n]\n',
        "b": '{\n "key": "b"\n}',
        "c": "[]",
        "d": " \n",
        "e": '[{"key": "e"}] [',
        "f": '[{"key": "f", "key": "g"}, null, 1, {"key": "f1"}]',
        "g": '{"key": "g"}\n{"key": "h"}',
        "h": '[{"key": "h"}',
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    found = rows(read_day(spark, tmp_path, FileFormat("json", multi_line=True)))
    assert [row for row in found if not row.is_malformed] == [
        Row("a.json", "a1", "1.5", None, False),
        Row("a.json", "a2", None, {"x": '{"y":1}'}, False),
        Row("b.json", "b", None, None, False),
        Row("f.json", "f1", None, None, False),
    ]
    assert [row.file for row in found if row.is_malformed] == [
        "e.json",
        "f.json",
        "f.json",
        "f.json",
        "g.json",
        "h.json",
    ]


def test_orc_files_of_a_day_may_have_different_columns(spark: SparkSession, tmp_path: Path) -> None:
    """As those of Parquet; one that is none is named."""
    orc.write_table(pa.table({"key": ["a"], "amount": [1.5]}), tmp_path / "a.orc")
    orc.write_table(pa.table({"key": ["b"], "other": [2]}), tmp_path / "b.orc")
    assert rows(read_day(spark, tmp_path, FileFormat("orc"))) == [
        Row("a.orc", "a", "1.5", None, False),
        Row("b.orc", "b", None, {"other": "2"}, False),
    ]
    (tmp_path / "c.orc").write_text("key,amount\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"cannot read \S+/c\.orc: "):
        read_day(spark, tmp_path, FileFormat("orc"))


def test_a_line_of_text_is_the_value_of_the_only_column(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever it has; a blank line is none."""
    (tmp_path / "a.log").write_text('{"key": 1}\n\n a;"b\n', encoding="utf-8")
    files = hadoop_files.listed(spark, str(tmp_path))
    schema = StructType([StructField("line", StringType())])
    found = raw_files.read(spark, files, schema=schema, form=FileFormat("text"))
    assert sorted(row.text.line for row in found.collect()) == [' a;"b', '{"key": 1}']
    assert not raw_files.is_empty(found, files, form=FileFormat("text"))


@pytest.mark.parametrize("encoding", ["UTF-8", "ISO-8859-1", "windows-1252"])
def test_csv_may_have_another_quote_and_encoding(spark: SparkSession, tmp_path: Path, encoding: Any) -> None:
    """In its header, too; a quote of which a line has an odd number makes it malformed."""
    euro = "ä" if encoding == "ISO-8859-1" else "€"
    lines = [f"key;amount;{euro}", f"'é;{euro}''';1.5;x", "it's;2;y", '"a";3;z']
    (tmp_path / "a.csv").write_bytes("\n".join(lines).encode(encoding))
    csv = Csv(separator=";", quote="'", encoding=encoding)
    found = rows(read_day(spark, tmp_path, FileFormat("csv", csv)))
    assert [row for row in found if not row.is_malformed] == [
        Row("a.csv", '"a"', "3", {euro: "z"}, False),
        Row("a.csv", f"é;{euro}'", "1.5", {euro: "x"}, False),
    ]
    assert len(found) == 3
