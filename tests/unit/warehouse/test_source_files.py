"""Which files a source has of a day, and of which days it has some."""

import datetime
import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_app.errors import InputError
from spark_app.settings import Raw, Settings, load_settings
from spark_app.warehouse import hadoop_files
from spark_app.warehouse.hadoop_files import LocalReader, SparkReader
from spark_app.warehouse.raw_files import FileFormat
from spark_app.warehouse.source_files import FilePattern, Files, SourceFiles, origin

DAY = datetime.date(2024, 5, 1)
WITHOUT_SPARK = hadoop_files.listed_locally


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """With raw files in a folder whose name has characters of patterns."""
    (tmp_path / "raw [1]*").mkdir()
    return load_settings().model_copy(update={"raw": Raw(path=str(tmp_path / "raw [1]*"), formats={})})


def of(settings: Settings, pattern: str) -> SourceFiles:
    """The raw files of a source with a pattern."""
    form = FileFormat("csv", declared="shop/sources.py:3")
    return Files(FilePattern.of(pattern), form).of(settings)


def written(settings: Settings, *names: str) -> None:
    """Writes files below the folder of the raw files."""
    for name in names:
        file = Path(settings.raw_path, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name, encoding="utf-8")


def names(settings: Settings, files: SourceFiles, day: datetime.date = DAY) -> list[str]:
    """The files of a day by their paths below the folder of the raw files."""
    found = files.of_day(WITHOUT_SPARK, day)
    return [Path(each.path).relative_to(settings.raw_path).as_posix() for each in found]


@pytest.mark.parametrize(
    ("pattern", "day", "other", "expected"),
    [
        ("l/{date}", ["l/2024-05-01/a.csv", "l/2024-05-01/b"], ["l/2024-05-02/a", "l/2024-05-01/x/c"], "2024-05-02"),
        ("l/{date:%Y/%m/%d}/*.csv", ["l/2024/05/01/a.csv"], ["l/2024/05/01/a.txt", "l/2024/06/01/a.csv"], "2024-06-01"),
        ("o_{date:%Y%m%d}*.csv", ["o_20240501-1.csv", "o_20240501.csv"], ["o_20240503.csv"], "2024-05-03"),
        ("*/{date}/o.csv", ["s1/2024-05-01/o.csv", "s2/2024-05-01/o.csv"], ["s1/2024-05-02/o.csv"], "2024-05-02"),
        ("{date}/[ab]?.csv", ["2024-05-01/a1.csv"], ["2024-05-01/c1.csv", "2024-05-04/a1.csv"], "2024-05-04"),
        ("{date:%Y}/{date}.csv", ["2024/2024-05-01.csv"], ["2023/2024-05-01.csv", "2024/2024-05-02.csv"], "2024-05-02"),
        ("{date:%y-%j}/*", ["24-122/a.csv"], ["24-123/a.csv", "24-999/a.csv"], "2024-05-02"),
        ("{date}/*", ["2024-05-01/a", "2024-05-01/x.parquet/part-0"], ["2024-05-02/a", "2024-02-31/a"], "2024-05-02"),
    ],
)
def test_a_pattern_has_the_files_of_its_day(
    settings: Settings, pattern: str, day: list[str], other: list[str], expected: str
) -> None:
    """And no other ones; a folder stands for its files, and what is hidden is no data."""
    hidden = [str(Path(name).with_name(f"{mark}{Path(name).name}")) for name in day for mark in "._"]
    written(settings, *day, *other, *hidden)
    files = of(settings, pattern)
    assert names(settings, files) == day
    assert files.days(WITHOUT_SPARK) == [DAY, datetime.date.fromisoformat(expected)]


