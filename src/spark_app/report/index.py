"""The page that lists all reports of a folder, and the small JSON file beside each report that it reads."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from spark_app.local_files import write_atomic
from spark_app.report.page import Report, environment

INDEX: Final = "index.html"
ENTRIES: Final = "index"
"""The folder of the JSON files, one per report, below that of the reports."""


class ReportEntry(msgspec.Struct, frozen=True):
    """A report in the list: its file name, title, outcome and mood, and when it was written."""

    file: str
    title: str
    outcome: str
    mood: str
    written: datetime


def file_name(subject: str) -> str:
    """The name of the file of a report: the same for the same application, run or log, and never in another folder."""
    name = "".join(part if part.isalnum() or part in "-_." else "_" for part in subject)[:200].lstrip(".")
    return f"{name or 'report'}.html"


def add(report: Report) -> None:
    """Records the title and the outcome of a report for the list.

    Raises:
        OSError: The file cannot be written.
    """
    entry = ReportEntry(report.path.name, report.title, report.outcome, report.mood, datetime.now(UTC))
    write_atomic(report.path.parent / ENTRIES / f"{report.path.stem}.json", msgspec.json.encode(entry) + b"\n")


def write(folder: Path) -> Path:
    """Writes the page, whole or not at all, and returns its path.

    Raises:
        OSError: The page cannot be written.
    """
    content = environment().get_template("index.html.j2").render(entries=entries(folder))
    write_atomic(folder / INDEX, content.encode("utf-8"))
    return folder / INDEX


def entries(folder: Path) -> list[ReportEntry]:
    """The reports of a folder, the newest first; one without a readable JSON file is listed by its file name."""
    reports = [_entry(path) for path in folder.glob("*.html") if path.name != INDEX]
    return sorted(reports, key=lambda entry: (entry.written, entry.file), reverse=True)


def _entry(path: Path) -> ReportEntry:
    try:
        return msgspec.json.decode((path.parent / ENTRIES / f"{path.stem}.json").read_bytes(), type=ReportEntry)
    except (OSError, ValueError):
        return ReportEntry(path.name, path.stem, "", "unsure", datetime.fromtimestamp(path.stat().st_mtime, UTC))
