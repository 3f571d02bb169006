"""What `spark-app tune` does to programs that others wrote: examples of PySpark, and queries of TPC-H.

A part that was interrupted goes on: each program is a line in `tuning.jsonl` of the cache. BENCH_TUNE_RUNS (5),
BENCH_TUNE_BUDGET (40m) and BENCH_PROGRAMS (words of their names) make it shorter for a try.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from spark_app.annexes.tune.command import change_text
from spark_app.annexes.tune.judgement import Effect
from spark_app.settings import PROJECT
from spark_app.spark.java_runtime import spark_home
from tests.bench.measure import CACHE, alone

FILE: Final = CACHE / "tuning.jsonl"
EXAMPLES: Final = Path("examples", "src", "main", "python")
TPCH: Final = str(Path(__file__).with_name("tpch_job.py"))
SUBMIT: Final = ("spark-submit", "--master", "local[2]", "--conf", "spark.ui.enabled=false")
PAGES: Final = 20_000
LINKS_OF_PAGE: Final = 5
PROGRAMS: Final[Mapping[str, Sequence[str]]] = {
    "pagerank.py": (str(EXAMPLES / "pagerank.py"), "{links}", "5"),
    "TPC-H Q3, Q5, Q18": (TPCH, "15000", "Q3", "Q5", "Q18"),
    "TPC-H, six queries": (TPCH, "15000", "Q1", "Q3", "Q5", "Q6", "Q12", "Q18"),
    "TPC-H Q3, Q5, Q18 without AQE": ("--conf", "spark.sql.adaptive.enabled=false", TPCH, "15000", "Q3", "Q5", "Q18"),
    "pi.py": (str(EXAMPLES / "pi.py"), "10"),
    "sort.py": (str(EXAMPLES / "sort.py"), "{numbers}"),
    "wordcount.py": (str(EXAMPLES / "wordcount.py"), "{links}"),
}
"""What follows the common options. The first four are chosen for what a setting may save, the others for nothing."""


def tuning(scratch: Path) -> list[str]:
    """A row per program: what was tried, and what helped."""
    words = os.environ.get("BENCH_PROGRAMS", "").split()
    names = [name for name in PROGRAMS if not words or any(word in name for word in words)]
    known = _known()
    for name in names:
        if name not in known:
            known[name] = _tuned(name, scratch)
            with FILE.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"program": name, "found": known[name]}) + "\n")
    return [
        "| program | as it is | settings tried | kept | time | CPU | cost |",
        "|---|---|---|---|---|---|---|",
        *(_row(name, known[name]) for name in names),
        "",
        (
            "Examples of PySpark 4.2.0, unchanged, and queries of TPC-H on small tables, on `local[2]`. Intervals are "
            "90 %, of pairs of runs that did not choose the settings."
        ),
    ]


def _known() -> dict[str, dict[str, Any]]:
    """What was found before, by the names of the programs."""
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    return {each["program"]: each["found"] for each in map(json.loads, lines)}


def _tuned(name: str, scratch: Path) -> dict[str, Any]:
    runs, budget = os.environ.get("BENCH_TUNE_RUNS", "5"), os.environ.get("BENCH_TUNE_BUDGET", "40m")
    files = _files(scratch)
    program = alone([*SUBMIT, *(word.format_map(files) for word in PROGRAMS[name])])
    done = subprocess.run(
        [sys.executable, "-m", "spark_app", "tune", "--runs", runs, "--budget", budget, "--json", "--", *program],
        cwd=spark_home(),
        env=os.environ | {"SPARK_APP_HOME": str(scratch), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(PROJECT)},
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
    return change_text(Effect(**change) if change else None)
