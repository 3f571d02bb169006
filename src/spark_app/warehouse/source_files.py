"""Which raw files a source has of a day, and of which days it has some; without a Spark job, or without Spark.

A pattern names the files of a day: `landing/{date:%Y/%m/%d}/*.csv.gz`. A source without one has a folder for each day,
which is a pattern, too, so that nobody else tells them apart.
"""

import datetime
import fnmatch
import glob
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final, NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructType

from spark_app.errors import InputError
from spark_app.formatting import quantity
from spark_app.settings import Settings
from spark_app.warehouse import hadoop_files, raw_files
from spark_app.warehouse.hadoop_files import FileReader, ListFolder, StoredFile
from spark_app.warehouse.origin import DeclaredOrigin, Origin, RawDay
from spark_app.warehouse.periods import RAW
from spark_app.warehouse.raw_files import FileFormat

DIGITS: Final = {"Y": 4, "y": 2, "m": 2, "d": 2, "j": 3}
"""How many digits each part of a date has, by its letter in `strftime`."""
WHOLE: Final = ({"Y", "m", "d"}, {"y", "m", "d"}, {"Y", "j"}, {"y", "j"})
"""The parts that make a day."""
_PART: Final = "\0"
"""What stands before the letter of a part of the date in a template: no path has it."""
_WILDCARDS: Final = frozenset("*?[")


@dataclass(frozen=True)
class FilePattern:
    """The path of the files of a day, with `*`, `?` and `[...]` within names; the files of a folder stand for it.

    Names that begin with a dot or an underscore are those of no data, as for Spark.

    Attributes:
        template: The path, with the parts of the day instead of the day.
    """

    template: str

    @classmethod
    def of(cls, text: str) -> "FilePattern":
        """The pattern that a text says: `{date}` is the day as YYYY-MM-DD, `{date:%Y/%m/%d}` in another form.

        Raises:
            ValueError: It does not name a day, or says what no pattern can.
        """
        template = re.sub(r"\{([^{}]*)\}", _parts, text.rstrip("/"))
        if "{" in template or "}" in template:
            raise ValueError("a brace stands alone: the day is {date}, and a name has no braces")
        if "**" in template:
            raise ValueError("** stands for no number of folders: write * for each folder")
        parts = {*re.findall(f"{_PART}(.)", template)}
        if not any(whole <= parts for whole in WHOLE):
            raise ValueError("it does not say where the day stands: write {date}, or {date:%Y/%m/%d}")
        return cls(template)

    @classmethod
    def of_folders(cls, source: str) -> "FilePattern":
        """A folder for each day: `<source>/date=YYYY-MM-DD`."""
        return cls(f"{glob.escape(source)}/date={_parts_of('%Y-%m-%d')}")

    @property
    def is_absolute(self) -> bool:
        """Whether it is a path or a URI of its own, and not below another folder."""
        return self.template.startswith("/") or ":/" in self.template.partition(_PART)[0]

    def on(self, day: datetime.date) -> "FilePattern":
        """The pattern of the files of a day."""
        return FilePattern(re.sub(f"{_PART}(.)", lambda part: day.strftime(f"%{part[1]}"), self.template))

    @property
    def segments(self) -> list[str]:
        """The patterns of the names on the path."""
        return self.template.split("/")


def _parts(braces: re.Match[str]) -> str:
    name, _, form = braces[1].partition(":")
    if name != "date":
        raise ValueError(f"{braces[0]} means nothing: do you mean {{date}}?")
    return _parts_of(form or "%Y-%m-%d")


def _parts_of(form: str) -> str:
    unknown = [letter for letter in re.findall(r"%(.?)", form) if letter not in DIGITS]
    if unknown:
        raise ValueError(f"%{unknown[0]} is no part of a day: there are {', '.join(f'%{each}' for each in DIGITS)}")
    return form.replace("%", _PART)


class _Found(NamedTuple):
    """A path that matches, its name below where the search began, and the parts of a date in it."""

    name: str
    file: StoredFile
    parts: Mapping[str, str]


def _matching(
    list_folder: ListFolder, path: str, segments: Sequence[str], name: str = "", parts: Mapping[str, str] | None = None
) -> Iterator[_Found]:
    parts = parts or {}
    if not segments:
        yield _Found(name, StoredFile(path, "", is_file=False), parts)
        return
    first, *others = segments
    if not _is_open(first):
        yield from _matching(list_folder, f"{path}/{first}", others, f"{name}{first}/", parts)
        return
    expression = _expression(first)
    for each in list_folder(path):
        match = expression.fullmatch(each.name)
        if match is None or any(parts.get(key, value) != value for key, value in match.groupdict().items()):
            continue
        known = {**parts, **match.groupdict()}
        if not others:
            yield _Found(name, each, known)
        elif not each.is_file:
            yield from _matching(list_folder, each.path, others, f"{name}{each.name}/", known)


def _is_open(segment: str) -> bool:
    """Whether several names may match."""
    return _PART in segment or not _WILDCARDS.isdisjoint(segment)


def _expression(segment: str) -> re.Pattern[str]:
    seen = set[str]()

    def group(part: re.Match[str]) -> str:
        letter = part[1]
        if letter in seen:
            return f"(?P={letter})"
        seen.add(letter)
        return rf"(?P<{letter}>\d{{{DIGITS[letter]}}})"

    return re.compile(re.sub(f"{_PART}(.)", group, fnmatch.translate(segment)))


