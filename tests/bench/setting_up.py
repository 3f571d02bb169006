"""How long `make run-etl` takes in a fresh clone with an empty home folder, and how much of that is download."""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_app.settings import PROJECT
from tests.bench.measure import CACHE, ROUNDS, Measured, run, spread

GOAL_SECONDS: Final = 120
COMMAND: Final = ["make", "--no-print-directory", "run-etl", "DATE=2024-01-01"]
# An interval of the log of set-up: from the first line with one text to the first line with the other.
DOWNLOADS: Final = {
    "downloads of packages (uv and 600 MB; Spark arrives last)": ("Looking in links|Collecting", "Building pyspark"),
    "download of six jars, by Ivy": (r"jars of Delta and Kafka \(3/3\)", "done in"),
}
SET_UP: Final = ("environment in .venv", "done in")


@dataclass(frozen=True)
class FirstResult:
    """One `make run-etl` in a fresh clone.

    Attributes:
        measured: Its seconds and CPU seconds.
        log: The log of set-up.
        archive_seconds: From the first result until the class-data archive existed.
    """

    measured: Measured
    log: str
    archive_seconds: float

    def seconds(self, interval: tuple[str, str]) -> float:
        """The length of an interval of the log.

        Raises:
            ValueError: The log has no such interval.
        """
        begin, end = (re.search(rf"^\[ *(\d+) s\] .*(?:{text})", self.log, re.MULTILINE) for text in interval)
        if begin is None or end is None:
            raise ValueError(f"the log of set-up has no interval {interval}:\n{self.log}")
        return float(int(end[1]) - int(begin[1]))


def first_result(scratch: Path) -> list[str]:
    """Seconds from `make run-etl` to its end, and the parts of them."""
    results = [measure(scratch / f"round-{turn}") for turn in range(ROUNDS)]
    set_up = [result.seconds(SET_UP) for result in results]
    rows = {
        "to the first result": [result.measured.wall for result in results],
        "set-up": set_up,
        **{f"of which {name}": [result.seconds(part) for result in results] for name, part in DOWNLOADS.items()},
        "the run of 10,000 rows": [result.measured.wall - took for result, took in zip(results, set_up, strict=True)],
        "CPU seconds of all": [result.measured.cpu for result in results],
        "later, in the background: the class-data archive": [result.archive_seconds for result in results],
    }
    return [
        "| `make run-etl` in a fresh clone, empty home folder | s |",
        "|---|---|",
        *(f"| {name} | {spread(figures)} |" for name, figures in rows.items()),
        "",
        f"Medians of {ROUNDS}; goal: at most {GOAL_SECONDS} s to the first result where 450 MB arrive in 25 s. Spark's",
        "450 MB are unpacked while they arrive; the other packages arrive at the same time.",
    ]


def measure(folder: Path) -> FirstResult:
    """Runs the command in a clone of what is committed, and waits for the archive that it leaves to be built."""
    subprocess.run(["git", "clone", "--quiet", PROJECT, folder / "clone"], check=True)
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as home:
        empty = {"HOME": home, "XDG_CACHE_HOME": f"{home}/.cache", "VIRTUAL_ENV": "", "PYTHONDONTWRITEBYTECODE": ""}
        measured = run(COMMAND, empty, folder=folder / "clone")
        archive = run(["make", "--silent", "archive"], empty, folder=folder / "clone")
    print(f"  first result: {measured.wall:.1f} s, {measured.cpu:.1f} s CPU", flush=True)
    return FirstResult(measured, (folder / "clone" / ".setup.log").read_text(encoding="utf-8"), archive.wall)
