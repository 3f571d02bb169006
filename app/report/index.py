"""The page that leads to all reports of a folder, the newest first."""

import html
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from app.folders import put
from app.report.page import environment

INDEX: Final = "index.html"
HEAD_BYTES: Final = 4096
"""Where a report has its title."""
_TITLE: Final = re.compile(r"<title>(.*?) · ([^·<]*)</title>", re.DOTALL)
_MOODS: Final = {"succeeded": "good", "failed": "bad", "killed": "bad", "rejected": "bad"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One report: what it is about, how that ended, and when it was written."""

    file: str
    title: str
    outcome: str
    written: datetime

    @property
    def mood(self) -> str:
        """How the outcome looks."""
        return _MOODS.get(self.outcome, "unsure")


def write(folder: Path) -> Path:
    """Puts the page in place, whole or not at all.

    Raises:
        OSError: It cannot be written.
    """
    content = environment().get_template("index.html.j2").render(entries=entries(folder))
    put(folder / INDEX, content.encode("utf-8"))
    return folder / INDEX


def entries(folder: Path) -> list[Entry]:
    """The reports of a folder, the newest first."""
    found = [_entry(path) for path in folder.glob("*.html") if path.name != INDEX]
    return sorted(found, key=lambda entry: (entry.written, entry.file), reverse=True)


def _entry(path: Path) -> Entry:
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES).decode("utf-8", "replace")
    told = _TITLE.search(head)
    title, outcome = (html.unescape(told[1]), html.unescape(told[2])) if told else (path.stem, "")
    return Entry(path.name, title, outcome, datetime.fromtimestamp(path.stat().st_mtime, UTC))
