"""A process that fits in turn with and without the training context, and scores; prints what it took as JSON."""

import datetime
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pyspark.ml import PipelineModel
from pyspark.sql import DataFrame

from spark_app.engine.model import labelled_data
from spark_app.engine.training import TrainingContext
from spark_app.execution.application import start_application
from spark_app.execution.run import Job, load_jobs, recorded_run
from spark_app.execution.training import model_of
from spark_app.models import estimators, registry, scoring
from spark_app.settings import load_settings
from tests.bench.measure import ROUNDS, children, cpu_seconds

FIRST: Final = datetime.date(2024, 1, 1)
DAYS: Final = 11
LAST: Final = FIRST + datetime.timedelta(days=DAYS - 1)
MODEL: Final = "ml.refunds"
WEIGHT: Final = 20.0
SCORED: Final = 3
PAIRS: Final = 4 * ROUNDS
"""Of fits: one takes seconds, in which the JVM's compiler and garbage collector weigh more than what is compared."""


class Silent:
    """Hears everything and shows nothing."""

    def note(self, text: str) -> None:
        """Nobody looks."""

    def step_started(self, pipeline: str, slice_key: str, step: str) -> None:
        """Nobody looks."""

    def step_ended(self, pipeline: str, slice_key: str, step: str, seconds: float, rows: int | None) -> None:
        """Nobody looks."""

    def step_progress(self, pipeline: str, slice_key: str, step: str, text: str) -> None:
        """Nobody looks."""


def main(config: Path) -> dict[str, Any]:
    """Measures in one application, with the newest version that the registry has."""
    settings = load_settings(config)
    [job] = load_jobs(settings, "ml", [MODEL])
    with (
        start_application(settings, "bench", listener=Silent()) as application,
        recorded_run(application, MODEL, LAST, TrainingContext) as context,
        labelled_data(context, model_of(job), job.config, LAST) as data,
    ):
        rows = data.held_out
        found = {"train": data.train.count(), "fitted": rows.count(), "day": of_day(context).count()}
        fits = compared(context, job, rows)
        model = registry.load(registry.version(context.warehouse, MODEL))
        rates = {"memory": rate(model, data.train, found["train"]), "table": rate_of_tables(context, model, job)}
    return found | {"fits": fits, "rates": rates}


def of_day(context: TrainingContext) -> DataFrame:
    """The transactions of the last day."""
    return context.table("transactions").where(f"processed_date = '{LAST}'")


def compared(context: TrainingContext, job: Job, rows: DataFrame) -> list[dict[str, tuple[float, float]]]:
    """Wall and CPU seconds of cross-validations with and without the context, in turn, after one of each."""
    model, config = model_of(job), job.config
    search = estimators.search(
        model.categories, model.numbers, config.candidates, positive_weight=WEIGHT, seed=config.seed
    )
    weighted = estimators.with_weight_and_fold(
        rows, "transaction_id", positive_weight=WEIGHT, folds=config.folds, seed=config.seed
    )
    validator = estimators.cross_validator(search, folds=config.folds, parallelism=config.parallelism)
    sides: dict[str, Callable[[], Any]] = {
        "seen": lambda: context.cross_validate(validator, weighted, search.trials),
        "plain": lambda: validator.fit(weighted),
    }
    for warm_up in sides.values():
        warm_up()
    rounds = []
    for turn in range(PAIRS):
        order = sorted(sides, reverse=bool(turn % 2))
        rounds.append({side: taken(sides[side]) for side in order})
    return rounds


def taken(work: Callable[[], Any]) -> tuple[float, float]:
    """Wall seconds, and CPU seconds of this process and its JVM."""
    started, cpu = time.monotonic(), _cpu()
    work()
    return time.monotonic() - started, _cpu() - cpu


def _cpu() -> float:
    return sum(cpu_seconds(pid) for pid in (os.getpid(), *children(os.getpid())))


def rate(model: PipelineModel, rows: DataFrame, count: int) -> list[float]:
    """Rows per second from features to probabilities."""
    scored = model.transform(rows).select(estimators.PROBABILITY)
    work = scored.write.format("noop").mode("overwrite").save
    return [count / taken(work)[0] for _ in range(SCORED)]


def rate_of_tables(context: TrainingContext, model: PipelineModel, job: Job) -> list[float]:
    """Rows per second from the tables to probabilities."""
    declared = model_of(job)
    periods = declared.periods(job.config, LAST)
    frames = {name: context.table(name) for name in declared.inputs.reads}
    inputs = declared.inputs.of_days(frames, context.warehouse.tables, periods.first, periods.train_last)
    scored = scoring.scored(model, inputs, registry.version(context.warehouse, MODEL), keep=declared.examples.keys)
    count = inputs.count()
    return [count / taken(scored.write.format("noop").mode("overwrite").save)[0] for _ in range(SCORED)]


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))), flush=True)
