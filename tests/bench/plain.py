"""The daily run against a plain PySpark script that writes the same tables (`tests.bench.plain_script`).

BENCH_SIZES (10000,1000000,5000000) makes it shorter for a try.
"""

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from spark_app.settings import PROJECT
from tests.bench import plain_script
from tests.bench.days import DAY, day, ledger_of, raw
from tests.bench.measure import CACHE, ROUNDS, Measured, in_turn, pinned, ratio, run, side_by_side

SIZES: Final = [int(size) for size in os.environ.get("BENCH_SIZES", "10000,1000000,5000000").split(",")]
IN_TURN_BELOW: Final = 100_000
"""Smaller days are all start, and a start uses both cores: they have the machine to themselves, one after the other."""
WALL_GOALS: Final = {10_000: "<= 1.0"}
CPU_GOALS: Final = {5_000_000: "<= 1.4"}
COLUMNS: Final = [
    "rows",
    *("CPU s, daily run", "CPU s, script", "CPU, daily run : script", "goal"),
    *("wall s, daily run", "wall s, script", "wall, daily run : script", "goal"),
]


def plain(_scratch: Path) -> list[str]:
    """CPU and wall time of the daily run and of the script, and how many rows the script gets wrong."""
    pairs = {rows: compare(rows) for rows in SIZES}
    return [
        f"| {' | '.join(COLUMNS)} |",
        "|" + "---|" * len(COLUMNS),
        *(_line(rows, *sides) for rows, sides in pairs.items()),
        "",
        f"Medians of {ROUNDS} rounds. Below {IN_TURN_BELOW:,} rows the two run in turn, with all cores; from there on",
        "at the same time, each on a core of its own, cores swapped each round: wall time is then that of one core.",
        "The script has the same jars and Spark properties, but no checks, telemetry, event log, class-data archive",
        "and table `bronze_customers`. The interval is that of the mean at 95 %.",
        "",
        *(_errors(rows, scripts) for rows, (_, scripts) in pairs.items()),
    ]


def compare(rows: int) -> tuple[list[Measured], list[Measured]]:
    """What the daily run and the script took, in each round."""
    side: Callable[..., tuple[list[Measured], list[Measured]]] = in_turn if rows < IN_TURN_BELOW else side_by_side
    raw(rows)
    return side(f"plain, {rows:,} rows", partial(day, rows, config=PROJECT / "config"), partial(script, rows))


def script(rows: int, *, core: int | None = None) -> Measured:
    """The script on a day of so many rows in an empty warehouse, from command to end."""
    defaults = PROJECT / "config" / "spark" / "spark-defaults.conf"
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as home:
        arguments = [str(raw(rows)), f"{home}/warehouse", DAY.isoformat(), str(defaults)]
        measured = run([*pinned(core), sys.executable, str(plain_script.__file__), *arguments], {}, folder=Path(home))
    print(f"  script, {rows:,} rows: {measured.cpu:.1f} s CPU, {measured.wall:.1f} s", flush=True)
    return measured


def _line(rows: int, daily: Sequence[Measured], scripts: Sequence[Measured]) -> str:
    cells = [f"{rows:,}"]
    for name, goals in (("cpu", CPU_GOALS), ("wall", WALL_GOALS)):
        current, baseline = ([getattr(run, name) for run in side] for side in (daily, scripts))
        cells += [f"{statistics.median(current):.1f}", f"{statistics.median(baseline):.1f}"]
        cells += [ratio(current, baseline), goals.get(rows, "")]
    return f"| {' | '.join(cells)} |"


def _errors(rows: int, scripts: Sequence[Measured]) -> str:
    """How the script's numbers of rows differ from those of the ledgers; the daily run's are those, or it fails."""
    written = json.loads(scripts[-1].last_line)
    expected = {source: ledger_of(raw(rows), source).parts["valid"] for source in ("transactions", "customers")}
    differences = [
        f"{written[source] - valid:+,} of {valid:,} {source}"
        for source, valid in expected.items()
        if written[source] != valid
    ]
    return f"{rows:,} rows: the script publishes {' and '.join(differences) or 'as many rows as it should'}."
