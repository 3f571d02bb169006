"""Runs pipelines that train models: makes sure of a history of days, and runs one phase of the pipeline or all."""

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pyspark.sql import functions as F

from app.errors import InputError, UsageError
from app.execution import pipelines
from app.execution.application import Application, open_warehouse, start_application
from app.execution.run import Job, load_jobs, locked, recorded_run, run_batch
from app.models import registry
from app.models.registry import Version
from app.pipeline import lifecycle
from app.pipeline.context import DailyContext
from app.pipeline.model import labelled_data
from app.pipeline.progress import ProgressListener
from app.pipeline.slice import Day
from app.runs.model_card import ModelCard
from app.runs.run_record import RunRecord
from app.samples import demo, refunds
from app.settings import Settings
from app.spark.known_errors import translate_errors
from app.telemetry.spark_names import WORKLOAD
from app.warehouse import raw_files
from app.warehouse.tables import Warehouse

ML: Final = "spark-app ml"
SALES: Final = "transactions"
"""The table whose rows models are about; its days are those of a history."""
DEMO_FROM: Final = datetime.date(2024, 1, 1)
"""The first day of a history that is made where there is none."""
DAY: Final = datetime.timedelta(days=1)
DAYS_NAMED: Final = 5

Phase = Literal["run", "train", "evaluate", "promote", "rollback", "score"]


@dataclass(frozen=True)
class Listed:
    """A version of a model, as `spark-app ml list` shows it."""

    version: Version
    card: ModelCard
    is_in_production: bool


def models() -> list[str]:
    """The names of the modules of `app/ml/` that declare a model; the others make what models are trained on."""
    return [name for name, pipeline in pipelines.load("ml").items() if hasattr(pipeline, "MODEL")]


def chosen_model(name: str | None) -> str:
    """The full name of a model, given as `refunds` or `ml.refunds`; the only one if none is given.

    Raises:
        UsageError: There is no such model, or several and none is named.
    """
    known = models()
    found = pipelines.qualified("ml", [name]) if name else known
    if len(found) != 1 or found[0] not in known:
        raise UsageError(f"name one model with --model: {', '.join(known)}")
    return found[0]


def run_ml(
    settings: Settings,
    phase: Phase,
    *,
    listener: ProgressListener,
    model: str,
    date: datetime.date | None = None,
    version: int | None = None,
) -> list[RunRecord]:
    """Runs a phase of a model, or trains, evaluates and promotes in one go.

    Args:
        settings: The configuration.
        phase: What to do.
        listener: Hears how it gets on.
        model: Its full name.
        date: The day to score; of the others the day at whose end they are done, by default the newest one. With
            `evaluate` the version in production is judged at the end of that day.
        version: The version to evaluate or promote; the newest by default.

    Raises:
        SparkAppError: The run failed; the attribute `results` has its record.
    """
    [job] = load_jobs(settings, "ml", [model])
    with start_application(settings, ML, listener=listener, extra={WORKLOAD: f"{model} {phase}"}) as application:
        run_phase(application, job, phase, date=date, version=version)
    return application.results


def run_phase(
    application: Application,
    job: Job,
    phase: Phase,
    *,
    date: datetime.date | None = None,
    version: int | None = None,
) -> None:
    """Runs a phase in an application that stays open afterwards, after the days that it needs; see `run_ml`."""
    if phase == "score":
        assert date is not None
        _score(application, job, date)
    elif phase == "evaluate" and date is not None:
        _evaluate_production(application, job, date)
    else:
        _train(application, job, phase, date, version)


def listed(settings: Settings, *, listener: ProgressListener, model: str) -> list[Listed]:
    """Every version of a model, oldest first."""
    with open_warehouse(settings, listener=listener) as warehouse:
        production = registry.production(warehouse, model)
        return [
            Listed(
                version,
                registry.evaluation(warehouse, model, version.number) or version.card,
                production is not None and production.number == version.number,
            )
            for version in registry.versions(warehouse, model)
        ]


