"""The certificate of what-if: programs run as they are and with changes, and what was forecast of the first.

The event logs are kept in the cache, so that a run that was stopped goes on where it was. BENCH_WHAT_IF=sleeping has
only the programs that wait without a processor, which a busy machine hardly disturbs, and BENCH_WHAT_IF=computing the
others; BENCH_WHAT_IF_AT_ONCE (12) is how many runs have a JVM.
"""

import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.occupancy import Occupancy
from spark_app.eventlog.reader import read
from spark_app.eventlog.replay.limitations import slowdown
from spark_app.eventlog.replay.what_if import Forecast, forecasts, parsed
from spark_app.eventlog.replay.work import work
from tests.bench import what_if_program
from tests.bench.measure import CACHE, spread
from tests.bench.what_if_program import AS_IT_WAS, COMPUTING, PROGRAMS, SLEEPING, Program

LOGS: Final = Path(os.environ.get("BENCH_WHAT_IF_LOGS") or CACHE / "what_if")
KINDS: Final[Mapping[str, Mapping[str, Program]]] = {"sleeping": SLEEPING, "computing": COMPUTING, "": PROGRAMS}
AT_ONCE: Final = int(os.environ.get("BENCH_WHAT_IF_AT_ONCE", "12"))
NOT_KNOWN: Final = "not known"


@dataclass(frozen=True)
class Case:
    """A forecast, and what came true.

    Attributes:
        run: The program and the change.
        kind: What changed: `cores`, `partitions`.
        was_ms: How long the program took as it was.
        forecast: What was forecast of that.
        truth_ms: How long it took with the change.
        load: Runnable threads for each processor of this machine while it ran as it was.
    """

    run: str
    kind: str
    was_ms: float
    forecast: Forecast
    truth_ms: float
    load: float

    @property
    def error(self) -> float | None:
        """How far the forecast is off, as a share of the truth; None where there is none."""
        return None if self.forecast.ms is None else self.forecast.ms / self.truth_ms - 1

    @property
    def is_held(self) -> bool:
        """Whether the truth is in the interval."""
        low, high = self.forecast.low_ms, self.forecast.high_ms
        return low is not None and high is not None and low <= self.truth_ms <= high


def what_if(scratch: Path) -> list[str]:
    """The errors and the intervals of all forecasts."""
    programs = KINDS[os.environ.get("BENCH_WHAT_IF", "")]
    LOGS.mkdir(parents=True, exist_ok=True)
    known = applications()
    pending = [run for run in runs(programs) if run not in known]
    for start in range(0, len(pending), AT_ONCE):
        _observe(pending[start : start + AT_ONCE], scratch)
    return table(cases(programs))


def runs(programs: Mapping[str, Program]) -> list[str]:
    """What is run, named as its application: the programs, each with its changes, and after the first one as it is."""
    named = ((name, (each.changes[0], AS_IT_WAS, *each.changes[1:])) for name, each in programs.items())
    return [f"{name}: {change}" for name, changes in named for change in changes]


def applications() -> dict[str, Application]:
    """The applications that have ended without a failure, by their names; of several runs the last."""
    found = {}
    for log in sorted(LOGS.iterdir(), key=lambda each: each.stat().st_mtime):
        if log.name.startswith(".") or log.name.endswith(".inprogress"):
            continue
        app = read(log).app
        if app.name and app.ended is not None and not any(job.has_failed for job in app.jobs.values()):
            found[app.name] = app
    return found


def cases(programs: Mapping[str, Program]) -> Iterator[Case]:
    """The forecasts of all programs that were run as they are and with the change."""
    known = applications()
    for name, program in programs.items():
        own = known.get(f"{name}: {AS_IT_WAS}")
        done = None if own is None else work(own, own.stages.values(), _occupancy(own))
        for change in program.changes if done is not None else ():
            other = known.get(f"{name}: {change}")
            if done is not None and other is not None:
                (found,) = forecasts(done, [parsed(change)])
                yield Case(
                    f"{name}: {change}", change.partition("=")[0], done.took_ms, found, _took_ms(other), slowdown(done)
                )


def table(found: Iterator[Case]) -> list[str]:
    """The figures of each kind of change, and each forecast with what came true."""
    known = list(found)
    if not known:
        return ["No program was run as it was and with a change."]
    names = {case.run.partition(": ")[0] for case in known}
    kinds = {kind: [case for case in known if case.kind == kind] for kind in dict.fromkeys(each.kind for each in known)}
    return [
        "| change | forecasts | programs | median error | 95 % of errors | held | interval | not known |",
        "|---|---|---|---|---|---|---|---|",
        *(_figures(kind, own) for kind, own in {**kinds, "all": known}.items()),
        "",
        "Goals: median error <= 10 %, 95 % of errors <= 20 %, held by the interval >= 90 %. The interval is its mean",
        "width, as a share of the forecast. Each program was run once as it was and with each change, in a warm JVM.",
        f"{len(names & {*SLEEPING})} programs wait without a processor, {len(names & {*COMPUTING})} compute.",
        f"The machine had {spread([case.load for case in known], '.1f')} runnable threads for each processor.",
        "",
        "| run | as it was s | forecast s | from s | to s | came true s | error |",
        "|---|---|---|---|---|---|---|",
        *map(_row, known),
    ]


def _figures(kind: str, own: Sequence[Case]) -> str:
    told = [case for case in own if case.error is not None]
    errors = sorted(abs(case.error or 0.0) for case in told)
    programs = len({case.run.partition(": ")[0] for case in own})
    if not errors:
        return f"| {kind} | {len(own)} | {programs} | - | - | - | - | {len(own)} |"
    most = errors[math.ceil(0.95 * len(errors)) - 1]
    held = sum(case.is_held for case in told) / len(told)
    widths = [(each.high_ms - each.low_ms) / each.ms for each in (c.forecast for c in told) if each.ms]  # type: ignore[operator]
    return (
        f"| {kind} | {len(own)} | {programs} | {statistics.median(errors):.1%} | {most:.1%} | {held:.0%} | "
        f"{statistics.mean(widths):.0%} | {len(own) - len(told)} |"
    )


def _row(case: Case) -> str:
    known = case.forecast
    if known.ms is None or known.low_ms is None or known.high_ms is None:
        said = f"{NOT_KNOWN}: {'; '.join(known.reasons)} | | | {case.truth_ms / 1000:.1f} | "
    else:
        held = "" if case.is_held else ", missed"
        figures = " | ".join(f"{ms / 1000:.1f}" for ms in (known.ms, known.low_ms, known.high_ms, case.truth_ms))
        said = f"{figures} | {case.error:+.1%}{held}"
    return f"| {case.run} | {case.was_ms / 1000:.1f} | {said} |"


def _observe(pending: Sequence[str], scratch: Path) -> None:
    """Runs programs under `spark-app observe`, which measures the host."""
    script = what_if_program.__file__
    command = [sys.executable, "-m", "spark_app", "observe", "--keep", str(LOGS), "--", sys.executable, script]
    environment = {**os.environ, "SPARK_APP_HOME": str(scratch)}
    print(f"{pending[0]} to {pending[-1]}", flush=True)
    subprocess.run([*command, *pending], env=environment, check=False)


def _occupancy(app: Application) -> Occupancy:
    return app.occupancy(app.stages.values(), (app.began or 0, app.ended or app.last))


def _took_ms(app: Application) -> float:
    return (app.ended or app.last) - (app.began or 0)
