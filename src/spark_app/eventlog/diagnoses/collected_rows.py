"""The rule about rows that the driver collects, to do what tasks could do."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from spark_app.eventlog.diagnoses.stage import stage_name
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding, rule
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import Job, StageAttempt
from spark_app.eventlog.model.occupancy import Stretch
from spark_app.formatting import duration, size

_OF_METRICS: Final = 16 * 1024
"""Bytes of the result of a task without rows, at most: the metrics that it reports."""


class Collected(NamedTuple):
    """Rows that the driver collected, and the time after that without a job or a query."""

    stage: StageAttempt
    job: Job
    bytes: float
    after: Stretch


@rule()
def collect_to_driver(app: Application, limits: Thresholds) -> list[Finding]:
    """Rows that the driver collects, after which no task runs for long.

    An info, because the log does not say what the driver does meanwhile: in a notebook its user may be thinking.

    Evidence: the bytes of the results of tasks, the time until the next query or job, and the line that collects.
    Why: all executors wait while one thread works with the rows, and the driver needs memory for them.
    Change: filter, join and aggregate with Spark before `collect` or `toPandas`; write the rows with Spark
        (`df.write`), or use `mapInPandas`, `applyInPandas` or `foreachPartition`, which run in tasks.
    Threshold: {collected_bytes} of one action (project: a tenth of the default of `spark.driver.maxResultSize`).
    Cost: the time from the end of the job to the next query or job, or to the end of the application: at most what the
        driver needs for the rows. The time in which it fetches them while tasks run is no part of it. The rule ignores
        streaming applications.
    """
    return [_finding(app, each) for each in collected(app, limits) if each.after.length_ms]


def _finding(app: Application, rows: Collected) -> Finding:
    info, ms = rows.stage.info, rows.after.length_ms
    name = stage_name(app, info, rows.stage.properties)
    return Finding(
        "collect_to_driver",
        "info",
        f"{name[:1].upper()}{name[1:]}: the driver collects {size(rows.bytes)}, and then no task runs for "
        f"{duration(ms)}",
        "Do with Spark what the program does with these rows: filter, join and aggregate before collect() or "
        "toPandas(), write them with df.write, or use mapInPandas, applyInPandas or foreachPartition, which run in "
        "tasks.",
        {"collected_bytes": rows.bytes, "driver_ms": ms},
        cost_ms=ms,
        stage=(info.id, info.attempt),
        query=rows.job.query,
        cause=info.name,
    )


def collected(app: Application, limits: Thresholds) -> Iterator[Collected]:
    """The actions of an application that collected many bytes; none of streaming applications."""
    if not app.is_whole or app.batches:
        return
    starts = sorted([job.submitted for job in app.jobs.values()] + [each.started for each in app.queries.values()])
    for job in app.jobs.values():
        if job.completed is None or job.has_failed or not job.ran or _is_of_broadcast(app, job):
            continue
        stage = app.stages.get(max(job.ran))
        total = 0.0 if stage is None else _result_bytes(stage)
        if stage is not None and total >= limits.collected_bytes:
            yield Collected(stage, job, total, _after(app, job, job.completed, starts))


def _is_of_broadcast(app: Application, job: Job) -> bool:
    """Whether other jobs of its query follow: the driver then collects the side of a join, and no result."""
    query = app.query_of(job)
    return query is not None and job.id != max(query.jobs, default=job.id)


def _result_bytes(stage: StageAttempt) -> float:
    """The bytes of the results of its tasks, without those of metrics."""
    return max(0.0, stage.totals.result_bytes - _OF_METRICS * stage.info.tasks)


def _after(app: Application, job: Job, ended: int, starts: list[int]) -> Stretch:
    """The time until the next job or query begins; none where another job runs meanwhile."""
    others = (each for each in app.jobs.values() if each is not job)
    if any(each.submitted < ended and (each.completed is None or each.completed > ended) for each in others):
        return Stretch("between", ended, ended)
    follows = bisect_left(starts, ended)
    if follows < len(starts):
        return Stretch("between", ended, starts[follows])
    return Stretch("ending", ended, max(ended, app.ended or app.last))