def _score(application: Application, job: Job, date: datetime.date) -> None:
    days = _days(date, before=job.pipeline.MODEL.window_days)
    with translate_errors(application.log_file):
        _require_sales(application, days, needed=[[date]])
        if application.settings.is_demo:
            _make_history(application, job, days)
        else:
            for table in sorted({*job.pipeline.READS} - {SALES}):
                _note_missing(application, table, days)
    with recorded_run(application, job.name, Day.of(date), DailyContext) as context, locked(application, context):
        lifecycle.score(context, job.pipeline.MODEL)


def _evaluate_production(application: Application, job: Job, date: datetime.date) -> None:
    # Spark ML takes a second to import.
    from app.pipeline.training import TrainingContext

    model, config = job.pipeline.MODEL, job.config
    days = _days(date, before=model.window_days + config.held_out_days - 1 + config.label_days)
    with translate_errors(application.log_file):
        _require_sales(application, days, needed=[_held_out(job, date)])
        _make_history(application, job, days)
    with recorded_run(application, job.name, Day.of(date), TrainingContext) as context, locked(application, context):
        lifecycle.evaluate_production(context, model, config)


def _train(application: Application, job: Job, phase: Phase, date: datetime.date | None, number: int | None) -> None:
    # Spark ML takes a second to import.
    from app.pipeline.training import TrainingContext

    with translate_errors(application.log_file):
        last = _last_day(application.warehouse, job, phase, date, number)
        if phase in ("run", "train"):
            days = _days(last, before=job.config.history_days - 1)
            otherwise = (
                f"set history_days in config/{job.name.replace('.', '/')}.yml, or choose another day with --date"
            )
            needed, half = [days[:1], _held_out(job, last)], (len(days) + 1) // 2
            _require_sales(application, days, needed=needed, least=half, otherwise=otherwise)
            _make_history(application, job, days)
    with (
        recorded_run(application, job.name, Day.of(last), TrainingContext) as context,
        locked(application, context),
    ):
        _PHASES[phase](job, context, number)
        context.run.record_schedule(job.config.schedule)


def _run(job: Job, context: Any, _: int | None) -> None:
    job.pipeline.run(context, job.config)


def _fit(job: Job, context: Any, _: int | None) -> None:
    with labelled_data(context, job.pipeline.MODEL, job.config, context.date) as data:
        lifecycle.train(context, job.pipeline.MODEL, job.config, data)


def _evaluate(job: Job, context: Any, number: int | None) -> None:
    version = registry.version(context.warehouse, job.name, number)
    versions = version.card.table_versions
    with labelled_data(context, job.pipeline.MODEL, job.config, context.date, versions) as data:
        lifecycle.evaluate(context, job.pipeline.MODEL, job.config, version, data)


def _promote(job: Job, context: Any, number: int | None) -> None:
    version = registry.version(context.warehouse, job.name, number)
    lifecycle.promote(context, job.pipeline.MODEL, job.config, version, is_named=number is not None)


def _rollback(job: Job, context: Any, _: int | None) -> None:
    lifecycle.rollback(context, job.pipeline.MODEL)


_PHASES: Final[dict[str, Callable[[Job, Any, int | None], None]]] = {
    "run": _run,
    "train": _fit,
    "evaluate": _evaluate,
    "promote": _promote,
    "rollback": _rollback,
}


def _days(last: datetime.date, *, before: int) -> list[datetime.date]:
    """A day and so many before it."""
    return [last - age * DAY for age in range(before, -1, -1)]


def _held_out(job: Job, last: datetime.date) -> list[datetime.date]:
    """The days that judge a model as of the end of a day."""
    return _days(last - job.config.label_days * DAY, before=job.config.held_out_days - 1)