def test_without_a_pattern_a_day_has_a_folder(settings: Settings) -> None:
    """As always, and with the name of content of always, so that no day is stale after an update."""
    written(settings, "orders/date=2024-05-01/a.json", "orders/date=2024-05-02/b.json", "customers/date=2024-05-01/c")
    files = origin(settings, "orders")
    assert isinstance(files, SourceFiles)
    assert names(settings, files) == ["orders/date=2024-05-01/a.json"]
    assert files.days(WITHOUT_SPARK) == [DAY, DAY + datetime.timedelta(days=1)]
    assert files.where(DAY) == f"{settings.raw_path}/orders/date=2024-05-01"
    assert files.folder == f"{settings.raw_path}/orders"
    stat = Path(settings.raw_path, "orders/date=2024-05-01/a.json").stat()
    seen = [("a.json", stat.st_size, stat.st_mtime_ns // 1_000_000)]
    assert files.content(LocalReader(), DAY) == hashlib.sha256(repr(seen).encode()).hexdigest()[:16]


@pytest.mark.parametrize("pattern", ["*/{date}/*.csv", "s1/{date}/a.csv", "s1/{date}"])
def test_the_content_changes_with_the_files_of_its_day(settings: Settings, pattern: str) -> None:
    """One that comes, goes, or is written again; without any it is empty. Those of other days say nothing."""
    files = of(settings, pattern)
    assert files.content(LocalReader(), DAY) == ""
    written(settings, "s1/2024-05-01/a.csv")
    first = files.content(LocalReader(), DAY)
    written(settings, "s1/2024-05-02/a.csv")
    assert files.content(LocalReader(), DAY) == first != ""
    file = Path(settings.raw_path, "s1/2024-05-01/a.csv")
    os.utime(file, (1, 1))
    assert files.content(LocalReader(), DAY) not in ("", first)
    file.unlink()
    assert files.content(LocalReader(), DAY) == ""


@pytest.mark.parametrize("form", [str, lambda path: Path(path).as_uri()])
def test_spark_sees_the_files_that_are_seen_without_it(
    spark: SparkSession, tmp_path: Path, form: Callable[[str], str]
) -> None:
    """So that a day that a run has written is not stale; also of a pattern that is a path or a URI of its own."""
    settings = load_settings().model_copy(update={"raw": Raw(path=form(str(tmp_path)), formats={})})
    for name in ("s1/2024-05-01/a b.csv", "s2/2024-05-01/b.csv", "s2/2024-05-01/_b.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")
    for pattern in ("*/{date}/*.csv", f"{form(str(tmp_path))}/*/{{date}}/*.csv"):
        files = of(settings, pattern)
        with_spark = partial(hadoop_files.listed, spark)
        assert [each.path for each in files.of_day(with_spark, DAY)] == [
            f"file:{tmp_path}/s1/2024-05-01/a b.csv",
            f"file:{tmp_path}/s2/2024-05-01/b.csv",
        ]
        assert LocalReader().reaches(files.folder)
        assert files.content(SparkReader(spark), DAY) == files.content(LocalReader(), DAY) != ""
        assert files.days(with_spark) == [DAY]


def test_a_day_without_files_says_where_they_should_be(settings: Settings) -> None:
    """And of which days there are some."""
    files = of(settings, "l/{date:%Y/%m/%d}/*.csv")
    where = f"no raw data at {settings.raw_path}/l/2024/05/01/*.csv: deliver the day's files there, or correct"
    with pytest.raises(InputError) as raised:
        files.required(WITHOUT_SPARK, DAY)
    assert str(raised.value) == f"{where} shop/sources.py:3"
    written(settings, "l/2024/04/29/a.csv")
    with pytest.raises(InputError, match=r"; there is one other day, 2024-04-29$"):
        files.required(WITHOUT_SPARK, DAY)
    written(settings, "l/2024/04/30/a.csv")
    with pytest.raises(InputError) as raised:
        files.required(WITHOUT_SPARK, DAY)
    assert str(raised.value) == f"{where} shop/sources.py:3; there are 2 other days, 2024-04-29 to 2024-04-30"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("landing/*.csv", "it does not say where the day stands: write {date}, or {date:%Y/%m/%d}"),
        ("landing/{date:%Y/%m}/*.csv", "it does not say where the day stands: write {date}, or {date:%Y/%m/%d}"),
        ("landing/{day}/*.csv", "{day} means nothing: do you mean {date}?"),
        ("landing/{date:%Y-%b-%d}", "%b is no part of a day: there are %Y, %y, %m, %d, %j"),
        ("landing/{date", "a brace stands alone: the day is {date}, and a name has no braces"),
        ("landing/**/{date}.csv", "** stands for no number of folders: write * for each folder"),
    ],
)
def test_a_pattern_that_names_no_day_is_refused(pattern: str, expected: str) -> None:
    """With what to write."""
    with pytest.raises(ValueError, match=r".") as raised:
        FilePattern.of(pattern)
    assert str(raised.value) == expected
