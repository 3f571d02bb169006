"""A view of a query has the figures of its batches; most rules need some of them."""

from spark_app.eventlog.diagnoses.stream import rising, view
from tests.unit.eventlog.diagnoses.stream_cases import SHIPPED, application, batch, found


def test_few_batches_are_not_judged() -> None:
    """The first ones are slow in any query."""
    app = application(batch(number, seconds=9, rows=1) for number in range(int(SHIPPED.stream_batches) - 1))
    (query,) = app.streams.queries.values()
    assert view(app, query, [], SHIPPED) is None
    assert found(app) == {}


def test_a_healthy_query_hears_nothing() -> None:
    """A batch each second, of rows that are worth it."""
    assert found(application(batch(number) for number in range(50))) == {}


def test_rows_that_no_source_tells_are_not_few() -> None:
    """They are unknown."""
    assert found(application(batch(number, rows=None) for number in range(50))) == {}


def test_levels_rise_by_their_steps() -> None:
    """One level has none."""
    assert (rising([1, 2, 2, 1]), rising([1]), rising([])) == (2 / 3, 0.0, 0.0)


def test_a_finding_names_the_query() -> None:
    """It is about all of it, and about no other."""
    finding = found(application(batch(number, rows=1) for number in range(50)))["tiny_batches"]
    assert finding.text.startswith("Streaming query orders: ")
    assert str(finding.place) == "streaming query orders"
    assert (finding.cause, finding.query, finding.stage) == ("orders", None, None)