@dataclass(frozen=True)
class Files:
    """Where the files of a source are, and how they are written, as `files(...)` declares it."""

    pattern: FilePattern
    format: FileFormat

    @property
    def declared(self) -> str:
        """See `DeclaredOrigin`."""
        return self.format.declared

    def problem(self, schema: StructType) -> str | None:
        """See `DeclaredOrigin`."""
        if self.format.kind == "text" and [field.dataType for field in schema] != [StringType()]:
            return "a line of text is one value: its schema has one column, a string"
        return None

    def lacks(self) -> None:
        """See `DeclaredOrigin`."""

    def of(self, settings: Settings) -> "SourceFiles":
        """See `DeclaredOrigin`."""
        return SourceFiles(settings.raw_path.rstrip("/"), self.pattern, self.format)


def origin(settings: Settings, source: str, declared: DeclaredOrigin | None = None) -> Origin:
    """Where the rows of a source come from: as it declares, otherwise from the files in the folders of days."""
    if declared is not None:
        return declared.of(settings)
    kind, csv = settings.raw.format_of(source), settings.raw.csv_of(source)
    return Files(FilePattern.of_folders(source), FileFormat(kind, csv, source=source)).of(settings)


@dataclass(frozen=True)
class SourceFiles:
    """The raw files of a source.

    Attributes:
        root: The folder that the pattern is below.
        pattern: Which files are those of a day.
        format: How they are written.
    """

    root: str
    pattern: FilePattern
    format: FileFormat

    content_name: ClassVar[str] = RAW

    @property
    def path(self) -> str:
        """See `Origin`."""
        return self.folder

    @property
    def facts(self) -> Mapping[str, str]:
        """See `Origin`."""
        csv = self.format.csv.model_dump_json() if self.format.kind == "csv" else ""
        form = f"{self.format.kind} {csv}{' multiLine' if self.format.multi_line else ''}".rstrip()
        return {"files": self.pattern.template.replace(_PART, "%"), "format": form}

    @property
    def folder(self) -> str:
        """The folder that holds the files of all days, as far as all patterns have it."""
        return self._split(self.pattern)[0]

    def where(self, day: datetime.date) -> str:
        """The path of the files of a day, with wildcards if there are some."""
        pattern = self.pattern.on(day)
        return pattern.template if pattern.is_absolute else f"{self.root}/{pattern.template}"

    def of_day(self, list_folder: ListFolder, day: datetime.date) -> list[StoredFile]:
        """The files of a day, in order of their paths."""
        return [file for _, file in self._named(list_folder, day)]

    def required(self, list_folder: ListFolder, day: datetime.date) -> list[StoredFile]:
        """The same, of which there must be one.

        Raises:
            InputError: There is none.
        """
        if found := self.of_day(list_folder, day):
            return found
        remedy = f"correct {self.format.declared}" if self.format.declared else "name another raw.path"
        days = self.days(list_folder)
        others = f"; there are {quantity(len(days), 'other day')}, {days[0]} to {days[-1]}" if days else ""
        others = f"; there is one other day, {days[0]}" if len(days) == 1 else others
        raise InputError(f"no raw data at {self.where(day)}: deliver the day's files there, or {remedy}{others}")

    def is_delivered(self, spark: SparkSession, day: datetime.date) -> bool:
        """See `Origin`."""
        return bool(self.of_day(partial(hadoop_files.listed, spark), day))

    def content(self, reader: FileReader, day: datetime.date, known: str = "") -> str | None:
        """Names the files of a day, with their sizes and when they were written; empty without any. See `Origin`."""
        if not reader.reaches(self.folder):
            return None
        seen = [(name, file.bytes, file.modified_ms) for name, file in self._named(reader.listed, day)]
        return hashlib.sha256(repr(seen).encode()).hexdigest()[:16] if seen else ""

    def read(self, spark: SparkSession, day: datetime.date, schema: StructType) -> RawDay:
        """See `Origin`."""
        files = self.required(partial(hadoop_files.listed, spark), day)
        rows = raw_files.read(spark, files, schema=schema, form=self.format)
        is_empty = partial(raw_files.is_empty, rows, files, form=self.format)
        return RawDay(rows, is_empty, len(files), sum(file.bytes for file in files))

    def days(self, list_folder: ListFolder) -> list[datetime.date]:
        """The days of which there are files, or folders for them, in order."""
        folder, segments = self._split(self.pattern)
        last = max((number for number, each in enumerate(segments, 1) if _PART in each), default=0)
        found = set[datetime.date]()
        for each in _matching(list_folder, folder, segments[:last]):
            with suppress(ValueError):  # the 31st of February is no day
                found.add(_day(each.parts))
        return sorted(found)

    def _named(self, list_folder: ListFolder, day: datetime.date) -> list[tuple[str, StoredFile]]:
        """The files of a day by their names below the folder that all of them are in."""
        named = dict[str, StoredFile]()
        for name, each, _ in _matching(list_folder, *self._split(self.pattern.on(day))):
            prefix, inner = (name, [each]) if each.is_file else (f"{name}{each.name}/", list_folder(each.path))
            named |= {f"{prefix}{file.name}".lstrip("/"): file for file in inner if file.is_file}
        return sorted(named.items())

    def _split(self, pattern: FilePattern) -> tuple[str, list[str]]:
        """The folder up to the first name that is open, and the others."""
        segments = pattern.segments
        closed = next((number for number, each in enumerate(segments) if _is_open(each)), len(segments))
        fixed = segments[:closed] if pattern.is_absolute else [self.root, *segments[:closed]]
        return "/".join(fixed) or "/", segments[closed:]


def _day(parts: Mapping[str, str]) -> datetime.date:
    form = " ".join(f"%{letter}" for letter in parts)
    return datetime.datetime.strptime(f"{' '.join(parts.values())} +0000", f"{form} %z").date()
