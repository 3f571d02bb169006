"""The JVMs that were started for an observed command, as Linux shows them; elsewhere there are none to be seen."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from app.observe.launches import LAUNCH

PROCESSES: Final = Path("/proc")
SCHEDULER: Final = "dag-scheduler"
"""How the name of the thread begins that every SparkContext has."""


def launches_alive(token: str) -> dict[str, list[Path]]:
    """The processes of each launch whose JVM is there, by the id of the launch."""
    pattern = re.compile(re.escape(f"-D{LAUNCH}={token}-").encode() + rb"\d+")
    found: dict[str, list[Path]] = {}
    for process in PROCESSES.glob("[0-9]*"):
        launch = pattern.search(_read(process / "cmdline"))
        if launch:
            found.setdefault(launch[0].decode().partition("=")[2], []).append(process)
    return found


def has_context(process: Path) -> bool:
    """Whether a JVM has a SparkContext now."""
    return any(name.startswith(SCHEDULER) for name in _threads(process))


def _threads(process: Path) -> Iterator[str]:
    for thread in process.glob("task/*/comm"):
        yield _read(thread).decode(errors="replace")


def _read(file: Path) -> bytes:
    """What a file of the kernel says; nothing when the process has just gone, or is not ours to look at."""
    try:
        return file.read_bytes()
    except OSError:
        return b""
