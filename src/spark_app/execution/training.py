"""Runs pipelines that train models: makes sure of a history of days, and runs one phase of the pipeline or all."""

import datetime
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal

from pyspark.sql import functions as F

from spark_app.engine import promotion, training_phases
from spark_app.engine.context import DailyContext
from spark_app.engine.model import Model, labelled_data
from spark_app.engine.progress import ProgressListener
from spark_app.errors import InputError, UsageError
from spark_app.execution import checks, pipelines
from spark_app.execution.application import Application, open_warehouse, start_application
from spark_app.execution.run import (
    ContextType,
    Job,
    load_jobs,
    locked,
    make_if_missing,
    recorded_run,
    run_batch,
    with_fingerprints,
)
from spark_app.models import registry
from spark_app.models.registry import Version
from spark_app.runs.model_card import ModelCard
from spark_app.runs.run_record import RunRecord
from spark_app.settings import Settings
from spark_app.spark import call_sites
from spark_app.spark.known_errors import translate_errors
from spark_app.vocabulary.spark_names import WORKLOAD
from spark_app.warehouse.tables import Warehouse

ML: Final = "spark-app ml"
DEMO_FROM: Final = datetime.date(2024, 1, 1)
"""The first day of a history that is made where there is none."""
DAY: Final = datetime.timedelta(days=1)
DAYS_NAMED: Final = 5

Phase = Literal["run", "train", "evaluate", "promote", "rollback", "score"]


@dataclass(frozen=True)
class ListedVersion:
    """A version of a model, as `spark-app ml list` shows it."""

    version: Version
    card: ModelCard
    is_in_production: bool


def models() -> list[str]:
    """The names of the modules of `app/ml/` that declare a model; the others make what models are trained on."""
    return [name for name, pipeline in pipelines.load("ml").items() if pipeline.trains]


def model_of(job: Job) -> Model:
    """The model that a pipeline of `models` trains."""
    assert job.pipeline.trains is not None
    return job.pipeline.trains


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
        checks.require_no_mistake(application, {model: job.pipeline})
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


def listed_versions(settings: Settings, *, listener: ProgressListener, model: str) -> list[ListedVersion]:
    """Every version of a model, oldest first."""
    with open_warehouse(settings, listener=listener) as warehouse:
        production = registry.production(warehouse, model)
        return [
            ListedVersion(
                version,
                registry.evaluation(warehouse, model, version.number) or version.card,
                production is not None and production.number == version.number,
            )
            for version in registry.versions(warehouse, model)
        ]


def _score(application: Application, job: Job, date: datetime.date) -> None:
    days = _days(date, before=model_of(job).inputs.window_days)
    with translate_errors(application.log_file):
        _require_examples(application, job, days, needed=[[date]])
        if application.settings.is_demo:
            _make_history(application, job, days)
        else:
            for table in sorted({*_of_days(application, job)} - {_examples(job)}):
                _note_missing(application, table, days)
    with _opened(application, job, date, DailyContext) as context:
        promotion.score(context, model_of(job))


def _evaluate_production(application: Application, job: Job, date: datetime.date) -> None:
    # Spark ML takes a second to import.
    from spark_app.engine.training import TrainingContext

    model, config = model_of(job), job.config
    days = _days(date, before=model.inputs.window_days + config.held_out_days - 1 + config.label_days)
    with translate_errors(application.log_file):
        _require_examples(application, job, days, needed=[_held_out(job, date)])
        _make_history(application, job, days)
    with _opened(application, job, date, TrainingContext) as context:
        training_phases.evaluate_production(context, model, config)


def _train(application: Application, job: Job, phase: Phase, date: datetime.date | None, number: int | None) -> None:
    # Spark ML takes a second to import.
    from spark_app.engine.training import TrainingContext

    with translate_errors(application.log_file):
        last = _last_day(application.warehouse, job, phase, date, number)
        if phase in ("run", "train"):
            days = _days(last, before=job.config.history_days - 1)
            otherwise = (
                f"set history_days in config/{job.name.replace('.', '/')}.yml, or choose another day with --date"
            )
            needed, half = [days[:1], _held_out(job, last)], (len(days) + 1) // 2
            _require_examples(application, job, days, needed=needed, least=half, otherwise=otherwise)
            _make_history(application, job, days)
    with _opened(application, job, last, TrainingContext) as context:
        _PHASES[phase](job, context, number)
        context.telemetry.record_schedule(job.config.schedule)


@contextmanager
def _opened(
    application: Application, job: Job, date: datetime.date, context_type: Callable[..., ContextType]
) -> Iterator[ContextType]:
    """A run that no other one of the model disturbs, whose Spark jobs have the line of the model."""
    model = model_of(job)
    with (
        recorded_run(application, job.name, date, context_type) as context,
        locked(application, context),
        call_sites.work_of(model.function.__name__, model.location.file, model.location.line),
    ):
        yield context


def _run(job: Job, context: Any, _: int | None) -> None:
    job.pipeline.run(context, job.config)


def _fit(job: Job, context: Any, _: int | None) -> None:
    with labelled_data(context, model_of(job), job.config, context.date) as data:
        training_phases.train(context, model_of(job), job.config, data)


