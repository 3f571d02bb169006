"""The JVMs of an observed command, found in `/proc`; on systems without it, none are found."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from app.observe.event_log_injection import LAUNCH

PROCESSES: Final = Path("/proc")
SCHEDULER: Final = "dag-scheduler"
"""The name prefix of a thread that every SparkContext has."""


def launches_alive(token: str) -> dict[str, list[Path]]:
    """The running JVMs by launch id."""
    pattern = re.compile(re.escape(f"-D{LAUNCH}={token}-").encode() + rb"\d+")
    processes: dict[str, list[Path]] = {}
    for process in PROCESSES.glob("[0-9]*"):
        launch = pattern.search(_read(process / "cmdline"))
        if launch:
            processes.setdefault(launch[0].decode().partition("=")[2], []).append(process)
    return processes


def has_context(process: Path) -> bool:
    """Whether a JVM has a SparkContext."""
    return any(name.startswith(SCHEDULER) for name in _threads(process))


def _threads(process: Path) -> Iterator[str]:
    for thread in process.glob("task/*/comm"):
        yield _read(thread).decode(errors="replace")


def _read(file: Path) -> bytes:
    """The content of a file in `/proc`; empty if the process is gone or belongs to another user."""
    try:
        return file.read_bytes()
    except OSError:
        return b""
