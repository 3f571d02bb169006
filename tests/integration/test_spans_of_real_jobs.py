"""What is hard to tell of a job comes out right of logs that Spark writes now: `tests/eventlogs/hard.py`."""

from collections import Counter
from typing import Final

import pytest

from spark_app.eventlog.model.operators import plan_of
from tests.eventlogs import hard, walking
from tests.eventlogs.left import Log, left_by

FAILED: Final = {
    "python error": "LookupError",
    "division": "DIVIDE_BY_ZERO",
    "missing file": "FAILED_READ_FILE.FILE_NOT_EXIST",
    "cancelled": "SPARK_JOB_CANCELLED",
}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """Of all cases that need no cluster."""
    return left_by("hard", tmp_path_factory.mktemp("hard"))


@pytest.fixture(scope="module")
def of_a_kill(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """Of a JVM that was killed with a stream and a query at work."""
    return left_by("dying", tmp_path_factory.mktemp("killed"))


def test_no_span_is_without_its_parent(log: Log) -> None:
    """0 orphans, no id twice, one root, children within the time and the trace of their parents."""
    walking.assert_is_forest(log.app, log.spans)


def test_two_steps_at_once_have_each_their_own(log: Log) -> None:
    """Of threads that work side by side, queries, jobs and stages go to the step that asked for them."""
    for case in ("one step", "another step"):
        assert Counter(span.kind.prefix for span in log.below(hard.span_id(case)))["job"] == 3
        assert {span.attributes["spark.jobGroup.id"] for span in log.of(case, "job")} == {case}
        assert len(log.of(case, "sql")) == 1
        assert {f"{span.ids.trace_id:x}" for span in log.below(hard.span_id(case))} == {hard.TRACE}
    one, other = (log.of(case, "stage") for case in ("one step", "another step"))
    assert any(a.started < b.ended and b.started < a.ended for a in one for b in other)


def test_a_stage_whose_output_is_lost_runs_again(log: Log) -> None:
    """Each attempt is a span: the one that could not fetch has failed, the job has not."""
    first, second = log.of("lost shuffle", "job")
    failed = [span for span in log.of("lost shuffle", "stage") if span.failure]
    assert [span.failure.type for span in failed if span.failure] == ["org.apache.spark.shuffle.FetchFailedException"]
    attempts = Counter(
        (span.attributes["spark.stage.id"], span.ids.parent_id == second.ids.span_id)
        for span in log.of("lost shuffle", "stage")
    )
    assert sorted(attempts.values()) == [1, 1, 1, 2]
    assert (first.failure, second.failure) == (None, None)
    assert all(span.attributes["spark.job.stages.skipped"] == 0 for span in (first, second))
    tasks = [span.failure.type for span in log.of("lost shuffle", "task") if span.failure]
    assert set(tasks) == {"FetchFailed"}


def test_the_plan_is_the_one_that_ran(log: Log) -> None:
    """Adaptive execution has made a broadcast of a join of shuffles; its operators have counted."""
    (query,) = log.of("replanned", "sql")
    assert int(query.attributes["spark.sql.plans"]) > 1
    plan = plan_of(log.app.queries[int(query.attributes["spark.sql.execution.id"])], log.app.numbers)
    joins = [operator for _, operator in plan.root.walk() if operator.name.endswith("Join")]
    assert [join.name for join in joins] == ["BroadcastHashJoin"]
    assert joins[0].numbers["number of output rows"].value == 2
    assert "BroadcastHashJoin [number of output rows 2]" in str(query.attributes["spark.sql.plan"])


def test_a_query_without_jobs_is_below_its_step(log: Log) -> None:
    """A tag of the step tells, beside those of the program; outside of steps it is below the application."""
    found = sorted((span for span in log.spans if "CreateViewCommand" in span.name), key=lambda span: span.started)
    (root,) = [span for span in log.spans if span.kind.prefix == "application"]
    assert [span.ids.parent_id for span in found] == [hard.span_id("no jobs"), root.ids.span_id]


def test_queries_of_a_command_are_below_it(log: Log) -> None:
    """Of a table that is made, merged into and optimized: all in the trace of the step, none beside its command."""
    commands = [span for span in log.of("merge", "sql") if span.ids.parent_id == hard.span_id("merge")]
    names = [span.name.split()[-1] for span in commands]
    assert {"MergeIntoCommand", "OptimizeTableCommand"} <= set(names) | {name.removesuffix("Edge") for name in names}
    inner = [span for span in log.of("merge", "sql") if span.ids.parent_id != hard.span_id("merge")]
    assert len(inner) > len(commands)
    assert {span.ids.parent_id for span in inner} <= {span.ids.span_id for span in commands}


@pytest.mark.parametrize(("case", "error"), FAILED.items())
def test_a_failure_is_told_at_every_level(log: Log, case: str, error: str) -> None:
    """Query, job, stage and task, each with the type and what was said."""
    failed = [span for span in log.below(hard.span_id(case)) if span.failure]
    kinds = {span.kind.prefix for span in failed}
    assert kinds >= {"sql", "job", "stage"}
    assert {span.failure.type for span in failed if span.failure and span.kind.prefix != "task"} == {error}
    assert all(span.failure.message for span in failed if span.failure)
    if case != "cancelled":
        assert error in {span.failure.type for span in failed if span.failure and span.kind.prefix == "task"}


@pytest.mark.parametrize(("case", "text"), [("subquery", "SCALAR_SUBQUERY_TOO_MANY_ROWS"), ("slow broadcast", "1 sec")])
def test_a_query_fails_though_its_jobs_do_not(log: Log, case: str, text: str) -> None:
    """What the driver finds out is on the span of the query."""
    (query,) = log.of(case, "sql")
    assert query.failure is not None
    assert text in f"{query.failure.type} {query.failure.message}"


def test_a_stage_of_two_jobs_is_told_once(log: Log) -> None:
    """Below the job that it ran for first; the other one has not skipped it."""
    jobs = log.of("shared stage", "job")
    shared = {*log.app.jobs[int(jobs[0].attributes["spark.job.id"])].stages}
    shared &= {*log.app.jobs[int(jobs[1].attributes["spark.job.id"])].stages}
    assert len(shared) == 1
    stages = log.of("shared stage", "stage")
    assert Counter(span.attributes["spark.stage.id"] in shared for span in stages) == {True: 1, False: 2}
    assert [span.attributes["spark.job.stages.skipped"] for span in jobs] == [0, 0]


def test_jobs_of_a_stream_hang_on_their_batch(log: Log) -> None:
    """Not on the step that started the query; a query that begins again goes on under another run."""
    assert log.of("streams", "job") == log.of("streams", "sql") == []
    first = log.batches("first")
    runs = list(dict.fromkeys(span.attributes["spark.streaming.query.run_id"] for span in first))
    assert len(runs) == 2
    assert len({span.attributes["spark.streaming.query.id"] for span in first}) == 1
    for batch in (*first, *log.batches("second")):
        assert [span.kind.prefix for span in log.below(batch.ids.span_id)][:3] == ["sql", "sql", "job"]
    done = [span for span in first if "spark.streaming.batch.rows" in span.attributes]
    assert {span.attributes["spark.streaming.batch.rows"] for span in done} == {10}


def test_a_stream_that_fails_has_a_batch_that_failed(log: Log) -> None:
    """With the error of the user's own function, at every level."""
    (batch,) = log.batches("broken")
    below = [span for span in log.below(batch.ids.span_id) if span.kind.prefix != "task"]
    assert {span.failure.type if span.failure else None for span in (batch, *below)} == {"LookupError"}


def test_what_a_program_does_with_a_batch_is_below_it(log: Log) -> None:
    """Even in a group of the program's own; triggers that found nothing new make no span."""
    (batch,) = log.batches("by batch")
    jobs = [span for span in log.below(batch.ids.span_id) if span.kind.prefix == "job"]
    assert {span.attributes["spark.jobGroup.id"] for span in jobs} == {"a group of the program"}
    assert [span for span in log.spans if span.attributes.get("spark.jobGroup.id") == "a group of the program"] == jobs


def test_what_a_kill_left_open_is_incomplete(of_a_kill: Log) -> None:
    """No end, no failure, no time after the last that is known; the stream is still not below the step."""
    walking.assert_is_forest(of_a_kill.app, of_a_kill.spans)
    assert {span.kind.prefix for span in of_a_kill.of("killed", "sql")} == {"sql"}
    (batch,) = of_a_kill.batches("killed stream")
    (root,) = [span for span in of_a_kill.spans if span.kind.prefix == "application"]
    open_ = [root, batch, *of_a_kill.below(batch.ids.span_id), *of_a_kill.of("killed", "job")]
    for span in open_:
        assert span.attributes["spark.incomplete"] is True
        assert span.failure is None
        assert span.ended == of_a_kill.app.last
