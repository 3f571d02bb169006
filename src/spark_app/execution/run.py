"""Runs batch pipelines in an application, one after another, and records each run."""

import datetime
import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal, TypeVar

from spark_app.declarations.fingerprints import Fingerprints
from spark_app.declarations.pipeline import Pipeline
from spark_app.engine.context import Context, DailyContext
from spark_app.engine.progress import ProgressListener
from spark_app.errors import InputError
from spark_app.execution import checks, demo, missing, pipelines, plan, stale
from spark_app.execution.application import Application, start_application
from spark_app.formatting import quantity
from spark_app.local_files import ensure_dir
from spark_app.runs import liveness, run_record
from spark_app.runs.run_record import RunRecord, StaleDay
from spark_app.settings import Settings, load_pipeline_config
from spark_app.spark.known_errors import translate_errors
from spark_app.spark.session import StartingJvm
from spark_app.telemetry.exceptions import summary_of
from spark_app.telemetry.run_identity import RunIdentity, outcome_of
from spark_app.vocabulary import names
from spark_app.vocabulary.names import Outcome
from spark_app.vocabulary.spark_names import WORKLOAD
from spark_app.warehouse.fingerprint import encoded
from spark_app.warehouse.hadoop_files import SparkReader

LOG: Final = logging.getLogger(__name__)
ETL: Final = "spark-app etl"
MAX_ROUNDS: Final = 20
"""How often what follows from what was run again is looked for."""
Only = Literal["all", "missing", "stale"]
ContextType = TypeVar("ContextType", bound=Context)


@dataclass(frozen=True)
class Job:
    """A pipeline with its configuration, to be run for any day.

    Attributes:
        name: `etl.daily_sales`.
        pipeline: What its module declares.
        config: What an operator tunes, as configured.
        fingerprints: By table that it writes, the text of how its rows are made, for its commits.
    """

    name: str
    pipeline: Pipeline
    config: Any
    fingerprints: Mapping[str, str] = field(default_factory=dict)


def run_etl(
    settings: Settings,
    dates: Sequence[datetime.date],
    *,
    listener: ProgressListener,
    chosen: Sequence[str] = (),
    replay: bool = False,
    only: Only = "all",
    jvm: StartingJvm | None = None,
) -> list[RunRecord]:
    """Runs the pipelines of `app/etl/` for every date, in order, and stops at the first that fails.

    Args:
        settings: The configuration.
        dates: The days.
        listener: Hears how the runs get on.
        chosen: Names of pipelines; empty for all.
        replay: Whether rows come from bronze instead of the raw files.
        only: Which of the days: all, those that a pipeline has not published, or those that were made of what has
            changed since, for which no days stand for all that are known.
        jvm: The JVM that was started for the command.

    Raises:
        SparkAppError: A run failed; the attribute `results` (of any exception that leaves a run) has all runs so far.
    """
    jobs = with_fingerprints(settings, load_jobs(settings, "etl", chosen))
    if only == "all" and not replay:
        require_readable(jobs)
    extra = {WORKLOAD: workload(jobs, days=len(dates), is_replay=replay, only=only)}
    with start_application(settings, ETL, listener=listener, extra=extra, jvm=jvm) as application:
        checks.require_no_mistake(application, {job.name: job.pipeline for job in jobs})
        if only == "stale":
            run_stale(application, jobs, only=dates)
        elif only == "missing":
            run_missing(application, jobs, dates, is_replay=replay)
        else:
            run_days(application, jobs, dates, is_replay=replay)
        report_stale(application, load_jobs(settings, "etl"))
    return application.results


def load_jobs(settings: Settings, package: str, chosen: Sequence[str] = ()) -> list[Job]:
    """The chosen pipelines of a package, or all, in the order of what they read and write.

    Raises:
        ConfigError: A key of a configuration is missing, unknown or wrong, or a file cannot be read.
        UsageError: There is no such pipeline.
    """
    wanted = pipelines.qualified(package, chosen) or pipelines.names(package)
    loaded = pipelines.load(package)
    return [
        Job(name, pipeline, load_pipeline_config(name, pipeline.config, settings.config))
        for name, pipeline in loaded.items()
        if name in wanted
    ]


def require_readable(jobs: Sequence[Job]) -> None:
    """Checks what the sources of pipelines need, before the first of them writes anything.

    Raises:
        InputError: Something is missing.
    """
    for origin in (each for job in jobs for each in job.pipeline.origins.values()):
        if problem := origin.lacks():
            raise InputError(f"{origin.declared}: {problem}")


