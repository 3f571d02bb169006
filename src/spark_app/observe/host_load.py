"""Samples the load of this machine while a command runs, from `/proc`; on systems without it, there are no samples.

The files are described in the kernel's documentation: `proc(5)` for `/proc/loadavg`, `accounting/psi.rst` for
`/proc/pressure/*`, and `scheduler/sched-stats.rst` for `/proc/*/schedstat`.
"""

import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from spark_app.eventlog.model.host_load import HostLoad, LoadSample, Resource
from spark_app.observe.processes import busy_ns, python_workers

MAX_SAMPLES: Final = 1024
"""Samples that are kept, 75 KB in a stored profile; of a longer time every second is dropped, again and again."""
RESOURCES: Final[tuple[Resource, ...]] = ("cpu", "io", "memory")
_RUNNABLE: Final = re.compile(r"\S+ \S+ \S+ (\d+)/")
_STALLED: Final = re.compile(r"^some .*\btotal=(\d+)", re.MULTILINE)


class HostLoadSampler:
    """Takes a sample at each call of `sample`."""

    def __init__(self, proc: Path = Path("/proc"), *, jvms: Callable[[], Iterable[Path]] = tuple) -> None:
        """Takes no sample yet.

        Args:
            proc: The folder that the kernel reports in.
            jvms: The JVMs of the command that run, whose Python workers are measured, too.
        """
        self._proc, self._jvms = proc, jvms
        self._python_ns: dict[Path, int] | None = {}
        self._ended_ns = 0
        self._samples: list[LoadSample] = []
        self._calls, self._every = 0, 1

    def sample(self) -> None:
        """Takes a sample; of a long time only every second, fourth or eighth call does."""
        self._calls += 1
        if self._calls % self._every:
            return
        runnable = _RUNNABLE.match(_read(self._proc / "loadavg"))
        if runnable is None:
            return
        others = max(0, int(runnable[1]) - 1)  # the reader of the file runs, too
        self._samples.append(LoadSample(round(time.time() * 1000), others, self._stalled(), self._python_ms()))
        if len(self._samples) > MAX_SAMPLES:
            self._samples, self._every = self._samples[::2], self._every * 2

    def _python_ms(self) -> int | None:
        """How long Python workers were on a processor or waited for one so far; those that have ended count on."""
        if self._python_ns is None:
            return None
        now: dict[Path, int] = {}
        for worker in python_workers(self._jvms()):
            threads = busy_ns(worker)
            if not threads and worker.exists():
                self._python_ns = None  # a kernel without schedstat
                return None
            now |= threads
        self._ended_ns += sum(ns for thread, ns in self._python_ns.items() if thread not in now)
        self._python_ns = now
        return (self._ended_ns + sum(now.values())) // 1_000_000

    def _stalled(self) -> dict[Resource, int]:
        """For how long some thread has waited for each resource that the kernel counts, in microseconds."""
        found = {resource: _STALLED.search(_read(self._proc / "pressure" / resource)) for resource in RESOURCES}
        return {resource: int(match[1]) for resource, match in found.items() if match is not None}

    def beside(self, look: Callable[[], None]) -> Callable[[], None]:
        """The same call, with a sample after it."""

        def both() -> None:
            look()
            self.sample()

        return both

    @property
    def load(self) -> HostLoad | None:
        """What was sampled; None without a sample."""
        if not self._samples:
            return None
        return HostLoad(len(os.sched_getaffinity(0)), tuple(self._samples))


def _read(file: Path) -> str:
    """The content of a file; empty where this system has none."""
    try:
        return file.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
