"""The processes of an observed command, found in `/proc`; on systems without it, none are found."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from spark_app.observe.event_log_injection import LAUNCH

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


def python_workers(jvms: Iterable[Path]) -> list[Path]:
    """The processes below JVMs: in local mode the daemon of Spark's Python workers, and all that it has started."""
    found, below = list(jvms), defaultdict(list)
    for process in PROCESSES.glob("[0-9]*") if found else ():
        fields = _read(process / "stat").rpartition(b")")[2].split()  # a name may have spaces and brackets
        if len(fields) > 1:
            below[int(fields[1])].append(process)
    number_of_jvms = len(found)
    for process in found:
        found += below[int(process.name)]
    return found[number_of_jvms:]


def busy_ns(process: Path) -> dict[Path, int]:
    """How long each thread of a process was on a processor or waited for one, in nanoseconds; none if unknown.

    Source: the first two fields of `/proc/*/schedstat` (the kernel's `scheduler/sched-stats.rst`).
    """
    threads = {thread: _read(thread / "schedstat").split() for thread in process.glob("task/*")}
    return {thread: int(fields[0]) + int(fields[1]) for thread, fields in threads.items() if len(fields) > 1}


def _threads(process: Path) -> Iterator[str]:
    for thread in process.glob("task/*/comm"):
        yield _read(thread).decode(errors="replace")


def _read(file: Path) -> bytes:
    """The content of a file in `/proc`; empty if the process is gone or belongs to another user."""
    try:
        return file.read_bytes()
    except OSError:
        return b""
