import pytest

from spark_app.eventlog.model import repeated_reads
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.plans import application, cached, found, node, ran


@pytest.mark.parametrize(("scans", "is_found"), [(1, True), (2, False)])
def test_a_cache_that_is_used_twice_in_a_query_is_used(scans: int, *, is_found: bool) -> None:
    """The plan has a scan of it for each use; the stages that fill it for each of them tell nothing."""
    plan = node("Union", *(node("InMemoryTableScan") for _ in range(scans)))
    app = application(ran(1, plan, rdds=[cached(7)]))
    assert bool(found(app, "unused_cache", cost_ms=0, cost_ratio=0)) == is_found


def test_a_cache_whose_first_query_is_at_work_is_not_judged() -> None:
    """It may be read yet."""
    lines = ran(1, node("InMemoryTableScan"), rdds=[cached(7)])
    assert not found(application(lines[:-1]), "unused_cache", cost_ms=0, cost_ratio=0)


def test_what_delta_caches_for_itself_is_not_the_users() -> None:
    """Nobody can leave it out."""
    names = ("Delta Table State #0 - file:///t", "mergeMaterializedSource")
    lines = [ran(number, node("Scan"), rdds=[cached(number, name)]) for number, name in enumerate(names)]
    assert not found(application(*lines), "unused_cache", cost_ms=0, cost_ratio=0)


def test_a_table_cached_by_its_name_is_seen_too() -> None:
    """`CACHE TABLE` makes scans of another name."""
    plan = node("Union", node("Scan In-memory table days"), node("Scan In-memory table days"))
    assert not found(application(ran(1, plan, rdds=[cached(7)])), "unused_cache", cost_ms=0, cost_ratio=0)


@pytest.mark.parametrize(("tasks", "is_found"), [(2, True), (4, False)])
def test_an_rdd_that_a_job_reads_twice_is_used(tasks: int, *, is_found: bool) -> None:
    """It has a task for each partition, as often as it is read: a union with itself."""
    over = log.stage(1, end=3000, tasks=tasks)
    over["Stage Info"] |= {"RDD Info": [cached(7)]}
    app = application([log.job(1, [1]), log.stage(1), over, log.job_ended(1)])
    findings = found(app, "unused_cache", cost_ms=0, cost_ratio=0)
    assert [finding.stage for finding in findings] == ([(1, 0)] if is_found else [])


def test_caches_are_ranked_by_what_filled_them_and_few_are_told() -> None:
    """A stream that caches each batch does not flood anybody, and does not grow."""
    lines = [
        ran(number, node("InMemoryTableScan"), rdds=[cached(number)])
        for number in range(repeated_reads.MAX_REMEMBERED + 5)
    ]
    app = application(*lines)
    assert len(app.repeated_reads.caches) == repeated_reads.MAX_REMEMBERED
    assert len(found(app, "unused_cache", cost_ms=0, cost_ratio=0)) == 5
    assert not found(app, "unused_cache")
