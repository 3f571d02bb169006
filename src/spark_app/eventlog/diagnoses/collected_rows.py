"""Rows that the driver collects, and the time after that."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import Job, StageAttempt
from spark_app.eventlog.model.occupancy import Stretch

_OF_METRICS: Final = 16 * 1024
"""Bytes of the result of a task without rows, at most: the metrics that it reports."""


class Collected(NamedTuple):
    """Rows that the driver collected, and the time after that without a job or a query."""

    stage: StageAttempt
    job: Job
    bytes: float
    after: Stretch


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
    """The time until the next job or query begins; none where another job runs in that time."""
    others = (each for each in app.jobs.values() if each is not job)
    if any(each.submitted < ended and (each.completed is None or each.completed > ended) for each in others):
        return Stretch("between", ended, ended)
    follows = bisect_left(starts, ended)
    if follows < len(starts):
        return Stretch("between", ended, starts[follows])
    return Stretch("ending", ended, max(ended, app.ended or app.last))
