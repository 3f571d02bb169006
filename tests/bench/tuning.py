"""What `spark-app tune` does to programs that others wrote: examples of the PySpark distribution.

BENCH_TUNE_RUNS (5), BENCH_TUNE_BUDGET (40m) and BENCH_PROGRAMS (words of their names) make it shorter for a try.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from spark_app.commands.tune import change_text
from spark_app.spark.java_runtime import spark_home
from spark_app.tuning.judgement import Change

EXAMPLES: Final = Path("examples", "src", "main", "python")
SUBMIT: Final = ("spark-submit", "--master", "local[2]", "--conf", "spark.ui.enabled=false")
PAGES: Final = 20_000
LINKS_OF_PAGE: Final = 5
PROGRAMS: Final[Mapping[str, Sequence[str]]] = {
    "transitive_closure.py": ("2",),
    "pagerank.py": ("{links}", "8"),
    "ml/cross_validator.py": (),
    "pi.py": ("10",),
    "sort.py": ("{numbers}",),
    "wordcount.py": ("{links}",),
}
"""The programs with their arguments; the first three have something to tune, by their logs, the others have nothing."""


def tuning(scratch: Path) -> list[str]:
    """A row per program: what was tried, and what helped."""
    words = os.environ.get("BENCH_PROGRAMS", "").split()
    names = [name for name in PROGRAMS if not words or any(word in name for word in words)]
    return [
        "| program | as it is | settings tried | kept | time | CPU | cost |",
        "|---|---|---|---|---|---|---|",
        *(_row(name, _tuned(name, scratch)) for name in names),
        "",
        (
            "Examples of PySpark 4.2.0 on `local[2]`, unchanged. Intervals are 90 %, of pairs of runs that did "
            f"not choose the settings. Load of the machine at the end: {os.getloadavg()[1]:.1f} runnable in 5 min."
        ),
    ]


def _tuned(name: str, scratch: Path) -> dict[str, Any]:
    runs, budget = os.environ.get("BENCH_TUNE_RUNS", "5"), os.environ.get("BENCH_TUNE_BUDGET", "40m")
    files = _files(scratch)
    program = [*SUBMIT, str(EXAMPLES / name), *(word.format_map(files) for word in PROGRAMS[name])]
    done = subprocess.run(
        [sys.executable, "-m", "spark_app", "tune", "--runs", runs, "--budget", budget, "--json", "--", *program],
        cwd=spark_home(),
        env=os.environ | {"SPARK_APP_HOME": str(scratch), "PYSPARK_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _files(scratch: Path) -> dict[str, str]:
    """Inputs of the programs, the same each time."""
    chance = random.Random(1)
    links = [f"{page} {chance.randrange(PAGES)}" for page in range(PAGES) for _ in range(LINKS_OF_PAGE)]
    found = {"links": links, "numbers": [str(chance.randrange(PAGES)) for _ in range(PAGES)]}
    for name, lines in found.items():
        (scratch / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {name: str(scratch / name) for name in found}


def _row(name: str, found: Mapping[str, Any]) -> str:
    tuned = found["tuned"] or {}
    kept = tuned.get("settings", {}) if tuned.get("verdict") == "helps" else {}
    tried = [
        f"`{key}={value}`: {each['problem'] or each['verdict']}"
        for each in found["settings"]
        for key, value in each["settings"].items()
    ]
    changes = [_text(tuned.get(figure)) if kept else "-" for figure in ("time", "cpu", "cost")]
    settings = ", ".join(f"`{key}={value}`" for key, value in kept.items()) or "nothing"
    took = f"{found['baseline']['duration_ms'] / 1000:.1f} s"
    return f"| {' | '.join((f'`{name}`', took, '; '.join(tried) or 'none', settings, *changes))} |"


def _text(change: Mapping[str, Any] | None) -> str:
    return change_text(Change(**change) if change else None)
