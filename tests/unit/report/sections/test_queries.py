"""What a report shows of queries and their plans."""

from app.report.limits import Limits
from app.report.scope import scope
from app.report.sections.queries import queries
from tests.unit.eventlog import log
from tests.unit.eventlog.test_operators import PLANS, run
from tests.unit.report.conftest import Read


def test_numbers_of_an_earlier_query_are_not_those_of_this_one(reading: Read) -> None:
    """What it found in a cache is marked, and has none."""
    fills, reads = run(0, PLANS[0], {1: 100, 10: 5}, cached=7), run(1, PLANS[1], {11: 6}, cached=7)
    shown = queries(scope(reading([log.started(), *fills, *reads, log.ended()]).app, None), Limits()).shown
    assert [[(node.name, node.numbers) for node in query.nodes or []] for query in shown] == [
        [("InMemoryTableScan", [("rows", "5")]), ("Scan csv", [("rows", "100")])],
        [("InMemoryTableScan", [("rows", "6")]), ("Scan csv (reused)", [])],
    ]
