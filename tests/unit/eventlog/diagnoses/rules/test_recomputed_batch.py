from collections.abc import Iterable

import pytest

from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.plans import application, found
from tests.unit.eventlog.log import Line

READ = (7, 2)
"""The RDD of the rows of the batch: its number and its partitions."""


def action(
    number: int,
    *rdds: tuple[int, int],
    batch: str | None = "0",
    cached: Iterable[int] = (),
    tasks: int = 2,
    seconds: float = 8,
) -> list[Line]:
    """A query of a batch, with one job of one stage, whose RDDs each come from the next one."""
    begin = 10_000 * (number + 1)
    properties = {"spark.sql.execution.id": str(number), "callSite.short": f"save at sinks.py:{number}"}
    if batch is not None:
        properties |= {"sql.streaming.queryId": "q", "streaming.sql.batchId": batch}
    infos = [
        {
            "RDD ID": rdd,
            "Name": "MapPartitionsRDD",
            "Number of Partitions": partitions,
            "Parent IDs": [below for below, _ in rdds[place : place + 1]],
            "Storage Level": {"Use Disk": rdd in cached, "Use Memory": rdd in cached},
        }
        for place, (rdd, partitions) in enumerate(rdds, start=1)
    ]
    start, over = log.stage(number, tasks=tasks), log.stage(number, end=begin + 8000, tasks=tasks)
    for line in (start, over):
        line["Stage Info"] |= {"Submission Time": begin, "RDD Info": infos}
    ran = [log.task(task, number, seconds=seconds) for task in range(tasks)]
    job = log.job(number, [number], time=begin, **properties)
    ends = [log.job_ended(number, time=begin + 8000), log.query_ended(number, time=begin + 8000)]
    return [log.query(number, time=begin), job, start, *ran, over, *ends]


def test_rows_that_two_actions_of_a_batch_compute_are_found() -> None:
    """Both began with RDD 7; the second could have read a cache, which takes a tenth of the time."""
    app = application(action(1, (9, 2), READ), action(2, (12, 2), (11, 2), READ))
    (finding,) = found(app, "recomputed_batch", cost_ms=0, cost_ratio=0)
    assert finding.query == 2
    assert finding.text == (
        "Query 2 (d, save at sinks.py:2): save at sinks.py:2 computes the rows of its micro-batch that save at "
        "sinks.py:1 has computed before, in 14.4 s of tasks"
    )
    assert "batch.persist()" in finding.advice
    assert 0 < (finding.cost_ms or 0) <= 0.9 * 8000


def test_a_look_at_the_first_row_costs_as_much_as_it_took() -> None:
    """`isEmpty` before two writes: the first write repeats what that has computed, and the second all of the first."""
    app = application(action(1, (9, 2), READ, seconds=0.5), action(2, (12, 2), READ), action(3, (13, 2), READ))
    (finding,) = found(app, "recomputed_batch", cost_ms=0, cost_ratio=0)
    first, second = 0.9 * 900 / 4, 0.9 * 14_400 / 4
    assert finding.cost_ms == pytest.approx(first + second)
    assert finding.cost_low_ms == pytest.approx(2 * first)


@pytest.mark.parametrize(
    "actions",
    [
        [action(1, (9, 2), READ)],
        [action(1, (9, 2), READ), action(2, (12, 2), (11, 2))],
        [action(1, (9, 2), READ), action(2, (12, 2), READ, batch="1")],
        [action(1, (9, 2), READ, batch=None), action(2, (12, 2), READ, batch=None)],
        [action(1, (9, 2), (8, 2), READ, cached=[8]), action(2, (12, 2), (8, 2), READ, cached=[8])],
        [action(1, (9, 2), READ), action(2, (12, 2), READ, tasks=1)],
    ],
    ids=["one action", "other rows", "another batch", "no batch", "a cache", "a part of the rows"],
)
def test_what_is_computed_once_is_not(actions: list[list[Line]]) -> None:
    """Or is needed: other rows, those of another batch, those of a cache, and a look at the first one."""
    assert not found(application(*actions), "recomputed_batch", cost_ms=0, cost_ratio=0)
