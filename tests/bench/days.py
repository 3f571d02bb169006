"""What the daily run costs: its checks, its telemetry, its size and its start.

BENCH_ROWS (5000000) and BENCH_SIZES (1000000,5000000,20000000) make it shorter for a try.
"""

import datetime
import os
import shutil
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from app.demo import shop
from app.demo.ledger import LEDGER_NAME, Day, Ledger, read_ledger
from spark_app.errors import InputError
from spark_app.runs import run_record
from spark_app.settings import PROJECT
from tests.bench.measure import CACHE, Measured, pinned, ratio, run, side_by_side
from tests.integration.home import assert_is_ledger

DAY: Final = datetime.date(2024, 1, 1)
ROWS: Final = int(os.environ.get("BENCH_ROWS", "5000000"))
SIZES: Final = [int(size) for size in os.environ.get("BENCH_SIZES", "1000000,5000000,20000000").split(",")]
STARTS: Final = 3
SMALL: Final = 10_000
SEED: Final = 1
GENERATING: Final = threading.Lock()
Side = Callable[..., Measured]


def raw(rows: int) -> Path:
    """The raw folder of a day with so many rows; generated unless it exists and is up to date."""
    folder = CACHE / str(rows)
    with GENERATING:
        if not is_current(folder, rows):
            print(f"generating {rows:,} rows", flush=True)
            shop.write_day(folder, Day(date=DAY, rows=rows, seed=SEED))
    return folder


def ledger_of(folder: Path, source: str) -> Ledger:
    """The ledger of a source of a generated day.

    Raises:
        InputError: It has none, or one with other fields.
    """
    return read_ledger(shop.day_folder(folder, source, DAY) / LEDGER_NAME)


def is_current(folder: Path, rows: int) -> bool:
    """Whether a day was generated of the same values, with the kinds of faults that today's generator plants."""
    expected = Day(date=DAY, rows=rows, seed=SEED)
    try:
        stored = [ledger_of(folder, generator.source) for generator in shop.GENERATORS]
    except InputError:
        return False
    return all(
        (ledger.plan, ledger.planted) == (expected, generator(expected).planted)
        for ledger, generator in zip(stored, shop.GENERATORS, strict=True)
    )


def day(rows: int, *, config: Path, environment: Mapping[str, str] | None = None, core: int | None = None) -> Measured:
    """The daily run of so many rows in an empty warehouse, from command to end; on one core if one is given.

    Raises:
        AssertionError: With the configuration as shipped, a figure is not that of the ledger of planted faults.
    """
    data = raw(rows)
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as home:
        command = [sys.executable, "-m", "spark_app", "etl", "--date", DAY.isoformat(), "--config", str(config)]
        places = {"SPARK_APP_HOME": home, "SPARK_APP_RAW__PATH": str(data)}
        measured = run([*pinned(core), *command], {**places, **(environment or {})})
        if config == PROJECT / "config":
            assert_right(Path(home), data)
    print(
        f"  {rows:,} rows: {measured.cpu:.1f} s CPU, {measured.wall:.1f} s, {measured.peak_bytes / 1e6:,.0f} MB",
        flush=True,
    )
    return measured


def assert_right(home: Path, data: Path) -> None:
    """Every figure of the runs of a home folder is that of the ledger of its data."""
    files = list(home.glob(f"runs/*/{run_record.RECORD}"))
    assert len(files) == 2
    for result in (run_record.read(file.parent) for file in files):
        source = "customers" if result.pipeline == "etl.customers" else "transactions"
        assert_is_ledger(result, ledger_of(data, source))


def changed_config(folder: Path, file: str, old: str, new: str) -> Path:
    """A copy of the configuration with one text replaced in the files that match a pattern."""
    shutil.copytree(PROJECT / "config", folder)
    for path in folder.glob(file):
        path.write_text(path.read_text().replace(old, new))
    return folder


def without_event_log(folder: Path) -> Path:
    """A copy of the configuration without an event log."""
    changed = changed_config(folder, "spark/spark-defaults.conf", "eventLog.enabled ", "eventLog.was ")
    with (changed / "spark" / "spark-defaults.conf").open("a") as properties:
        properties.write("\nspark.eventLog.enabled false\n")
    return changed


def checks(scratch: Path) -> list[str]:
    """What the quality checks cost."""
    unchecked = changed_config(scratch / "unchecked", "etl/*.yml", "checks: true", "checks: false")
    note = "Without checks, only rows that do not parse are quarantined."
    return [*overhead("all checks", partial(day, ROWS, config=unchecked), goal="1.2"), note]


def telemetry(scratch: Path) -> list[str]:
    """What spans, metrics, logs and the event log cost."""
    without = partial(
        day, ROWS, config=without_event_log(scratch / "unlogged"), environment={"OTEL_SDK_DISABLED": "true"}
    )
    return overhead("telemetry and event log", without, goal="1.02")


def overhead(name: str, without: Side, *, goal: str) -> list[str]:
    """The cost of a feature, as a ratio of CPU seconds.

    Both sides run at the same time, each on a core of its own, and swap cores each round: on a shared machine the same
    work may take twice as long an hour later, but then it does so for both.
    """
    both = side_by_side(name, partial(day, ROWS, config=PROJECT / "config"), without)
    with_it, without_it = ([run.cpu for run in side] for side in both)
    means = f"{statistics.mean(with_it):.1f} | {statistics.mean(without_it):.1f}"
    return [
        "| the run with : without | ratio | goal | CPU s with | CPU s without |",
        "|---|---|---|---|---|",
        f"| {name} | {ratio(with_it, without_it)} | <= {goal} | {means} |",
        "",
        f"{ROWS:,} rows, the whole process. Both sides at the same time, each on a core of its own, cores swapped each",
        "round. The interval is that of the mean at 95 %.",
    ]


def sizes(_scratch: Path) -> list[str]:
    """Rows per second and peak memory of days of several sizes."""
    lines = ["| rows | wall s | rows/s | CPU s | peak memory (Python + JVM) |", "|---|---|---|---|---|"]
    for rows in SIZES:
        measured = day(rows, config=PROJECT / "config")
        peak = f"{measured.peak_bytes / 1e6:,.0f} MB"
        lines.append(f"| {rows:,} | {measured.wall:.1f} | {rows / measured.wall:,.0f} | {measured.cpu:.1f} | {peak} |")
    return lines


def starts(scratch: Path) -> list[str]:
    """Seconds from the command to the first rows of a small day, with and without the class-data archive."""
    bare = {"XDG_CACHE_HOME": str(scratch / "no-archive")}
    measured: dict[str, list[Measured]] = {"with": [], "without": []}
    for _ in range(STARTS):
        measured["with"].append(day(SMALL, config=PROJECT / "config"))
        measured["without"].append(day(SMALL, config=PROJECT / "config", environment=bare))
    lines = [
        f"{SMALL:,} rows, median of {STARTS}.",
        "",
        "| class-data archive | first rows s | whole run s |",
        "|---|---|---|",
    ]
    for kind, runs in measured.items():
        first = statistics.median(run.first_rows or 0 for run in runs)
        lines.append(f"| {kind} | {first:.1f} | {statistics.median(run.wall for run in runs):.1f} |")
    return lines