def with_fingerprints(settings: Settings, jobs: Sequence[Job]) -> list[Job]:
    """The same pipelines with how their tables are made, by their files as they are now, before any is edited.

    What cannot be told is left out of commits, and no run fails for it.
    """
    try:
        now = plan.made_now(settings, pipelines.load_all())
    except Exception as error:  # noqa: BLE001 - the runs need none
        LOG.warning("commits will not say how tables are made: %s", summary_of(error))
        return list(jobs)
    return [replace(job, fingerprints=_fingerprints(now, job.pipeline)) for job in jobs]


def _fingerprints(now: Fingerprints, pipeline: Pipeline) -> dict[str, str]:
    found = dict[str, str]()
    for table in pipeline.writes:
        try:
            if table.name in now.tables:
                found[table.name] = encoded(now.of(table.name))
        except Exception as error:  # noqa: BLE001 - whatever code of others does when it is looked at
            LOG.warning("commits of %s will not say how it is made: %s", table.name, summary_of(error))
    return found


def workload(jobs: Sequence[Job], *, days: int, is_replay: bool, only: Only = "all") -> str:
    """What a command was asked to do, apart from which days: only runs of the same workload are compared."""
    which = "stale days" if only == "stale" else f"{'missing of ' if only == 'missing' else ''}{quantity(days, 'day')}"
    words = [" + ".join(job.name for job in jobs), which]
    return ", ".join([*words, *(["replay"] if is_replay else [])])


def run_days(
    application: Application, jobs: Sequence[Job], dates: Sequence[datetime.date], *, is_replay: bool = False
) -> list[RunRecord]:
    """Runs daily pipelines in an application that stays open afterwards."""
    application.results.clear()
    for number, date in enumerate(dates):
        _run_day(application, jobs, date, is_replay=is_replay, upcoming=dates[number + 1 :])
    return application.results


def run_missing(
    application: Application, jobs: Sequence[Job], dates: Sequence[datetime.date], *, is_replay: bool = False
) -> None:
    """Runs each pipeline for those of the days that it has not published, and says which these are."""
    with translate_errors(application.log_file):
        find_runs = missing.RecordedRuns(application.settings, note=application.listener.note)
        lacking = missing.missing(application.warehouse, find_runs, {job.name: job.pipeline for job in jobs}, dates)
    for line in missing.described(lacking, dates):
        application.listener.note(line)
    for date in dates:
        _run_day(application, [job for job in jobs if date in lacking[job.name]], date, is_replay=is_replay)


def run_stale(application: Application, jobs: Sequence[Job], *, only: Sequence[datetime.date] = ()) -> None:
    """Runs pipelines for the days that were made of what has changed since, and then for what follows from that.

    Args:
        application: The application.
        jobs: The pipelines, each after those that write what it reads.
        only: The days that may be run; all if none is given.
    """
    application.results.clear()
    for _ in range(MAX_ROUNDS):
        found = [each for each in stale_days(application, jobs) if not only or each.day in only]
        if not found:
            return
        for each in found:
            application.listener.note(str(each))
        days = {job.name: sorted({each.day for each in found if each.pipeline == job.name}) for job in jobs}
        for job in jobs:
            for number, day in enumerate(days[job.name]):
                _run_day(application, [job], day, is_replay=False, upcoming=days[job.name][number + 1 :])
    raise InputError(
        f"after {MAX_ROUNDS} rounds days are still made of what has changed since: the functions of "
        f"{', '.join(sorted({each.table for each in found}))} give other rows each time"
    )


def report_stale(application: Application, jobs: Sequence[Job]) -> None:
    """Says which days of all tables were made of what has changed since: in a note, as metrics, in the last record.

    That it cannot be known is no failure, and no metric.

    Args:
        application: The application, whose runs have ended.
        jobs: All daily pipelines of the project.
    """
    try:
        found = stale_days(application, jobs)
    except Exception as error:  # noqa: BLE001 - the runs have succeeded
        application.listener.note(f"which days were made of what has changed since is unknown: {summary_of(error)}")
        return
    for job in jobs:
        days = {each.day for each in found if each.pipeline == job.name}
        application.telemetry.measure(job.name, names.STALE_DAYS, len(days))
    if line := stale.summary(found):
        application.listener.note(line)
        if application.results:
            last = replace(application.results[-1], stale=found)
            application.results[-1] = last
            run_record.write(last, note=application.listener.note)


def stale_days(application: Application, jobs: Sequence[Job]) -> list[StaleDay]:
    """The days that were made of what has changed since."""
    loaded = {job.name: job.pipeline for job in jobs}
    find_raw = stale.raw_finder(application.settings, loaded.values(), SparkReader(application.spark))
    return stale.stale(application.warehouse.periods, loaded, find_raw)


