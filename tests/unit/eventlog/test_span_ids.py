"""Every parent is a span that the log makes, or the step that was named; ids are the same for every reader."""

from msgspec import Raw

from spark_app.eventlog import span_ids
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import Job, Query, StageAttempt
from spark_app.eventlog.parse.events import JobProperties, StageInfo

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
    outer, inner = (span_ids.of_query(app, app.queries[number]) for number in (0, 1))
    job, stage = span_ids.of_job(app, app.jobs[0]), span_ids.of_stage(app, app.stages[0, 0])
    assert {ids.trace_id for ids in (outer, inner, job, stage)} == {int("a" * 32, 16)}
    assert outer.parent_id == int("b" * 16, 16)
    assert (inner.parent_id, job.parent_id, stage.parent_id) == (outer.span_id, inner.span_id, job.span_id)


def test_what_nobody_asked_for_is_below_the_application() -> None:
    """A job without query and step has the application as its parent, in a trace of its own."""
    app = application()
    root, job, stage = (
        span_ids.of_application(app),
        span_ids.of_job(app, app.jobs[1]),
        span_ids.of_stage(app, app.stages[1, 0]),
    )
    assert (job.parent_id, stage.parent_id) == (root.span_id, job.span_id)
    assert job.trace_id == stage.trace_id == root.trace_id


def test_ids_are_derived_and_each_has_its_own() -> None:
    """Two readers agree; attempts, kinds and applications do not collide."""
    one, other = application(), application()
    assert span_ids.of_stage(one, one.stages[0, 0]) == span_ids.of_stage(other, other.stages[0, 0])
    again = StageAttempt(StageInfo(0, 1, "s", 1), None, 0)
    ids = {span_ids.of_stage(one, one.stages[0, 0]).span_id, span_ids.of_stage(one, again).span_id}
    ids |= {span_ids.of_job(one, one.jobs[0]).span_id, span_ids.of_query(one, one.queries[0]).span_id}
    other.id = "app-2"
    ids.add(span_ids.of_stage(other, other.stages[0, 0]).span_id)
    assert len(ids) == 5


def test_a_traceparent_that_is_none_leads_to_the_application() -> None:
    """Hostile or broken text is no parent."""
    app = application()
    for text in ("", "x", "00-" + "0" * 32 + "-" + "b" * 16 + "-01", STEP + "-x"):
        app.queries[0].traceparent = text
        assert span_ids.of_query(app, app.queries[0]).parent_id == span_ids.of_application(app).span_id


def test_a_trace_that_the_launch_names_is_that_of_the_application() -> None:
    """Executors write it into their log lines; text that is no trace id names none."""
    app = application()
    derived = span_ids.of_application(app)
    for text in ("x", "0" * 32, "A" * 32, "a" * 33):
        app.properties = {span_ids.TRACE_ID: text}
        assert span_ids.of_application(app) == derived
    app.properties = {span_ids.TRACE_ID: "c" * 32}
    named = span_ids.of_application(app)
    assert named == derived._replace(trace_id=int("c" * 32, 16))
    assert span_ids.of_job(app, app.jobs[1]) == named.child(span_ids.of_job(application(), app.jobs[1]).span_id)
    assert span_ids.of_job(app, app.jobs[0]).trace_id == int("a" * 32, 16), "its step has a trace"


def test_a_traceparent_is_what_w3c_says() -> None:
    """Of version 00, in lower case, with ids that are not 0; anything else names nothing."""
    assert span_ids.context_of(STEP) == (int("a" * 32, 16), int("b" * 16, 16), 1)
    wrong = (
        None,
        "",
        "x",
        STEP.upper(),
        f"{STEP} ",
        f"ff{STEP[2:]}",
        f"{STEP}\n",
        STEP[:-1],
        "00-" + "0" * 32 + STEP[35:],
    )
    assert [span_ids.context_of(text) for text in wrong] == [None] * len(wrong)
    assert span_ids.context_of(STEP[:36] + "0" * 16 + "-01") is None
