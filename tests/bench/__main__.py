"""`make bench`: what checks and telemetry cost, how fast and how large a day is; writes docs/benchmarks.md.

BENCH_ROUNDS (5), BENCH_ROWS (5000000) and BENCH_SIZES (1000000,5000000,20000000) make it shorter for a try. What was
measured so far is on the page, so that an hour is not lost where it is stopped.
"""

import datetime
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from app.samples import shop
from app.settings import PROJECT
from tests.bench.measure import Measured, ratio, run

DAY: Final = datetime.date(2024, 1, 1)
ROUNDS: Final = int(os.environ.get("BENCH_ROUNDS", "5"))
ROWS: Final = int(os.environ.get("BENCH_ROWS", "5000000"))
SIZES: Final = [int(size) for size in os.environ.get("BENCH_SIZES", "1000000,5000000,20000000").split(",")]
STARTS: Final = 3
SMALL: Final = 10_000
FORMATS: Final = {"transactions": "json", "customers": "json"}
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spark-app" / "bench"


def raw(rows: int) -> Path:
    """The raw folder of a day of so many rows, made once."""
    folder = CACHE / str(rows)
    if not (folder / "transactions").exists():
        print(f"making {rows:,} rows", flush=True)
        shop.write_day(folder, date=DAY, rows=rows, seed=1, formats=FORMATS)
    return folder


def day(rows: int, *, config: Path, environment: Mapping[str, str] | None = None) -> Measured:
    """The daily run of so many rows in an empty warehouse, from command to end."""
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as home:
        command = [sys.executable, "-m", "app", "etl", "--date", DAY.isoformat(), "--config", str(config)]
        places = {"SPARK_APP_HOME": home, "SPARK_APP_RAW__PATH": str(raw(rows))}
        found = run(command, {**places, **(environment or {})})
    print(f"  {rows:,} rows: {found.cpu:.1f} s CPU, {found.wall:.1f} s, {found.peak_bytes / 1e6:,.0f} MB", flush=True)
    return found


def changed_config(folder: Path, file: str, old: str, new: str) -> Path:
    """A copy of the configuration with one text replaced in the files of a pattern."""
    shutil.copytree(PROJECT / "config", folder)
    for path in folder.glob(file):
        path.write_text(path.read_text().replace(old, new))
    return folder


def overheads(scratch: Path) -> list[str]:
    """What checks and telemetry cost, as ratios of CPU seconds of interleaved runs."""
    unchecked = changed_config(scratch / "unchecked", "etl/*.yml", "checks: true", "checks: false")
    unlogged = changed_config(scratch / "unlogged", "spark/spark-defaults.conf", "eventLog.enabled ", "eventLog.was ")
    (unlogged / "spark" / "spark-defaults.conf").open("a").write("\nspark.eventLog.enabled false\n")
    kinds = {
        "all": lambda: day(ROWS, config=PROJECT / "config"),
        "no checks": lambda: day(ROWS, config=unchecked),
        "no telemetry": lambda: day(ROWS, config=unlogged, environment={"OTEL_SDK_DISABLED": "true"}),
    }
    found: dict[str, list[Measured]] = {kind: [] for kind in kinds}
    for turn in range(ROUNDS):
        order = [*kinds][turn % 3 :] + [*kinds][: turn % 3]
        for kind in order:
            print(f"round {turn + 1} of {ROUNDS}: {kind}", flush=True)
            found[kind].append(kinds[kind]())
    cpu = {kind: [measured.cpu for measured in runs] for kind, runs in found.items()}
    rows = [
        f"| {kind} | {statistics.mean(seconds):.1f} | {statistics.mean(m.wall for m in found[kind]):.1f} |"
        for kind, seconds in cpu.items()
    ]
    return [
        f"## What checks and telemetry cost ({ROWS:,} rows, whole process, CPU seconds)",
        "",
        "| ratio | measured | goal |",
        "|---|---|---|",
        f"| with all checks : without | {ratio(cpu['all'], cpu['no checks'])} | <= 1.2 |",
        f"| with telemetry and event log : without | {ratio(cpu['all'], cpu['no telemetry'])} | <= 1.02 |",
        "",
        "The interval is that of the mean at 95 %. Without checks, only rows that do not parse are held back.",
        "",
        "| run | CPU s (mean) | wall s (mean) |",
        "|---|---|---|",
        *rows,
    ]


def sizes(_scratch: Path) -> list[str]:
    """Rows per second and peak memory of days of several sizes."""
    lines = ["## Size", "", "| rows | wall s | rows/s | CPU s | peak memory (Python + JVM) |", "|---|---|---|---|---|"]
    for rows in SIZES:
        found = day(rows, config=PROJECT / "config")
        peak = f"{found.peak_bytes / 1e6:,.0f} MB"
        lines.append(f"| {rows:,} | {found.wall:.1f} | {rows / found.wall:,.0f} | {found.cpu:.1f} | {peak} |")
    return lines


def starts(scratch: Path) -> list[str]:
    """Seconds from the command to the first rows of a small day, with and without the class-data archive."""
    bare = {"XDG_CACHE_HOME": str(scratch / "no-archive")}
    found: dict[str, list[Measured]] = {"with": [], "without": []}
    for _ in range(STARTS):
        found["with"].append(day(SMALL, config=PROJECT / "config"))
        found["without"].append(day(SMALL, config=PROJECT / "config", environment=bare))
    lines = [
        f"## Start ({SMALL:,} rows, median of {STARTS})",
        "",
        "| class-data archive | first rows s | whole run s |",
        "|---|---|---|",
    ]
    for kind, runs in found.items():
        first = statistics.median(run.first_rows or 0 for run in runs)
        lines.append(f"| {kind} | {first:.1f} | {statistics.median(run.wall for run in runs):.1f} |")
    return lines


def machine() -> str:
    """What this was measured on."""
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr.splitlines()[0]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, {java}, Python {platform.python_version()}, PySpark 4.2.0"


def main() -> None:
    """Measures everything and writes the page."""
    CACHE.mkdir(parents=True, exist_ok=True)
    page = PROJECT / "docs" / "benchmarks.md"
    today = datetime.datetime.now(datetime.UTC).date()
    text = f"# Benchmarks\n\nWritten by `make bench` on {today}: {machine()}.\n"
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as folder:
        for part in (overheads, sizes, starts):
            text += "\n" + "\n".join(part(Path(folder))) + "\n"
            page.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