def _last_day(
    warehouse: Warehouse, job: Job, phase: Phase, date: datetime.date | None, number: int | None
) -> datetime.date:
    """The last day that is known: the given one, or that of the version in question, or the newest one."""
    if phase not in ("run", "train"):
        return datetime.date.fromisoformat(registry.version(warehouse, job.name, number).card.as_of)
    newest = max(_there(warehouse, SALES), default=None)
    return date or newest or DEMO_FROM + (job.config.history_days - 1) * DAY


def _require_sales(
    application: Application,
    days: Sequence[datetime.date],
    *,
    needed: Sequence[Sequence[datetime.date]],
    least: int = 1,
    otherwise: str = "choose another day with --date",
) -> None:
    """Tells which days have no sales, and that those of the demo shop are about to be made.

    A shop of the user's own may be closed on some days.

    Args:
        application: The application.
        days: The days that are read.
        needed: Periods, each of which must have sales.
        least: How many of the days must have sales.
        otherwise: What to do where the shop was closed.

    Raises:
        InputError: So many days have none that nothing can be done, and the raw folder is the user's own.
    """
    there = _there(application.warehouse, SALES)
    missing = [day for day in days if day not in there]
    if missing and application.settings.is_demo:
        text = f"{missing[0]} to {missing[-1]}" if len(missing) > 1 else str(missing[0])
        application.listener.note(f"no history of {text}: making demo days first, some seconds each")
        return
    lacking = [period for period in needed if there.isdisjoint(period)]
    if len(days) - len(missing) < least:
        lacking.append(missing)
    if lacking:
        first, last = lacking[0][0], lacking[0][-1]
        raise InputError(
            f"no transactions of {first}: publish them with `spark-app etl --from {first} --to {last}`, or {otherwise}"
        )
    _note_missing(application, SALES, days)


def _note_missing(application: Application, table: str, days: Sequence[datetime.date]) -> None:
    missing = sorted({*days} - _there(application.warehouse, table))
    if missing:
        more = [f"{len(missing) - DAYS_NAMED} more"] if len(missing) > DAYS_NAMED else []
        text = ", ".join([*map(str, missing[:DAYS_NAMED]), *more])
        application.listener.note(f"{table} has no rows of {text}: what happened on these days is not known")


def _make_history(application: Application, job: Job, days: Sequence[datetime.date]) -> None:
    """Publishes the days that the tables which a model reads do not have; generates them if it is the demo shop's."""
    settings = application.settings
    for daily, day in _missing(application, job, days):
        if settings.is_demo:
            demo.make_if_missing(application.spark, settings, day, note=_quiet)
            demo.make_refunds_if_missing(application.spark, settings, day)
        run_batch(application, daily, Day.of(day), context_type=DailyContext)
    application.results.clear()  # the command is about the model


def _missing(application: Application, job: Job, days: Sequence[datetime.date]) -> Iterator[tuple[Job, datetime.date]]:
    """The runs of daily pipelines without which the tables that a model reads lack days.

    On a day on which a shop of the user's own was closed, refunds may have become known, or nothing was delivered.
    """
    loaded, sold = pipelines.load("etl") | pipelines.load("ml"), _there(application.warehouse, SALES)
    for table in job.pipeline.READS:
        there = _there(application.warehouse, table)
        needed = pipelines.needed(loaded, table)
        jobs = [each for name in needed for each in load_jobs(application.settings, name.partition(".")[0], [name])]
        for day in days:
            is_open = application.settings.is_demo or day in sold
            if day not in there and (is_open or (table != SALES and _has_refunds(application, day))):
                yield from ((daily, day) for daily in jobs)


def _has_refunds(application: Application, day: datetime.date) -> bool:
    folder = raw_files.day_folder(application.settings.raw_path, refunds.SOURCE, day)
    return raw_files.has_files(application.spark, folder)


def _there(warehouse: Warehouse, table: str) -> set[datetime.date]:
    """The days of a table that is partitioned by day."""
    day = warehouse.tables[table].partitions[0]
    return {row[0] for row in warehouse.table(table).select(F.col(day)).distinct().collect()}


def _quiet(_: str) -> None:
    """One line says that days are made; not one for each."""
