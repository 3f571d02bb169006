"""How fast `spark-app serve` lists, searches and adds up many runs, and in how much memory.

BENCH_RUNS (100000) makes it shorter for a try.
"""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from spark_app.eventlog.comparison.profile import VERSION, RunProfile
from spark_app.eventlog.cost import HOUR_MS
from tests.bench.measure import ROUNDS, Peak, spread
from tests.polling import poll_until

RUNS: Final = int(os.environ.get("BENCH_RUNS", "100000"))
NEW: Final = 200
STARTED: Final = 1_700_000_000_000
"""When the first run started: 14 November 2023."""
LONGEST_SECONDS: Final = 600.0
READING: Final = b"more files are being read"
PAGES: Final[Mapping[str, str]] = {
    "all, the newest 200 and the costs by application": "/",
    "the last page": f"/?page={RUNS // 200}",
    "a search": "/?q=job-7+team-7",
    "a team on a cluster, by user": "/?label.team=team-7&label.cluster=cluster-3&by=label.user",
    "the costs by user": "/?by=label.user",
    "the costs by day": "/?by=day",
}


def listing(folder: Path) -> list[str]:
    """A table of the pages, and what the first look and new runs take."""
    home = folder / "listed"
    _write(home, 0, RUNS)
    with _served(home) as (url, peak):
        began = time.monotonic()
        poll_until(lambda: READING not in _get(url), "all runs are in the list", seconds=LONGEST_SECONDS)
        first = time.monotonic() - began
        rows = {name: [_seconds(f"{url.rstrip('/')}{path}") for _ in range(ROUNDS)] for name, path in PAGES.items()}
        _write(home, RUNS, NEW)
        began = time.monotonic()
        newest = f"job-{(RUNS + NEW - 1) // 100}".encode()
        poll_until(lambda: newest in _get(url), "the new runs are in the list", seconds=LONGEST_SECONDS)
        new = time.monotonic() - began
    about = (
        f"{RUNS:,} stored run profiles of {RUNS // 100:,} applications, served by `spark-app serve`. The first look at "
        f"them took {first:.1f} s; {NEW} new ones were in the list after {new:.1f} s. "
        f"At most {peak.bytes / 2**20:,.0f} MiB."
    )
    return [
        about,
        "",
        "| page | seconds |",
        "|---|---|",
        *(f"| {name} | {spread(figures, '.2f')} |" for name, figures in rows.items()),
    ]


def _write(home: Path, first: int, number: int) -> None:
    """Stores run profiles, of a hundred runs of each application."""
    for run in range(first, first + number):
        profile = RunProfile(
            version=VERSION,
            application=f"job-{run // 100}",
            id=f"app-{run}",
            outcome="succeeded" if run % 7 else "failed",
            started=STARTED + run * 400_000,
            duration_ms=1000 + run,
            startup_ms=0,
            end_ms=0,
            core_ms=HOUR_MS,
            executors_lost=0,
            spark_version="4.2.0",
            settings={f"spark.setting.{number}": "x" * 30 for number in range(40)},
            groups=[],
            plans={},
            operators={},
            gib_ms=HOUR_MS,
            labels={name: f"{name}-{run % few}" for name, few in (("team", 40), ("user", 300), ("cluster", 4))},
        )
        file = home / "reports" / "records" / f"job-{run // 100}" / f"{profile.started:013}-{profile.id}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.json.encode(profile))


@contextmanager
def _served(home: Path) -> Iterator[tuple[str, Peak]]:
    """The address of the list of a home folder, and the memory of its server."""
    command = [sys.executable, "-m", "spark_app", "serve", "--port", "0"]
    environment = {**os.environ, "SPARK_APP_HOME": str(home), "SPARK_APP_PRICES__CORE_HOUR": "0.05"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    peak = Peak(process.pid)
    try:
        line = next(iter(process.stdout or ()))
        yield next(word for word in line.split() if word.startswith("http://")), peak
    finally:
        peak.stop()
        process.terminate()
        process.wait()


def _get(address: str) -> bytes:
    with urllib.request.urlopen(address) as answer:
        content: bytes = answer.read()
    return content


def _seconds(address: str) -> float:
    began = time.monotonic()
    _get(address)
    return time.monotonic() - began
