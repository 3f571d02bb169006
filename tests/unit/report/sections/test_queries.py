"""SQL executions of a report and their plans."""

from spark_app.report.limits import Limits
from spark_app.report.scope import scope
from spark_app.report.sections.queries import queries
from tests.unit.eventlog import log
from tests.unit.eventlog.model.test_operators import PLANS, run
from tests.unit.report.conftest import Read


def test_metrics_of_a_cached_plan_belong_to_the_query_that_filled_the_cache(reading: Read) -> None:
    """Reused operators are marked and have no metrics."""
    fills, reads = run(0, PLANS[0], {1: 100, 10: 5}, cached=7), run(1, PLANS[1], {11: 6}, cached=7)
    shown = queries(scope(reading([log.started(), *fills, *reads, log.ended()]).app, None), Limits()).shown
    assert [
        [(node.name, [(name, number.value) for name, number in node.metrics]) for node in query.nodes or []]
        for query in shown
    ] == [
        [("InMemoryTableScan", [("rows", 5)]), ("Scan csv", [("rows", 100)])],
        [("InMemoryTableScan", [("rows", 6)]), ("Scan csv (reused)", [])],
    ]
