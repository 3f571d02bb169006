"""What is followed for months takes the memory of hours, and says the same."""

from collections.abc import Iterator

from spark_app.eventlog import span_ids, spans
from spark_app.eventlog.bridge.eviction import MAX_BARE, MAX_QUERIES, Eviction
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.spans import SparkSpan
from tests.unit.eventlog.log import (
    Line,
    becomes,
    events_of,
    job,
    job_ended,
    label,
    operation,
    query,
    query_ended,
    read,
    session,
    stage,
    started,
    tag,
    task,
)

MANY = MAX_BARE + 3 * MAX_QUERIES


def stream(queries: int = MANY) -> Iterator[Line]:
    """An application of many queries, each with one below it, and as many jobs without a query."""
    yield started()
    for number in range(0, 2 * queries, 2):
        inner = number + 1
        yield from (query(number), query(inner, root=number))
        for each, properties in ((number, {"spark.sql.execution.id": str(inner)}), (inner, {})):
            ended = stage(each, end=2900)
            ended["Stage Info"]["Accumulables"] = [{"ID": each, "Name": "x", "Value": "5"}]
            yield from (
                job(each, [each], time=2000, **properties),
                stage(each),
                task(each, each),
                ended,
                job_ended(each),
            )
        yield from (query_ended(inner), query_ended(number))


def followed(lines: Iterator[Line]) -> tuple[Application, dict[str, SparkSpan]]:
    """An application that evicts, and its spans."""
    app, found = Application("app-1"), list[SparkSpan]()
    forgetting = Eviction(app)
    for event in events_of(lines):
        over = app.apply(event)
        if over is not None:
            found += spans.of_ended(app, over)
            forgetting.after(over)
    return app, {label(span): span for span in [*found, *spans.of_the_end(app)]}


def test_what_it_keeps_does_not_grow() -> None:
    """Jobs, stages, tasks, numbers and plans of the last few; of queries a bounded number."""
    app, _ = followed(stream())
    assert max(len(app.jobs), len(app.stages), len(app.numbers)) <= 2 * MAX_QUERIES
    assert len(app.queries) <= MAX_BARE + 2 * MAX_QUERIES
    assert sum(query.description != "" for query in app.queries.values()) <= 2 * MAX_QUERIES
    assert not any(b"Project" in bytes(query.plan) for query in app.queries.values())


def clients(operations: int = MANY) -> Iterator[Line]:
    """A server with a session for each operation, whose job begins when the operation is long over."""
    yield started()
    for number in range(operations):
        yield session(f"s{number}")
        yield from (operation(f"o{number}", session=f"s{number}"), becomes(f"o{number}", "Closed", time=1700))
        yield session(f"s{number}", time=1800, is_closed=True)
    yield from (job(0, [], **{"spark.job.tags": tag(f"o{operations - 1}")}), job_ended(0))


def test_clients_that_are_gone_are_forgotten() -> None:
    """All of them were told; a late job finds its operation."""
    app, found = followed(clients())
    assert (len(app.connect.sessions), len(app.connect.operations)) == (MAX_BARE, MAX_BARE)
    assert found == read(clients())[1]
    assert found["job 0"].ids.parent_id == found[f"operation o{MANY - 1}"].ids.span_id


def test_what_it_tells_is_the_same() -> None:
    """Every span, its place, its attributes."""
    _, sent = followed(stream())
    _, all_told = read(stream())
    assert sent == all_told


def test_what_is_at_work_is_not_forgotten() -> None:
    """A job and its query that take as long as all others."""
    lines = list(stream())
    long = [query(9001), job(9001, [9001], time=2000, **{"spark.sql.execution.id": "9001"}), stage(9001)]
    end = [task(9001, 9001), stage(9001, end=2900), job_ended(9001), query_ended(9001)]
    _, sent = followed(iter([lines[0], *long, *lines[1:], *end]))
    assert sent["job 9001"].ids.parent_id == sent["sql 9001"].ids.span_id
    assert sent["stage 9001.0"].attributes["spark.stage.tasks.ended"] == 1


def test_a_job_that_outlives_its_query_keeps_it() -> None:
    """A broadcast that nobody waits for any more."""
    lines = list(stream())
    late = [
        query(9001),
        job(9001, [9001], time=2000, **{"spark.sql.execution.id": "9001"}),
        stage(9001),
        query_ended(9001),
    ]
    app, sent = followed(iter([lines[0], *late, *lines[1:], stage(9001, end=2900), job_ended(9001)]))
    assert sent["job 9001"].ids.parent_id == sent["sql 9001"].ids.span_id
    assert 9001 in app.queries


def test_a_job_that_begins_after_its_query_was_forgotten_still_finds_it() -> None:
    """A bare query has its place in the trace."""
    app, sent = followed(stream(5 * MAX_QUERIES))
    (begun,) = events_of([job(9001, [9001], time=2000, **{"spark.sql.execution.id": "0"})])
    app.apply(begun)
    assert span_ids.of_job(app, app.jobs[9001]).parent_id == sent["sql 0"].ids.span_id


def test_a_query_that_waits_for_its_place_keeps_its_plan() -> None:
    """Its span is sent with that of the query that it is a part of; then its plan is evicted."""
    waits = [query(9000), query(9001, root=9000), query_ended(9001), query(9002), query_ended(9002), query_ended(9000)]
    app, sent = followed(iter([started(), *waits]))
    assert sent["sql 9001"].name == sent["sql 9000"].name == "sql Project"
    assert not any(b"Project" in bytes(query.plan) for query in app.queries.values())
