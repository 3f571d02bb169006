"""Runs a command and measures its whole process tree: CPU seconds, wall seconds and peak memory.

BENCH_ROUNDS (5) makes every comparison shorter for a try. BENCH_LOCK, a file, keeps other measurements out of single
runs of `tuning` and `memory_retries`: those that lock it, too.
"""

import json
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

T = TypeVar("T")
U = TypeVar("U")
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spark-app" / "bench"
ROUNDS: Final = int(os.environ.get("BENCH_ROUNDS", "5"))
SAMPLE_SECONDS: Final = 0.25
# Student's t for 95 %, two-sided, by degrees of freedom 1 to 9.
T_95: Final = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


@dataclass(frozen=True)
class Measured:
    """One run of a command.

    Attributes:
        cpu: User and system seconds of the process and all it waited for; the JVM is one of them.
        wall: Seconds from start to end.
        peak_bytes: The largest sum of memory of all its processes (PSS), sampled four times a second.
        first_rows: Seconds until the first step that wrote rows had ended; None if there was none.
        last_line: The last line of its output.
    """

    cpu: float
    wall: float
    peak_bytes: int
    first_rows: float | None
    last_line: str


def run(command: Sequence[str], environment: Mapping[str, str], *, folder: Path | None = None) -> Measured:
    """Runs a command to its end, in a folder if one is given.

    Raises:
        RuntimeError: It failed.
    """
    started = time.monotonic()
    process = subprocess.Popen(
        command,
        env={**os.environ, **environment},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    peak = Peak(process.pid)
    first, lines = None, []
    for line in process.stdout or ():
        lines.append(line)
        if first is None and " rows " in line:
            first = time.monotonic() - started
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    peak.stop()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{''.join(lines)}")
    return Measured(usage.ru_utime + usage.ru_stime, wall, peak.bytes, first, lines[-1] if lines else "")


def alone(command: Sequence[str]) -> list[str]:
    """A command that runs while nothing else holds the file BENCH_LOCK, if it is named."""
    lock = os.environ.get("BENCH_LOCK")
    return [*(("flock", "--close", lock) if lock else ()), *command]


def once_each(
    file: Path, commands: Sequence[Sequence[str]], measure: Callable[[int], Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """What is known of commands by the lines of a file, where an interrupted part goes on; the rest is measured now.

    BENCH_JOBS, numbers of commands (`0 3 7`), chooses some of them.
    """
    chosen = [int(number) for number in os.environ.get("BENCH_JOBS", "").split()] or range(len(commands))
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    known = {each["command"]: each for each in map(json.loads, lines) if "command" in each}
    names = {number: " ".join(commands[number]) for number in chosen}
    for number, name in names.items():
        if name not in known:
            known[name] = {"command": name, **measure(number)}
            with file.open("a", encoding="utf-8") as added:
                added.write(json.dumps(known[name]) + "\n")
    return [known[name] for name in names.values()]


def pinned(core: int | None) -> list[str]:
    """The words before a command that keep it on one core, if one is named."""
    return [] if core is None else ["taskset", "--cpu-list", str(core)]


def in_turn(name: str, one: Callable[[], T], other: Callable[[], U]) -> tuple[list[T], list[U]]:
    """The results of two kinds of run, one after the other with the whole machine; the first changes each round."""
    pairs = []
    for turn in range(ROUNDS):
        print(f"{name}: round {turn + 1} of {ROUNDS}", flush=True)
        if turn % 2:
            second = other()
            pairs.append((one(), second))
        else:
            pairs.append((one(), other()))
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def side_by_side(name: str, one: Callable[..., T], other: Callable[..., U]) -> tuple[list[T], list[U]]:
    """The results of two kinds of run, at the same time on a core each; they swap their cores each round."""
    pairs = []
    for turn in range(ROUNDS):
        print(f"{name}: round {turn + 1} of {ROUNDS}", flush=True)
        with ThreadPoolExecutor(2) as both:
            started = both.submit(one, core=turn % 2), both.submit(other, core=(turn + 1) % 2)
            pairs.append((started[0].result(), started[1].result()))
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


class Peak:
    """The largest memory of a process tree, watched from a thread."""

    def __init__(self, pid: int) -> None:
        """Starts to watch."""
        self.bytes, self._pid, self._ended = 0, pid, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops watching."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self.bytes = max(self.bytes, tree_bytes(self._pid))


def tree_bytes(pid: int) -> int:
    """Memory of a process and its descendants; memory that they share after a fork counts once."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        own = next(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))
        below = children(pid)
    except (OSError, ValueError, IndexError, StopIteration):
        return 0
    return own + sum(tree_bytes(child) for child in below)


def children(pid: int) -> list[int]:
    """The running processes that a process has started."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    pids = list[int]()
    for thread in threads:
        with suppress(FileNotFoundError):  # a thread that has just ended
            pids += map(int, (thread / "children").read_text().split())
    return pids


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far, including the children that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def spread(figures: Sequence[float], form: str = ",.0f") -> str:
    """The median of some figures, with the least and the most."""
    return f"{statistics.median(figures):{form}} (from {min(figures):{form}} to {max(figures):{form}})"


def ratio(over: Sequence[float], under: Sequence[float]) -> str:
    """Mean of the ratios of interleaved pairs, with its 95 % confidence interval and the spread."""
    ratios = [a / b for a, b in zip(over, under, strict=True)]
    mean = statistics.mean(ratios)
    if len(ratios) == 1:
        return f"{mean:.3f} (one pair)"
    half = T_95[min(len(ratios) - 2, len(T_95) - 1)] * statistics.stdev(ratios) / len(ratios) ** 0.5
    return f"{mean:.3f} ± {half:.3f} (from {min(ratios):.3f} to {max(ratios):.3f}, {len(ratios)} pairs)"
