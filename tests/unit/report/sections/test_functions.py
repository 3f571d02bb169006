"""What a report shows of Python functions that were observed."""

import re
from pathlib import Path

from app.report import page
from tests.unit.eventlog.test_python_functions import LINE, PROGRAM, left
from tests.unit.report.conftest import Read


def test_functions_are_summed_by_stage(reading: Read, tmp_path: Path) -> None:
    """Those that took longest first, with their errors; names are text, and what is not known is said."""
    hostile = LINE | {"function": "<b>", "rows_in": None, "wall_us": 90_000, "error": "KeyError"}
    left(tmp_path, *(LINE | {"task": number} for number in range(8)), hostile)
    shown = page.write(reading(PROGRAM), output=tmp_path / "r.html").read_text(encoding="utf-8")
    _, *rows = shown.partition('<section id="functions">')[2].partition("</section>")[0].split("<tr><td")
    assert [re.findall(r">([^<]+)</td>", row) for row in rows] == [
        ["cleaned", "0", "8", "16", "160", "120", "320 ms", "21 ms", "–"],
        ["&lt;b&gt;", "0", "1", "2", "not known", "15", "90 ms", "3 ms", "KeyError"],
    ]


def test_without_functions_there_is_no_section(reading: Read, tmp_path: Path) -> None:
    """Most applications have none."""
    assert 'id="functions"' not in page.write(reading(PROGRAM), output=tmp_path / "r.html").read_text(encoding="utf-8")
