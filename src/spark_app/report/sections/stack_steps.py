"""Stages that are one step of a program: the micro-batches of a streaming query, the iterations of a training.

Each of them alone has too few samples to say anything.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from spark_app.report.formatting import line
from spark_app.report.scope import Scope
from spark_app.stack_samples.attribution import Place

BATCH: Final = re.compile(r": batch \w+$")
MAX_NAME: Final = 200


def steps(scope: Scope, names: Mapping[Place, str]) -> dict[str, list[Place]]:
    """The stages of each step that ran more than once, in several SQL executions or jobs without one.

    Args:
        scope: What the report is about.
        names: What its stages do: `stream orders: batch 7, start at jobs/orders.py:24 [result]`.
    """
    found, runs = defaultdict[str, list[Place]](list), defaultdict[str, set[tuple[str, int]]](set)
    for place, name in names.items():
        if isinstance(place, tuple):
            title = line(BATCH.sub("", name.partition(" [")[0].partition(", ")[0]), MAX_NAME)
            found[title].append(place)
            runs[title].update(_run(scope, place))
    return {title: places for title, places in found.items() if len(runs[title]) > 1}


def _run(scope: Scope, place: tuple[int, int]) -> Sequence[tuple[str, int]]:
    """The SQL execution of a stage, or else its job."""
    job = scope.app.job_of(scope.app.stages[place])
    if job is None:
        return []
    query = scope.app.query_of(job)
    return [("job", job.id) if query is None else ("query", query.id)]
