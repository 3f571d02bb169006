"""docs/compare.md: our program passes the checks of its declarations, and the figures are those of the code shown."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.readme import ROOT

PAGE: Final = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
FILES: Final = re.findall(r"^`([\w-]+)/([\w./-]+)`\n\n```\w+\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
"""The tool, path and content of each file shown."""
LOAD: Final = "from spark_app.execution import pipelines; print(*pipelines.load('etl'))"


def lines(content: str) -> int:
    """How many lines of a file are neither blank nor a comment."""
    return sum(bool(line.strip()) and not line.lstrip().startswith(("#", "--")) for line in content.splitlines())


def test_our_program_passes_the_checks_before_spark_starts(tmp_path: Path) -> None:
    """Written into an empty folder, it is a project of two pipelines, in the order of what they read."""
    for tool, name, content in FILES:
        if tool == "spark-app":
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content, encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", LOAD], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "etl.customers etl.daily_orders\n", done.stderr


def test_lines_and_files_are_counted_from_the_code_shown() -> None:
    """The table says of each tool as many as stand below."""
    counted = {
        tool: (
            sum(lines(content) for other, _, content in FILES if other == tool),
            [each[0] for each in FILES].count(tool),
        )
        for tool, _, _ in FILES
    }
    table = re.findall(r"^\| ([\w-]+) \| (\d+) \| (\d+) \|", PAGE, re.MULTILINE)
    assert counted == {tool: (int(number), int(files)) for tool, number, files in table}
    assert len(counted) == 5