def _evaluate(job: Job, context: Any, number: int | None) -> None:
    version = registry.version(context.warehouse, job.name, number)
    versions = version.card.table_versions
    with labelled_data(context, model_of(job), job.config, context.date, versions) as data:
        training_phases.evaluate(context, model_of(job), job.config, version, data)


def _promote(job: Job, context: Any, number: int | None) -> None:
    version = registry.version(context.warehouse, job.name, number)
    promotion.promote(context, model_of(job), job.config, version, is_named=number is not None)


def _rollback(job: Job, context: Any, _: int | None) -> None:
    promotion.rollback(context, model_of(job))


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
    newest = max(_days_in(warehouse, _examples(job)), default=None)
    return date or newest or DEMO_FROM + (job.config.history_days - 1) * DAY


def _require_examples(
    application: Application,
    job: Job,
    days: Sequence[datetime.date],
    *,
    needed: Sequence[Sequence[datetime.date]],
    least: int = 1,
    otherwise: str = "choose another day with --date",
) -> None:
    """Tells which days have no examples, and that those of the demo are about to be made.

    There may be days on which nothing happened.

    Args:
        application: The application.
        job: The model.
        days: The days that are read.
        needed: Periods, each of which must have examples.
        least: How many of the days must have examples.
        otherwise: What to do where nothing happened.

    Raises:
        InputError: So many days have none that nothing can be done, and the raw folder is the user's own.
    """
    table = _examples(job)
    days_of_table = _days_in(application.warehouse, table)
    missing = [day for day in days if day not in days_of_table]
    if missing and application.settings.is_demo:
        text = f"{missing[0]} to {missing[-1]}" if len(missing) > 1 else str(missing[0])
        application.listener.note(f"no history of {text}: making demo days first, some seconds each")
        return
    lacking = [period for period in needed if days_of_table.isdisjoint(period)]
    if len(days) - len(missing) < least:
        lacking.append(missing)
    if lacking:
        first, last = lacking[0][0], lacking[0][-1]
        raise InputError(
            f"no {table} of {first}: publish them with `spark-app etl --from {first} --to {last}`, or {otherwise}"
        )
    _note_missing(application, table, days)


def _note_missing(application: Application, table: str, days: Sequence[datetime.date]) -> None:
    missing = sorted({*days} - _days_in(application.warehouse, table))
    if missing:
        more = [f"{len(missing) - DAYS_NAMED} more"] if len(missing) > DAYS_NAMED else []
        text = ", ".join([*map(str, missing[:DAYS_NAMED]), *more])
        application.listener.note(f"{table} has no rows of {text}: what happened on these days is not known")


def _make_history(application: Application, job: Job, days: Sequence[datetime.date]) -> None:
    """Publishes the days that the tables which a model reads do not have; generates them if it is the demo shop's."""
    for daily, day in _missing(application, job, days):
        make_if_missing(application, [daily], day, note=_ignore)
        run_batch(application, daily, day, context_type=DailyContext)
    application.results.clear()  # the command is about the model


def _missing(application: Application, job: Job, days: Sequence[datetime.date]) -> Iterator[tuple[Job, datetime.date]]:
    """The runs of daily pipelines without which the tables that a model reads lack days.

    On a day on which a shop of the user's own was closed, refunds may have become known, or nothing was delivered.
    """
    loaded, days_with_examples = (
        pipelines.load("etl") | pipelines.load("ml"),
        _days_in(application.warehouse, _examples(job)),
    )
    for table in _of_days(application, job):
        days_of_table = _days_in(application.warehouse, table)
        needed = pipelines.needed(loaded, table)
        jobs = [each for name in needed for each in load_jobs(application.settings, name.partition(".")[0], [name])]
        jobs = with_fingerprints(application.settings, jobs)
        for day in days:
            is_open = application.settings.is_demo or day in days_with_examples
            if day not in days_of_table and (
                is_open or (table != _examples(job) and _is_delivered(application, jobs, day))
            ):
                yield from ((daily, day) for daily in jobs)


def _is_delivered(application: Application, jobs: Sequence[Job], day: datetime.date) -> bool:
    """Whether there are raw rows of a day that one of the pipelines reads."""
    origins = pipelines.origins(application.settings, (job.pipeline for job in jobs))
    return any(origin.is_delivered(application.spark, day) for origin in origins.values())


def _examples(job: Job) -> str:
    """The table whose rows a model is about; its days are those of a history."""
    return str(model_of(job).examples.table)


def _of_days(application: Application, job: Job) -> list[str]:
    """The tables that a model reads and that have days; of the others it takes what is there."""
    return [name for name in job.pipeline.reads if application.warehouse.tables[name].day]


def _days_in(warehouse: Warehouse, table: str) -> set[datetime.date]:
    """The days of a table that is partitioned by day."""
    day = warehouse.tables[table].partitions[0]
    return {row[0] for row in warehouse.table(table).select(F.col(day)).distinct().collect()}


def _ignore(_: str) -> None:
    """One line says that days are made; not one for each."""
