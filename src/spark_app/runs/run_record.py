"""The record of a run, `run.json` in its folder, written at the start and at the end: a killed run has one, too."""

import dataclasses
import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from spark_app.errors import InputError
from spark_app.local_files import write_atomic
from spark_app.quality.results import ExpectationResult
from spark_app.vocabulary.names import Outcome

RECORD: Final = "run.json"
READ: Final = "read"
PUBLISHED: Final = "published"
QUARANTINED: Final = "quarantined"
DUPLICATES: Final = "duplicates"
"""Counts that every pipeline may report; a pipeline may report others, by names of its own."""
LATE: Final = "late"
DEAD_LETTERS: Final = "dead_letters"
DELETED: Final = "deleted"
UNKNOWN_FIELDS: Final = "unknown_fields"
"""Counts of streaming queries: rows dropped as later than the watermark, records that do not parse, records that Kafka
deleted before they were read, and records with fields that the schema of their topic does not know."""


@dataclass(frozen=True)
class StaleDay:
    """A day of a table that has to be written again.

    Attributes:
        pipeline: The pipeline that writes the table.
        table: The table.
        day: The day.
        reasons: What has changed since.
    """

    pipeline: str
    table: str
    day: datetime.date
    reasons: list[str]

    def __str__(self) -> str:
        return f"{self.table} of {self.day}: {'; '.join(self.reasons)}"


@dataclass(frozen=True)
class RunRecord:
    """One run; None stands for what is unknown, or was not recorded by an older version.

    Attributes:
        run_id: The name of its folder.
        pipeline: `etl.daily_sales`.
        outcome: How it ended; `running` until then.
        started_at: UTC.
        seconds: How long it took.
        folder: Where the record lies.
        slice: The key of what it was about: `2024-01-01`.
        invocation_id: The command; it joins its runs.
        counts: Rows by what became of them: read, published, quarantined, duplicates, and others of the pipeline.
        tables: Paths of the tables that it wrote, by name.
        error: One line.
        trace_id: 32 hexadecimal digits.
        application_id: Spark's.
        event_log: A path or URI.
        spark_log: The file that the JVM logged to.
        expectations: Results, with limits.
        nulls: Rows without a value, by column.
        facts: Further numbers of the pipeline.
        report: A path, or a URL where reports are served.
        is_alone: Whether no other run of its application lasted at any time of it; None until its end.
        stale: Of the last run of a command: the days of tables that were made of what has changed since.
    """

    run_id: str
    pipeline: str
    outcome: Outcome | Literal["running"]
    started_at: datetime.datetime
    seconds: float
    folder: Path = Path()
    slice: str = ""
    invocation_id: str | None = None
    counts: dict[str, int] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    error: str | None = None
    trace_id: str | None = None
    application_id: str | None = None
    event_log: str | None = None
    spark_log: str | None = None
    expectations: list[ExpectationResult] = field(default_factory=list)
    nulls: dict[str, int] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)
    report: str | None = None
    is_alone: bool | None = None
    stale: list[StaleDay] = field(default_factory=list)


def write(record: RunRecord, *, note: Callable[[str], None]) -> None:
    """Replaces the record of a run atomically; a record that cannot be written is noted, and the run goes on."""
    content = msgspec.json.format(msgspec.json.encode(record, enc_hook=str), indent=2)
    try:
        write_atomic(record.folder / RECORD, content + b"\n")
    except OSError as error:
        note(f"cannot write {record.folder / RECORD}: {error.strerror}")


def folders(runs: Path) -> Iterator[tuple[str, Path]]:
    """The folders of runs, the newest first, each with the pipeline that its name says; empty where it says none."""
    for folder in sorted(runs.iterdir() if runs.is_dir() else (), reverse=True):
        yield folder.name.split("-")[1] if folder.name.count("-") > 1 else "", folder


def read(folder: Path) -> RunRecord:
    """The record in the folder of a run.

    Raises:
        InputError: The folder has no record, or the file is not one.
    """
    try:
        content = (folder / RECORD).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the run record {folder / RECORD}: {error.strerror}") from error
    return dataclasses.replace(decoded(content, folder / RECORD), folder=folder.absolute())


def decoded(content: bytes, shown: Path | str) -> RunRecord:
    """The record that a file contains.

    Raises:
        InputError: It contains none.
    """
    try:
        return msgspec.json.decode(content, type=RunRecord, dec_hook=_path)
    except msgspec.MsgspecError as error:
        raise InputError(f"{shown} is not a run record: {error}") from error


def _path(kind: type, value: Any) -> Any:
    return Path(value) if kind is Path else value
