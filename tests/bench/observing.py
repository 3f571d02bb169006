"""What observing costs a job: the event log that `spark-app observe` switches on, and a bridge that follows it.

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

from spark_app.eventlog.reader import read
from spark_app.observe.event_log_injection import EventLogInjection
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
class JobCost:
    """CPU seconds of Python and the JVM, and wall time of a job.

    Attributes:
        whole: CPU seconds including the start of Python and the JVM.
        cpu, wall: Seconds of the work in a warm session.
    """

    whole: float
    cpu: float
    wall: float


@dataclass(frozen=True)
class ObservedCost(JobCost):
    """The cost of an observed job; that of the bridge is not in the figures of the job.

    Attributes:
        bridge_cpu: CPU seconds of the bridge while it followed the job.
        durations_ms: The durations of the tasks in the log.
    """

    bridge_cpu: float
    durations_ms: tuple[int, ...]


def observing(scratch: Path) -> list[str]:
    """The ratios of both jobs, and the CPU time of the bridge."""
    pairs = {kind: side_by_side(kind, partial(observed, kind, scratch), partial(unobserved, kind)) for kind in TASKS}
    return [
        "| tasks of the job, observed : not | CPU of its work | goal | time of its work | CPU, with the start |",
        "|---|---|---|---|---|",
        *(_ratios(kind, *sides) for kind, sides in pairs.items()),
        "",
        "| tasks | ms each (median) | CPU s of the work | its wall s | CPU s of the bridge per 1,000 tasks |",
        "|---|---|---|---|---|",
        *(_tasks(kind, sides[0]) for kind, sides in pairs.items()),
        "",
        "Both sides at the same time, each on a core of its own, cores swapped each round. The bridge has the core",
        "of the job that it follows, and its CPU time is not part of the job's. The work begins in a warm session and",
        "ends when the session has stopped. The bridge takes more per task where tasks are long, as it polls the log",
        "all the time. The interval is that of the mean at 95 %.",
    ]


def unobserved(kind: str, *, core: int) -> JobCost:
    """Runs a job without an observer."""
    return JobCost(**_run_job(kind, NOTHING, core=core))


def observed(kind: str, scratch: Path, *, core: int) -> ObservedCost:
    """Runs a job while a bridge follows it, on one core."""
    with TemporaryDirectory(dir=scratch) as folder:
        logs = Path(folder, "logs")
        logs.mkdir()
        with receiver() as collector, bridging.following(logs, collector, core=core) as bridge:
            before = bridge.cpu()
            cost = _run_job(kind, EventLogInjection(logs, Path(folder)).variables(os.environ), core=core)
            poll_until(lambda: bridge.is_done(1), bridge.figures)
            bridge_cpu = bridge.cpu() - before
        (log,) = logs.iterdir()
        durations = tuple(each for stage in read(log).app.stages.values() for each in stage.durations_ms)
    return ObservedCost(**cost, bridge_cpu=bridge_cpu, durations_ms=durations)


def _run_job(kind: str, environment: Mapping[str, str], *, core: int) -> dict[str, float]:
    command = [*pinned(core), sys.executable, "-m", "tests.bench.job", kind, str(TASKS[kind])]
    cost: dict[str, float] = json.loads(run(command, environment).last_line)
    print(f"  {kind}{' observed' if environment else ''}: {cost}", flush=True)
    return cost


def _ratios(kind: str, observed: list[ObservedCost], unobserved: list[JobCost]) -> str:
    cpu = ratio([each.cpu for each in observed], [each.cpu for each in unobserved])
    wall = ratio([each.wall for each in observed], [each.wall for each in unobserved])
    whole = ratio([each.whole for each in observed], [each.whole for each in unobserved])
    return f"| {TASKS[kind]:,} {kind} | {cpu} | {GOALS[kind]} | {wall} | {whole} |"


def _tasks(kind: str, observed: list[ObservedCost]) -> str:
    count = statistics.mean(len(each.durations_ms) for each in observed)
    took = statistics.median(duration for each in observed for duration in each.durations_ms)
    cpu, wall = (statistics.mean(getattr(each, name) for each in observed) for name in ("cpu", "wall"))
    bridge = statistics.mean(1000 * each.bridge_cpu / len(each.durations_ms) for each in observed)
    return f"| {count:,.0f} {kind} | {took:,.0f} | {cpu:.1f} | {wall:.1f} | {bridge:.2f} |"
