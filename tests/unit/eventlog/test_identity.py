"""Every parent is a span that the log makes, or the step that was named; ids are the same for every reader."""

from msgspec import Raw

from app.eventlog import identity
from app.eventlog.application import Application
from app.eventlog.model import Job, Query, StageAttempt
from app.eventlog.parts import JobProperties, StageInfo

STEP = f"00-{'a' * 32}-{'b' * 16}-01"


def application() -> Application:
    """An application with a query in a query, a job of it, a job without one, and a stage of each."""
    app = Application("app-1")
    app.queries = {number: Query(number, root, 0, "", "", Raw(b"{}")) for number, root in ((0, None), (1, 0))}
    app.jobs = {
        0: Job(0, 0, [0], JobProperties(traceparent=STEP), 1),
        1: Job(1, 0, [1], JobProperties(), None),
    }
    app.queries[0].traceparent = app.queries[1].traceparent = STEP
    app.stages = {(number, 0): StageAttempt(StageInfo(number, 0, "s", 1), None, number) for number in (0, 1)}
    return app


def test_all_that_a_step_does_is_in_its_trace() -> None:
    """Step > query > query > job > stage, each the parent of the next."""
    app = application()
    outer, inner = (identity.of_query(app, app.queries[number]) for number in (0, 1))
    job, stage = identity.of_job(app, app.jobs[0]), identity.of_stage(app, app.stages[0, 0])
    assert {place.trace_id for place in (outer, inner, job, stage)} == {int("a" * 32, 16)}
    assert outer.parent_id == int("b" * 16, 16)
    assert (inner.parent_id, job.parent_id, stage.parent_id) == (outer.span_id, inner.span_id, job.span_id)


def test_what_nobody_asked_for_is_below_the_application() -> None:
    """A job without query and step has the application as its parent, in a trace of its own."""
    app = application()
    root, job, stage = (
        identity.of_application(app),
        identity.of_job(app, app.jobs[1]),
        identity.of_stage(app, app.stages[1, 0]),
    )
    assert (job.parent_id, stage.parent_id) == (root.span_id, job.span_id)
    assert job.trace_id == stage.trace_id == root.trace_id


def test_ids_are_derived_and_each_has_its_own() -> None:
    """Two readers agree; attempts, kinds and applications do not collide."""
    one, other = application(), application()
    assert identity.of_stage(one, one.stages[0, 0]) == identity.of_stage(other, other.stages[0, 0])
    again = StageAttempt(StageInfo(0, 1, "s", 1), None, 0)
    ids = {identity.of_stage(one, one.stages[0, 0]).span_id, identity.of_stage(one, again).span_id}
    ids |= {identity.of_job(one, one.jobs[0]).span_id, identity.of_query(one, one.queries[0]).span_id}
    other.id = "app-2"
    ids.add(identity.of_stage(other, other.stages[0, 0]).span_id)
    assert len(ids) == 5


def test_a_traceparent_that_is_none_leads_to_the_application() -> None:
    """Hostile or broken text is no parent."""
    app = application()
    for text in ("", "x", "00-" + "0" * 32 + "-" + "b" * 16 + "-01", STEP + "-x"):
        app.queries[0].traceparent = text
        assert identity.of_query(app, app.queries[0]).parent_id == identity.of_application(app).span_id
