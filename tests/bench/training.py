"""What training and scoring `ml.refunds` takes, and what the wrapping of `pyspark.ml` costs.

BENCH_TRAINING_ROWS (186000 a day, and six days train: a million rows) makes it shorter for a try. The history is made
once, by the commands of a user.
"""

import json
import os
import shutil
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from spark_app.settings import PROJECT
from tests.bench import fitting
from tests.bench.measure import CACHE, Measured, ratio, run, spread

ROWS: Final = int(os.environ.get("BENCH_TRAINING_ROWS", "186000"))
CANDIDATES: Final = {
    "logistic_regression": {"regParam": [0.01], "maxIter": [50]},
    "random_forest": {"numTrees": [30], "maxDepth": [5]},
    "gradient_boosted_trees": {"maxIter": [15], "maxDepth": [4]},
}
QUICK: Final = {"logistic_regression": {"regParam": [0.01], "maxIter": [5]}}
TRAINED: Final = ("models", "model_evaluations", "model_promotions", "refund_scores", "_models")


def training(scratch: Path) -> list[str]:
    """A training and a scored day by their commands, and fits in turn with and without the training context."""
    home = history(scratch)
    config = configured(scratch / "config", CANDIDATES)
    trained = app(home, config, "ml")
    scored = app(home, config, "ml", "score", "--date", str(fitting.LAST))
    command = [sys.executable, str(fitting.__file__), str(configured(scratch / "quick", QUICK))]
    measured = run(command, {"SPARK_APP_HOME": str(home), "PYTHONPATH": str(PROJECT)})
    found = json.loads(measured.last_line)
    return [*_commands(trained, scored, found), "", *_costs(found)]


def history(scratch: Path) -> Path:
    """A home folder with the days that train, without a trained model."""
    home = CACHE / f"history-{ROWS}"
    if not (home / "whole").exists():
        shutil.rmtree(home, ignore_errors=True)
        config = configured(scratch / "history", QUICK)
        days = ["--from", str(fitting.FIRST), "--to", str(fitting.LAST)]
        app(home, config, "data", *days, "--rows", str(ROWS))
        app(home, config, "etl", *days)
        app(home, config, "ml", "train")  # publishes the refunds
        (home / "whole").touch()
    for name in TRAINED:
        shutil.rmtree(home / "data" / "warehouse" / name, ignore_errors=True)
    return home


def configured(folder: Path, candidates: Mapping[str, Any]) -> Path:
    """The shipped configuration with a longer history, these candidates and two folds."""
    shutil.copytree(PROJECT / "config", folder)
    path = folder / "ml" / "refunds.yml"
    changes = {"history_days": fitting.DAYS, "held_out_days": 1, "folds": 2, "candidates": candidates}
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")
    return folder


def app(home: Path, config: Path, *words: str) -> Measured:
    """A command of `spark-app` on a home folder, from start to end."""
    command = [sys.executable, "-m", "spark_app", *words, "--config", str(config)]
    measured = run(command, {"SPARK_APP_HOME": str(home)})
    print(f"  {' '.join(words)}: {measured.wall:.1f} s, {measured.peak_bytes / 1e6:,.0f} MB", flush=True)
    return measured


def _commands(trained: Measured, scored: Measured, found: Mapping[str, Any]) -> list[str]:
    lines = [
        "| command, from start to end | rows | wall s | CPU s | peak memory, MB |",
        "|---|---|---|---|---|",
    ]
    for name, rows, measured in (("ml", found["train"], trained), ("ml score", found["day"], scored)):
        figures = f"{measured.wall:.1f} | {measured.cpu:.1f} | {measured.peak_bytes / 1e6:,.0f}"
        lines.append(f"| `spark-app {name}` | {rows:,} | {figures} |")
    return [
        *lines,
        "",
        "One candidate of each algorithm (regression with 50 iterations, 30 trees of depth 5, 15 boosted trees of",
        "depth 4), two folds: seven fits, of which two are at the same time. The command also makes features,",
        "statistics and scores on a held-out day, and writes the report; scoring also measures drift. Peak memory is",
        "that of all processes (PSS).",
    ]


def _costs(found: Mapping[str, Any]) -> list[str]:
    wall, cpu = ([[pair[side][figure] for pair in found["fits"]] for side in ("seen", "plain")] for figure in (0, 1))
    rates = found["rates"]
    return [
        "| in one session, in turn | with the context | plain `pyspark.ml` | with : without | goal |",
        "|---|---|---|---|---|",
        f"| wall s of a cross-validation | {_median(wall[0])} | {_median(wall[1])} | {ratio(*wall)} | <= 1.01 |",
        f"| CPU s of it | {_median(cpu[0])} | {_median(cpu[1])} | {ratio(*cpu)} | <= 1.01 |",
        "",
        f"The same `CrossValidator` on the same {found['fitted']:,} rows in memory: a regression, two folds and the",
        "fit on all rows. With the context each fit has a span, a score, a line of progress and properties of its",
        "jobs. Both sides have the event log. The interval is that of the mean at 95 %.",
        "",
        f"Batch scoring, rows per second on both cores: {spread(rates['table'])} from the tables of {found['train']:,}",
        f"rows with their features to probabilities that are thrown away, {spread(rates['memory'])} from features in",
        "memory.",
    ]


def _median(figures: list[float]) -> str:
    return f"{statistics.median(figures):.2f}"
