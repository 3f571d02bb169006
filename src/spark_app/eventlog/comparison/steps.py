"""How long Spark worked for each step of a program that marks its jobs with a `traceparent`, as pipelines do."""

from collections import defaultdict
from collections.abc import Iterator

from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.stage_groups import stable_name


def steps(app: Application) -> dict[str, float]:
    """Milliseconds from the start of the first query or job of each step to the end of its last.

    The key is the shortest description of the step, without dates and ids, because libraries append words to it. Steps
    with the same description are added up. Queries and jobs that still run, or belong to no step, are left out.
    """
    names: dict[str, str] = {}
    times: dict[str, list[float]] = defaultdict(list)
    for step, description, started, ended in _work(app):
        names[step] = min(filter(None, (names.get(step), stable_name(description))), key=len, default="")
        times[step] += (started, ended)
    durations: dict[str, float] = defaultdict(float)
    for step, own in times.items():
        if names[step]:
            durations[names[step]] += max(own) - min(own)
    return dict(durations)


def _work(app: Application) -> Iterator[tuple[str, str | None, float, float]]:
    """For each query and job of a step: the step, the description, the start and the end."""
    for job in app.jobs.values():
        if job.properties.traceparent and job.batch is None and job.completed is not None:
            yield job.properties.traceparent, job.properties.description, job.submitted, job.completed
    for query in app.queries.values():
        if query.traceparent and query.batch is None and query.ended is not None:
            yield query.traceparent, query.description, query.started, query.ended
