"""Spans tell what happened, with the events' own times; what is unknown is absent, and no parent is missing."""

import itertools
from typing import Final

from tests.unit.eventlog.log import Line, ended, job, job_ended, query, query_ended, read, stage, started, task

STEP: Final = f"00-{'a' * 32}-{'b' * 16}-01"
GOOD: Final[list[Line]] = [
    started(), query(0), query(1, root=0),
    job(0, [0, 1], traceparent=STEP, **{"spark.sql.execution.id": "1"}),
    stage(1), task(0, 1), stage(1, end=2900), job_ended(0), query_ended(1), query_ended(0), ended(),
]  # fmt: skip


def test_every_parent_is_there() -> None:
    """Step > query > query > job > stage > task; the application has none."""
    _, spans = read(GOOD)
    chain = ["sql 0", "sql 1", "job 0", "stage 1.0", "task 0"]
    for above, below in itertools.pairwise(chain):
        assert spans[below].place.parent_id == spans[above].place.span_id
    assert spans["sql 0"].place.parent_id == int("b" * 16, 16)
    assert {spans[name].place.trace_id for name in chain} == {int("a" * 32, 16)}
    assert spans["application app-1"].place.parent_id is None


def test_times_are_those_of_the_events() -> None:
    """Milliseconds, as Spark wrote them."""
    _, spans = read(GOOD)
    assert {name: (span.started, span.ended) for name, span in spans.items()} == {
        "application app-1": (1000, 9000),
        "sql 0": (1900, 3100),
        "sql 1": (1900, 3100),
        "job 0": (2000, 3000),
        "stage 1.0": (2100, 2900),
        "task 0": (2200, 2300),
    }


def test_names_have_few_values() -> None:
    """The operator that does something, the call site: no numbers, no dates."""
    _, spans = read(GOOD)
    assert spans["sql 0"].name == "sql Project"
    assert spans["job 0"].name == "job save at job.py:7"


def test_a_stage_that_was_not_needed_is_counted_as_skipped() -> None:
    """Of two stages one has run."""
    _, spans = read(GOOD)
    assert spans["job 0"].attributes["spark.job.stages.skipped"] == 1


def test_a_failure_is_told_at_every_level() -> None:
    """Task, stage attempt, job and query have the type and the text; the second attempt of the stage went well."""
    text = "Job aborted: java.lang.IllegalStateException: no"
    _, spans = read([
        started(), query(0), job(0, [0], **{"spark.sql.execution.id": "0"}),
        stage(0), task(0, 0, error="no"), stage(0, end=2500, error=text),
        stage(0, 1), task(1, 0, 1), stage(0, 1, end=2600),
        job_ended(0, error=text), query_ended(0, error="[DIVIDE_BY_ZERO] Division by zero."), ended(),
    ])  # fmt: skip
    types = {name: span.failure.type for name, span in spans.items() if span.failure}
    assert types == {
        "task 0": "java.lang.IllegalStateException",
        "stage 0.0": "java.lang.IllegalStateException",
        "job 0": "java.lang.IllegalStateException",
        "sql 0": "DIVIDE_BY_ZERO",
    }
    assert spans["task 0"].failure is not None
    assert spans["task 0"].failure.message == "no"


def test_what_a_kill_left_open_ends_with_the_log_and_says_so() -> None:
    """No end event: the latest time that is known, and a mark; nothing is said about how it went."""
    _, spans = read([started(), query(0), job(0, [0], **{"spark.sql.execution.id": "0"}), stage(0), task(0, 0)])
    for name in ("application app-1", "sql 0", "job 0", "stage 0.0"):
        assert spans[name].attributes["spark.incomplete"] is True
        assert spans[name].ended == 2300
        assert spans[name].failure is None
    assert "spark.job.stages.skipped" not in spans["job 0"].attributes


def test_of_many_tasks_only_those_are_told_that_say_something() -> None:
    """The slowest five, whatever failed or was tried again; all are counted."""
    tasks = [task(number, 0, seconds=number) for number in range(20)]
    tasks += [task(20, 0, error="no"), task(21, 0, Attempt=1), task(22, 0, Speculative=True)]
    app, spans = read([started(), job(0, [0]), stage(0), *tasks, stage(0, end=9000), job_ended(0), ended()])
    told = {int(name.split()[1]) for name in spans if name.startswith("task")}
    assert told == {15, 16, 17, 18, 19, 20, 21, 22}
    assert len(app.stages[0, 0].durations_ms) == 23
    assert spans["stage 0.0"].attributes["spark.spill.memory_bytes"] == 23 * 5


def test_hostile_text_is_cut_and_kept_as_text() -> None:
    """However long an error is, and whatever it holds."""
    text = "<script>" + "x" * 5000
    _, spans = read([started(), query(0), query_ended(0, error=text), ended()])
    failure = spans["sql 0"].failure
    assert failure is not None
    assert failure.message.startswith("<script>")
    assert len(failure.message) == 1000
