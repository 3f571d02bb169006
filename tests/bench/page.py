"""docs/benchmarks.md: a measured part replaces the old one, and the other parts stay."""

import datetime
import os
import platform
import re
import subprocess
from collections.abc import Sequence
from typing import Final

from spark_app.settings import PROJECT

PAGE: Final = PROJECT / "docs" / "benchmarks.md"
TITLE: Final = "# Benchmarks\n"
LOAD: Final = os.getloadavg()[0]
"""Runnable threads in the minute before the bench, which makes a load of its own."""


def write(heading: str, command: str, lines: Sequence[str]) -> None:
    """Replaces the part with that heading, or adds it."""
    today = datetime.datetime.now(datetime.UTC).date()
    measured = f"`{command}`, {today}, commit {commit()}, load {LOAD:.1f} before it, {machine()}."
    part = "\n".join([f"## {heading}", "", measured, "", *lines]) + "\n"
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else TITLE
    parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    kept = [each.rstrip() + "\n" for each in parts if not each.startswith(f"## {heading}\n")]
    position = next((number for number, each in enumerate(parts) if each.startswith(f"## {heading}\n")), len(kept))
    PAGE.write_text("\n".join([*kept[:position], part, *kept[position:]]), encoding="utf-8")
    print(part, flush=True)


def commit() -> str:
    """The tree that is measured; a plus sign stands for changes that are not committed."""
    words = ["git", "describe", "--always", "--abbrev=7", "--exclude=*", "--dirty=+"]
    return subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=True).stdout.strip()


def machine() -> str:
    """The machine and the versions that are measured."""
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr.splitlines()[0]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, {java}, Python {platform.python_version()}, PySpark 4.2.0"
