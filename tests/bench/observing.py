"""What being observed costs a job: an event log, as `spark-app observe` switches it on, and a bridge that follows it.

BENCH_ORDINARY (64) and BENCH_EMPTY (20000), the tasks of the two jobs, make it shorter for a try.
"""

import json
import os
import statistics
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from app.eventlog.reading import read
from app.observe.launches import Switch
from tests.bench import bridging
from tests.bench.measure import pinned, ratio, run, side_by_side
from tests.polling import poll_until
from tests.receivers import receiver

TASKS: Final[Mapping[str, int]] = {
    "ordinary": int(os.environ.get("BENCH_ORDINARY", "64")),
    "empty": int(os.environ.get("BENCH_EMPTY", "20000")),
}
GOALS: Final[Mapping[str, str]] = {"ordinary": "<= 1.01", "empty": ""}
NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True)
class Alone:
    """A job without any of it; CPU seconds of Python and the JVM.

    Attributes:
        whole: With the start of Python and the JVM.
        cpu, wall: Seconds of its work, once the session is warm.
    """

    whole: float
    cpu: float
    wall: float


@dataclass(frozen=True)
class Watched(Alone):
    """A job that is observed, whose own figures are without those of the bridge.

    Attributes:
        bridge_cpu: CPU seconds of the bridge while it did nothing but follow the job.
        durations_ms: Of the tasks that it has seen.
    """

    bridge_cpu: float
    durations_ms: tuple[int, ...]


def observing(scratch: Path) -> list[str]:
    """The ratios of both jobs, and the CPU time of the bridge."""
    found = {kind: side_by_side(kind, partial(watched, kind, scratch), partial(alone, kind)) for kind in TASKS}
    return [
        "| tasks of the job, observed : not | CPU of its work | goal | time of its work | CPU, with the start |",
        "|---|---|---|---|---|",
        *(_ratios(kind, *pairs) for kind, pairs in found.items()),
        "",
        "| tasks | ms each (median) | CPU s of the work | its wall s | CPU s of the bridge per 1,000 tasks |",
        "|---|---|---|---|---|",
        *(_tasks(kind, pairs[0]) for kind, pairs in found.items()),
        "",
        "Both sides at the same time, each on a core of its own, cores swapped each round. The bridge has the core of",
        "the job that it follows, and its CPU time is none of the job's. The work begins in a warm session and ends",
        "when the session has stopped. What the bridge takes per task is more where tasks are long: it looks for what",
        "is new all the time. The interval is that of the mean at 95 %.",
    ]


def alone(kind: str, *, core: int) -> Alone:
    """Runs a job that nobody observes."""
    return Alone(**_ran(kind, NOTHING, core=core))


def watched(kind: str, scratch: Path, *, core: int) -> Watched:
    """Runs a job while a bridge follows it, on one core."""
    with TemporaryDirectory(dir=scratch) as place:
        logs = Path(place, "logs")
        logs.mkdir()
        with receiver() as collector, bridging.following(logs, collector, core=core) as bridge:
            before = bridge.cpu()
            found = _ran(kind, Switch(logs, Path(place)).variables(os.environ), core=core)
            poll_until(lambda: bridge.is_done(1), bridge.figures)
            spent = bridge.cpu() - before
        (log,) = logs.iterdir()
        durations = tuple(each for stage in read(log).app.stages.values() for each in stage.durations_ms)
    return Watched(**found, bridge_cpu=spent, durations_ms=durations)


def _ran(kind: str, environment: Mapping[str, str], *, core: int) -> dict[str, float]:
    command = [*pinned(core), sys.executable, "-m", "tests.bench.job", kind, str(TASKS[kind])]
    told: dict[str, float] = json.loads(run(command, environment).said)
    print(f"  {kind}{' observed' if environment else ''}: {told}", flush=True)
    return told


def _ratios(kind: str, observed: list[Watched], others: list[Alone]) -> str:
    cpu = ratio([each.cpu for each in observed], [each.cpu for each in others])
    wall = ratio([each.wall for each in observed], [each.wall for each in others])
    whole = ratio([each.whole for each in observed], [each.whole for each in others])
    return f"| {TASKS[kind]:,} {kind} | {cpu} | {GOALS[kind]} | {wall} | {whole} |"


def _tasks(kind: str, observed: list[Watched]) -> str:
    count = statistics.mean(len(each.durations_ms) for each in observed)
    took = statistics.median(duration for each in observed for duration in each.durations_ms)
    cpu, wall = (statistics.mean(getattr(each, name) for each in observed) for name in ("cpu", "wall"))
    bridge = statistics.mean(1000 * each.bridge_cpu / len(each.durations_ms) for each in observed)
    return f"| {count:,.0f} {kind} | {took:,.0f} | {cpu:.1f} | {wall:.1f} | {bridge:.2f} |"