def _run_day(
    application: Application,
    jobs: Sequence[Job],
    date: datetime.date,
    *,
    is_replay: bool,
    upcoming: Sequence[datetime.date] = (),
) -> None:
    if jobs and not is_replay:
        make_if_missing(application, jobs, date, note=application.listener.note)
    for job in jobs:
        run_batch(application, job, date, context_type=partial(DailyContext, is_replay=is_replay, upcoming=upcoming))


def make_if_missing(
    application: Application, jobs: Sequence[Job], date: datetime.date, *, note: Callable[[str], None]
) -> None:
    """Lets the project generate what pipelines read of a day, where no raw folder is configured."""
    found = demo.current() if application.settings.is_demo else None
    if found is not None:
        sources = pipelines.sources(job.pipeline for job in jobs)
        with translate_errors(application.log_file):
            found.make_if_missing(application.spark, application.settings, sources, date, note=note)


def run_batch(
    application: Application, job: Job, day: datetime.date, *, context_type: Callable[..., Context] = Context
) -> None:
    """Runs a pipeline for a day and appends its record to the results, also if it fails."""
    of_job = partial(context_type, fingerprints=job.fingerprints)
    with recorded_run(application, job.name, day, of_job) as context, locked(application, context):
        job.pipeline.run(context, job.config)
        context.telemetry.record_schedule(getattr(job.config, "schedule", None))


@contextmanager
def recorded_run(
    application: Application, name: str, day: datetime.date | None, context_type: Callable[..., ContextType]
) -> Iterator[ContextType]:
    """A run of a pipeline: its telemetry, its record while it lasts, and at its end the record among the results.

    What leaves the with-statement decides the outcome, and is raised in the words of `translate_errors`.
    """
    with application.open_runs.opened() as opened:
        started_at, began = datetime.datetime.now(datetime.UTC), time.monotonic()
        context, note = _context(application, name, day, context_type, started_at), application.listener.note

        def record(outcome: Outcome | Literal["running"], error: BaseException | None = None) -> RunRecord:
            is_alone = None if outcome == "running" else opened.is_alone
            result = _record(application, context, started_at, time.monotonic() - began, outcome)
            result = replace(result, error=summary_of(error) if error else None, is_alone=is_alone)
            run_record.write(result, note=note)
            return result

        failure: BaseException | None = None
        try:
            folder = context.telemetry.identity.folder
            with liveness.hold_liveness_lock(folder, note=note), context.telemetry, _logged():
                record("running")
                with translate_errors(application.log_file):
                    yield context
        except BaseException as error:
            failure = error
            raise
        finally:
            application.results.append(record(outcome_of(failure), failure))
            if failure is not None:
                failure.results = application.results  # type: ignore[attr-defined]


@contextmanager
def locked(application: Application, context: Context) -> Iterator[None]:
    """Keeps other processes from running the same pipeline for the same slice; waits for one that does."""
    key = "-".join(word for word in (context.telemetry.identity.pipeline, context.slice) if word)

    def on_wait() -> None:
        context.note(f"another process runs {context.title}: waiting for it to end")

    with application.warehouse.lock(key, on_wait=on_wait):
        yield


def _context(
    application: Application,
    name: str,
    day: datetime.date | None,
    context_type: Callable[..., ContextType],
    started_at: datetime.datetime,
) -> ContextType:
    """The context of a new run, whose folder is created; the run id begins with the start of the run."""
    part = day.isoformat() if day else ""
    words = [f"{started_at:%Y%m%dT%H%M%SZ}", name, part, secrets.token_hex(3)]
    folder = ensure_dir(application.settings.runs_path / "-".join(word for word in words if word))
    identity = RunIdentity(folder.name, application.id, name, part, folder, application.name)
    return context_type(
        application.spark,
        application.warehouse,
        application.settings,
        day,
        application.telemetry.run(identity),
        application.listener,
    )


@contextmanager
def _logged() -> Iterator[None]:
    """Logs how a run ended, in the log of the run."""
    try:
        yield
    except BaseException as error:
        LOG.exception("run ended by %s", summary_of(error))
        raise
    LOG.info("run succeeded")


def _record(
    application: Application,
    context: Context,
    started_at: datetime.datetime,
    seconds: float,
    outcome: Outcome | Literal["running"],
) -> RunRecord:
    identity = context.telemetry.identity
    return RunRecord(
        run_id=identity.run_id,
        invocation_id=identity.invocation_id,
        pipeline=identity.pipeline,
        slice=identity.slice,
        outcome=outcome,
        started_at=started_at,
        seconds=seconds,
        counts=dict(context.counts),
        tables=context.written,
        folder=identity.folder,
        trace_id=context.telemetry.trace_id,
        application_id=application.spark_id,
        event_log=application.event_log,
        spark_log=str(application.log_file),
        expectations=context.results,
        nulls=context.nulls,
        facts=context.facts,
    )
