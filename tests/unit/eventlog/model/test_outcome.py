"""How an application ended is decided by one rule."""

import pytest

from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.outcome import ending_of
from spark_app.eventlog.model.stream_queries import StreamQuery
from spark_app.eventlog.parse.events import (
    ApplicationEnd,
    Event,
    JobEnd,
    JobException,
    JobProperties,
    JobResult,
    JobStart,
)
from tests.unit.eventlog import log

END = ApplicationEnd(9000)
SHUT_DOWN = "Job 1 cancelled because SparkContext was shut down"


def run(*jobs: bool | str, end: ApplicationEnd | None = END, code: int | None = None, is_alive: bool | None = None) -> (
    Application
):  # fmt: skip
    """An application whose jobs failed or not, one after the other, and what is known of its process."""
    app = Application("app-1")
    for number, error in enumerate(jobs):
        failed = JobResult("JobFailed", JobException(error) if isinstance(error, str) else None)
        app.apply(JobStart(number, 1000 * number + 1))
        app.apply(JobEnd(number, 1000 * number + 2, failed if error else JobResult("JobSucceeded")))
    if end is not None:
        app.apply(end)
    app.process_exit_code, app.is_alive = code, is_alive
    return app


@pytest.mark.parametrize(
    ("app", "text"),
    [
        (run(False), "ended, no job failed"),
        (run(), "ended, no job failed"),
        (run(False, True), "failed: its last job failed (1 of 2 jobs)"),
        (run(True, False), "ended: 1 of 2 jobs failed, not the last one"),
        (run(False, end=ApplicationEnd(9000, 1)), "failed with exit code 1"),
        (run(False, end=ApplicationEnd(9000, 0)), "ended, no job failed"),
        (run(False, end=ApplicationEnd(9000, 0), code=0), "succeeded"),
        (run(True, False, code=0), "succeeded: 1 of 2 jobs failed, not the last one"),
        (run(True, code=0), "failed: its last job failed (1 of 1 job, exit code 0)"),
        (run(False, end=ApplicationEnd(9000, 0), code=1), "failed with exit code 1"),
        (run(False, end=ApplicationEnd(9000, 0), code=143), "killed by SIGTERM (exit code 143)"),
        (run(True, end=ApplicationEnd(9000, 0), code=137), "killed by SIGKILL (exit code 137)"),
        (run(False, end=ApplicationEnd(9000, 0), code=200), "failed with exit code 200"),
        (run(False, end=None), "incomplete: no end in its log, still running or killed"),
        (run(True, end=None), "incomplete: no end in its log, still running or killed"),
        (run(False, end=None, is_alive=True, code=0), "running: its log has no end yet"),
        (run(False, end=None, is_alive=False, code=1), "killed: its log has no end (exit code 1)"),
        (run(False, end=None, is_alive=False), "killed: its log has no end"),
        (run(False, SHUT_DOWN), "incomplete: stopped while 1 job ran, by its program or from outside"),
        (run(False, SHUT_DOWN, code=0), "succeeded"),
        (run(False, SHUT_DOWN, code=143), "killed by SIGTERM (exit code 143)"),
    ],
)
def test_the_outcome_is_that_of_the_exit_code_and_the_last_work(app: Application, text: str) -> None:
    """The text begins with the outcome; an exit code 0 in a log proves nothing, that of the process does."""
    ending = ending_of(app)
    assert ending.text == text
    assert text.startswith(ending.outcome)


def failing_query(*, error: str | None, has_failed: bool) -> list[Event]:
    """A query with one job, which failed or not, and the error of the query."""
    result = JobResult("JobFailed", JobException("of the job")) if has_failed else JobResult("JobSucceeded")
    (start,) = log.events_of([log.query(7, time=1900)])
    (end,) = log.events_of([log.query_ended(7, time=3100, error=error or "")])
    properties = JobProperties(execution="7")
    return [start, JobStart(0, 2000, [], properties), JobEnd(0, 3000, result), end]


@pytest.mark.parametrize(
    ("error", "has_failed", "outcome", "reported"),
    [
        ("of the query", True, "failed", "of the query"),
        ("the commit failed", False, "failed", "the commit failed"),
        (None, True, "ended", None),
        (None, False, "ended", None),
    ],
)
def test_a_query_decides_for_its_jobs(
    *, error: str | None, has_failed: bool, outcome: str, reported: str | None
) -> None:
    """Adaptive execution cancels jobs of queries that succeed; a commit fails after all jobs have succeeded."""
    app = Application("app-1")
    for event in [*failing_query(error=error, has_failed=has_failed), END]:
        app.apply(event)
    ending = ending_of(app)
    assert (ending.outcome, ending.error, ending.query) == (outcome, reported, 7 if reported else None)


def test_the_error_is_that_of_the_last_work_only() -> None:
    """A failure that the program handled is not why it failed later with an exit code."""
    assert ending_of(run("handled", False, code=1)).error is None
    assert ending_of(run(False, "the last", code=1)).error == "the last"
    assert ending_of(run("handled", False, code=0)).error == "handled"


def test_what_a_client_asked_for_is_no_failure_of_the_server() -> None:
    """Of a program that runs the server in its own driver it is one, as of any program."""
    asked = [log.session(), log.operation("o"), log.job(0, [], **{"spark.job.tags": log.tag("o")})]
    ends = [log.job_ended(0, error="no"), log.ended()]
    own = log.environment({"spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin"})
    server, program = (ending_of(log.application([log.started(), *first, *asked, *ends])) for first in ([], [own]))
    assert (server.outcome, server.text, server.error) == ("ended", "ended: 1 of 1 job failed", None)
    assert (program.outcome, program.error) == ("failed", "no")


def test_a_streaming_query_that_fails_between_two_batches_is_a_failure() -> None:
    """As when the broker is gone: no job, query or batch has its error. One that a program stopped has none."""
    app = run(False, end=None)
    stream = app.streams.queries["q"] = StreamQuery("q", ended=1500)
    app.apply(END)
    assert ending_of(app).outcome == "ended"
    stream.error = "KafkaException: no broker"
    ending = ending_of(app)
    assert (ending.text, ending.error) == (
        "failed: its last streaming query failed (0 of 1 job)",
        "KafkaException: no broker",
    )
    stream.ended = 0
    assert ending_of(app).outcome == "ended"
