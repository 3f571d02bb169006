"""Spans tell what happened, with the events' own times; what is unknown is absent, and no parent is missing."""

import itertools
from collections import Counter
from typing import Final

import pytest

from spark_app.eventlog.model import kubernetes_pods
from spark_app.vocabulary.spark_names import OPERATION_SPAN
from tests.eventlogs import record_connect, walking
from tests.unit.eventlog import log
from tests.unit.eventlog.log import (
    SQL,
    Line,
    becomes,
    ended,
    environment,
    executor,
    job,
    job_ended,
    operation,
    packed,
    query,
    query_ended,
    read,
    session,
    stage,
    started,
    tag,
    task,
)

PASSWORD: Final = "hunter2"
"""In `tests/eventlogs/connect.py`."""
STEP: Final = f"00-{'a' * 32}-{'b' * 16}-01"
STREAMING: Final = "org.apache.spark.sql.streaming.StreamingQueryListener$"
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
        assert spans[below].ids.parent_id == spans[above].ids.span_id
    assert spans["sql 0"].ids.parent_id == int("b" * 16, 16)
    assert {spans[name].ids.trace_id for name in chain} == {int("a" * 32, 16)}
    assert spans["application app-1"].ids.parent_id is None


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
    """The operator that does something, and the work of the stages, without numbers and dates."""
    _, spans = read(GOOD)
    assert spans["sql 0"].name == "sql Project"
    assert spans["job 0"].name == "job d"


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
        "application app-1": "DIVIDE_BY_ZERO",
    }
    assert {name: span.failure.message for name, span in spans.items() if span.failure} == {
        "task 0": "no",
        "stage 0.0": text,
        "job 0": text,
        "sql 0": "[DIVIDE_BY_ZERO] Division by zero.",
        "application app-1": "[DIVIDE_BY_ZERO] Division by zero.",
    }


def test_stages_at_work_at_once_have_each_their_own() -> None:
    """Tasks and numbers go to their stage, stages to their job, jobs to the step that asked for them."""
    other = f"00-{'c' * 32}-{'d' * 16}-01"
    begun = [started(), job(0, [0, 1], traceparent=STEP), job(1, [2], traceparent=other), stage(0), stage(1), stage(2)]
    tasks = [task(number, number % 3) for number in range(8)]
    over = [stage(2, end=2500), job_ended(1), stage(0, end=2600), stage(1, end=2700), job_ended(0), ended()]
    app, spans = read([*begun, *tasks, *over])
    walking.assert_is_forest(app, spans.values())
    assert [spans[f"stage {number}.0"].attributes["spark.stage.tasks.ended"] for number in range(3)] == [3, 3, 2]
    for above, below in (
        ("job 0", "stage 0.0"),
        ("job 0", "stage 1.0"),
        ("job 1", "stage 2.0"),
        ("stage 1.0", "task 4"),
    ):
        assert spans[below].ids.parent_id == spans[above].ids.span_id
    assert [f"{spans[f'job {number}'].ids.parent_id:x}" for number in range(2)] == ["b" * 16, "d" * 16]


def test_the_plan_is_the_last_one() -> None:
    """Adaptive execution replaces it; the span has how many there were."""
    changed = {"Event": f"{SQL}AdaptiveExecutionUpdate", "executionId": 0, "sparkPlanInfo": {"nodeName": "Union"}}
    _, spans = read([started(), query(0), changed, changed, query_ended(0), ended()])
    known = spans["sql 0"].attributes
    assert (known["spark.sql.plans"], known["spark.sql.plan"], spans["sql 0"].name) == (3, "Union", "sql Union")


def test_what_a_kill_left_open_ends_with_the_log_and_says_so() -> None:
    """No end event: the latest time that is known, and a mark; nothing is said about how it went."""
    _, spans = read([started(), query(0), job(0, [0], **{"spark.sql.execution.id": "0"}), stage(0), task(0, 0)])
    for name in ("application app-1", "sql 0", "job 0", "stage 0.0"):
        assert spans[name].attributes["spark.incomplete"] is True
        assert spans[name].ended == 2300
        assert spans[name].failure is None
    assert "spark.job.stages.skipped" not in spans["job 0"].attributes


def test_nothing_that_was_left_open_ends_after_its_application() -> None:
    """Spark may log the end of a job after that of the application, which ends a query that has no end in the log."""
    _, spans = read([started(), query(0), job(0, [0]), ended(time=2200), job_ended(0, time=2250)])
    assert (spans["sql 0"].ended, spans["sql 0"].attributes["spark.incomplete"]) == (2200, True)


def test_a_log_without_its_beginning_has_an_application_all_the_same() -> None:
    """From the first that is known of it, and marked; no span is without its parent, and no time is made up."""
    lost = [job_ended(3), stage(3, end=2300), task(9, 3), task(8, 3)]
    for lines in (
        GOOD[1:],
        [*lost, *GOOD[1:]],
        [*lost, *GOOD[1:-1]],
        [*GOOD[6:-1], stage(5), query(2), query_ended(2)],
    ):
        app, spans = read(lines)
        walking.assert_is_forest(app, spans.values())
        (whole,) = [span for span in spans.values() if span.ids.parent_id is None]
        assert whole.started == min(span.started for span in spans.values())
        assert whole.attributes["spark.incomplete"] is True
    _, spans = read([{"Event": "SparkListenerLogStart", "Spark Version": "4.2.0"}])
    assert spans == {}


def test_of_many_tasks_only_those_are_told_that_say_something() -> None:
    """The slowest five, whatever failed or was tried again; all are counted."""
    tasks = [task(number, 0, seconds=number) for number in range(20)]
    tasks += [task(20, 0, error="no"), task(21, 0, Attempt=1), task(22, 0, Speculative=True)]
    app, spans = read([started(), job(0, [0]), stage(0), *tasks, stage(0, end=9000), job_ended(0), ended()])
    exported = {int(name.split()[1]) for name in spans if name.startswith("task")}
    assert exported == {15, 16, 17, 18, 19, 20, 21, 22}
    assert len(app.stages[0, 0].durations_ms) == 23
    assert spans["stage 0.0"].attributes["spark.spill.memory_bytes"] == 23 * 5


def test_what_no_task_has_told_is_absent() -> None:
    """Of a stage without tasks so far, or whose tasks were all lost with their executor: no zeros."""
    lost = task(0, 0, error="gone") | {"Task Metrics": None}
    for tasks, is_known in (([], False), ([lost], False), ([lost, task(1, 0)], True)):
        _, spans = read([started(), job(0, [0]), stage(0), *tasks, stage(0, end=2900), job_ended(0), ended()])
        known = spans["stage 0.0"].attributes
        assert known["spark.stage.tasks.ended"] == len(tasks)
        assert ("spark.executor.run_time" in known, "spark.input.bytes" in known) == (is_known, is_known)
        assert "spark.executor.run_time" not in spans.get("task 0", spans["application app-1"]).attributes


def test_hostile_text_is_cut_and_kept_as_text() -> None:
    """However long an error is, and whatever it holds."""
    text = "<script>" + "x" * 5000
    _, spans = read([started(), query(0), query_ended(0, error=text), ended()])
    failure = spans["sql 0"].failure
    assert failure is not None
    assert failure.message.startswith("<script>")
    assert len(failure.message) == 1000


def test_a_query_without_jobs_waits_for_the_one_that_it_is_a_part_of() -> None:
    """Where that belongs is known with its first job; then both are in the trace of the step."""
    lines = [
        started(), query(0), query(1, root=0), query_ended(1), query(2, root=0),
        job(0, [0], traceparent=STEP, **{"spark.sql.execution.id": "2"}), job_ended(0), query_ended(2),
    ]  # fmt: skip
    for rest in ([query_ended(0), ended()], []):
        app, spans = read([*lines, *rest])
        assert {spans[f"sql {number}"].ids.trace_id for number in range(3)} == {int("a" * 32, 16)}
        walking.assert_is_forest(app, spans.values())


def test_a_query_without_jobs_is_below_the_step_that_its_tag_names() -> None:
    """Jobs know better; other tags say nothing, and a thread of a streaming query has those of whoever began it."""
    tagged = {"jobTags": ["mine", f"traceparent:{STEP}"]}
    other = f"00-{'c' * 32}-{'d' * 16}-01"
    run = {"Event": f"{STREAMING}QueryStartedEvent", "id": "q", "runId": "r", "name": None}
    app, spans = read([
        started(), query(0) | tagged, query_ended(0),
        query(1) | {"jobTags": ["mine", "traceparent:no"]}, query_ended(1),
        query(2) | tagged, job(0, [], traceparent=other, **{"spark.sql.execution.id": "2"}), job_ended(0),
        query_ended(2), run, query(3) | tagged | {"jobGroupId": "r"}, query_ended(3),
        query(4) | tagged | {"jobGroupId": "x"}, query_ended(4), ended(),
    ])  # fmt: skip
    root = spans["application app-1"].ids.span_id
    assert [spans[f"sql {number}"].ids.parent_id for number in range(5)] == [
        int("b" * 16, 16), root, int("d" * 16, 16), root, int("b" * 16, 16),
    ]  # fmt: skip
    walking.assert_is_forest(app, spans.values())


def test_what_was_told_of_a_query_is_not_moved_by_a_later_job() -> None:
    """Neither by one that begins after its end, nor by one with another step than the first."""
    for lines in (
        [query(0), query_ended(0), job(0, [], traceparent=STEP, **{"spark.sql.execution.id": "0"}), job_ended(0)],
        [
            query(0),
            job(0, [], **{"spark.sql.execution.id": "0"}),
            job_ended(0),
            job(1, [], traceparent=STEP, **{"spark.sql.execution.id": "0"}),
            job_ended(1),
            query_ended(0),
        ],
    ):
        app, spans = read([started(), *lines, ended()])
        assert spans["sql 0"].ids.parent_id == spans["application app-1"].ids.span_id
        walking.assert_is_forest(app, spans.values())


def test_a_stage_that_two_jobs_need_is_skipped_by_neither() -> None:
    """It ran for the first of them; the second begins before it, or while it is at work."""
    for begins in ([job(1, [0, 1]), stage(0)], [stage(0), job(1, [0, 1])]):
        rest = [stage(0, end=2500), job_ended(0), job_ended(1), ended()]
        _, spans = read([started(), job(0, [0]), *begins, *rest])
        skipped = [spans[f"job {number}"].attributes["spark.job.stages.skipped"] for number in range(2)]
        assert skipped == [0, 1]
        assert spans["stage 0.0"].ids.parent_id == spans["job 0"].ids.span_id


def test_a_task_that_ends_after_its_stage_is_told_if_it_says_something() -> None:
    """The loser of two copies; not one more that went well."""
    late = [task(0, 0, Killed=True), task(1, 0)]
    _, spans = read([started(), job(0, [0]), stage(0), stage(0, end=2500), *late, job_ended(0), ended()])
    assert {name for name in spans if name.startswith("task")} == {"task 0"}


def test_a_query_whose_plan_is_none_is_told_without_it() -> None:
    """Nothing is lost but the plan, and nothing is made up for it."""
    _, spans = read([started(), query(0) | {"sparkPlanInfo": None}, query_ended(0), ended()])
    assert spans["sql 0"].name == "sql unknown"
    assert "spark.sql.plan" not in spans["sql 0"].attributes


def test_an_exit_code_is_a_failure_of_the_application() -> None:
    """Unless it is 0, or unknown."""
    for code, message in ((None, None), (0, None), (3, "failed with exit code 3")):
        _, spans = read([started(), ended() | ({} if code is None else {"ExitCode": code})])
        failure = spans["application app-1"].failure
        assert (failure.message if failure else None) == message


def test_attempts_of_an_application_do_not_share_ids() -> None:
    """One that a cluster starts again has the same id and the same numbers of jobs."""
    ids = set()
    for attempt in ("1", "2"):
        _, spans = read([started() | {"App Attempt ID": attempt}, job(0, []), job_ended(0), ended()])
        assert spans["application app-1"].attributes["spark.app.attempt.id"] == attempt
        ids |= {span.ids.span_id for span in spans.values()}
    assert len(ids) == 4


def test_what_lost_its_end_ends_with_what_it_is_a_part_of() -> None:
    """Not with the log: an orderly parent has ended before."""
    properties = {"spark.sql.execution.id": "0"}
    _, spans = read([started(), query(0), job(0, [0], **properties), stage(0), query_ended(0), ended()])
    assert [spans[name].ended for name in ("sql 0", "job 0", "stage 0.0")] == [3100] * 3
    assert [spans[name].attributes.get("spark.incomplete") for name in ("job 0", "stage 0.0")] == [True] * 2


def test_a_stage_whose_start_is_not_logged_starts_with_its_first_task() -> None:
    """As in logs of Spark before 2.2, which have it only in its end, and in those that lost their beginning."""
    begun, over = stage(0), stage(0, end=2900)
    for line in (begun, over):
        del line["Stage Info"]["Submission Time"]
    _, spans = read([started(), job(0, [0]), begun, task(0, 0), over, job_ended(0), ended()])
    assert spans["stage 0.0"].started == 2200
    app, spans = read([task(0, 0), stage(0, end=2900)])
    assert (app.began, spans["stage 0.0"].started, spans["application app-1"].started) == (2100, 2100, 2100)


def test_what_ends_twice_has_one_span() -> None:
    """Of a damaged log: ids of other things may have become those of this one."""
    twice = [
        stage(0, end=2900),
        job_ended(0),
        stage(0, end=2950),
        query_ended(0),
        job_ended(0),
        query_ended(0, time=3200),
    ]
    lines = [started(), query(0), job(0, [0], **{"spark.sql.execution.id": "0"}), stage(0), task(0, 0), *twice, ended()]
    app, found = walking.read_lines(packed(lines))
    walking.assert_is_forest(app, found)
    assert app.stages[0, 0].info.completed == 2900


def test_a_stage_that_is_logged_as_submitted_after_its_end_ends_once() -> None:
    """Spark writes what it knows when it writes: of a short stage that is its end as well."""
    late = stage(0, end=2900) | {"Event": "SparkListenerStageSubmitted"}
    app, spans = read([started(), job(0, [0]), late, task(0, 0), stage(0, end=2900), job_ended(0), ended()])
    assert (spans["stage 0.0"].started, spans["stage 0.0"].ended) == (2100, 2900)
    assert "spark.incomplete" not in spans["stage 0.0"].attributes
    assert app.stages[0, 0].usage is not None


def test_spans_name_the_pods_of_driver_and_executors() -> None:
    """On Kubernetes; elsewhere there are none."""
    pods = {
        "spark.master": "k8s://https://kubernetes.default.svc",
        "spark.kubernetes.namespace": "jobs",
        "spark.kubernetes.driver.pod.name": "shop-driver",
        "spark.kubernetes.executor.podNamePrefix": "shop",
    }
    _, spans = read([environment(pods), *GOOD])
    assert {
        name: (span.attributes.get("k8s.namespace.name"), span.attributes.get("k8s.pod.name"))
        for name, span in spans.items()
        if name.partition(" ")[0] in {"application", "task"}
    } == {"application app-1": ("jobs", "shop-driver"), "task 0": ("jobs", "shop-exec-0")}
    _, spans = read(GOOD)
    assert not any(name.startswith("k8s.") for span in spans.values() for name in span.attributes)


@pytest.mark.parametrize("name", record_connect.LOGS)
def test_spans_of_spark_connect_are_forests(name: str) -> None:
    """Session > operation > query > job > stage > task, in the trace of the session, or of a program's own server."""
    app, found = walking.read(record_connect.recorded(name))
    walking.assert_is_forest(app, found)
    above = {span.ids.span_id: span.kind.prefix for span in found}
    parents = {(above.get(span.ids.parent_id or 0), span.kind.prefix) for span in found}
    asked = {("session", "operation"), ("operation", "sql"), ("sql", "job"), ("job", "stage"), ("stage", "task")}
    assert parents - {("sql", "sql")} == {(None, "application"), *asked} | (
        {(None, "session")} if name == "server" else {("application", "session")}
    )
    assert not any("spark.incomplete" in span.attributes for span in found)


def test_spans_of_an_operation_say_who_asked_for_what() -> None:
    """Which user, which SQL, which line, how long it waited, and how it ended: an interrupted one has not failed."""
    _, found = walking.read(record_connect.recorded("server"))
    operations = [span for span in found if span.kind is OPERATION_SPAN]
    (canceled,) = (span for span in operations if span.attributes["user.id"] == "dan")
    assert (canceled.attributes["spark.connect.operation.status"], canceled.failure) == ("canceled", None)
    statuses = Counter(
        (span.attributes["spark.connect.operation.status"], span.failure is not None) for span in operations
    )
    assert statuses == {("succeeded", False): 16, ("failed", True): 4, ("canceled", False): 1}
    written = next(span for span in operations if span.attributes["spark.connect.operation.kind"] == "write_operation")
    assert written.name == "operation write_operation at connect.py"
    assert written.attributes["spark.call_site"] == "write_operation at work/connect.py:26"
    waits = [written.attributes[f"spark.connect.operation.{wait}_time"] for wait in ("prepare", "wait")]
    assert all(isinstance(wait, int) and 0 < wait < written.ended - written.started for wait in waits)
    assert {span.name for span in operations if "db.query.text" in span.attributes} == {
        "operation SELECT nothing FROM nowhere",
        "operation SELECT assert_true(id < #) FROM range(#)",
        "operation SELECT id % # AS shop, count(*) AS orders, # AS owner FROM orders GROUP BY #",
        "operation CREATE TEMPORARY VIEW stock USING parquet OPTIONS (path #, password #)",
    }


def test_no_span_of_spark_connect_has_a_secret_or_the_text_of_a_request() -> None:
    """The password is in the options of a view, which the log has in the SQL, in descriptions and in details."""
    for name in ("local", "server"):
        assert any(PASSWORD.encode() in line for line in walking.lines(record_connect.recorded(name)))
        texts = [str((span.name, span.attributes)) for span in walking.read(record_connect.recorded(name))[1]]
        assert [text for text in texts if PASSWORD in text or "plan_id" in text] == []


def test_spans_of_a_cut_log_of_spark_connect_are_forests() -> None:
    """Of a server that was killed in the middle of something, and of a log that has lost its beginning."""
    lines = list(walking.lines(record_connect.recorded("server")))
    for position in range(4, len(lines), 20):
        for kept in (lines[:position], [*lines[:4], *lines[position:]]):
            walking.assert_is_forest(*walking.read_lines(kept))


def test_an_operation_that_the_log_leaves_open_is_incomplete() -> None:
    """Its session is not, which ends with its server; both last as long as the application."""
    _, spans = read([started(), session(), operation("o"), log.ended()])
    assert spans["operation o"].attributes["spark.incomplete"] is True
    assert "spark.incomplete" not in spans["session s"].attributes
    assert [spans[name].ended for name in ("operation o", "session s")] == [9000, 9000]


def test_spans_name_the_nodes_that_pods_tell() -> None:
    """Of the driver by a property, of an executor by its attributes; a pod that tells none has none."""
    pods = {"spark.master": "k8s://https://a", kubernetes_pods.NODE: "n-1"}
    lines = [
        environment(pods),
        started(),
        executor("1", KUBERNETES_NODE_NAME="n-2"),
        executor("2"),
        job(0, [0]),
        stage(0),
    ]
    for number in (0, 1):
        failed = task(number, 0, error="no")
        lines.append(failed | {"Task Info": failed["Task Info"] | {"Executor ID": str(number + 1)}})
    _, spans = read([*lines, stage(0, end=2900), job_ended(0), ended()])
    nodes = {name: span.attributes.get("k8s.node.name") for name, span in spans.items()}
    assert {name: node for name, node in nodes.items() if node} == {"application app-1": "n-1", "task 0": "n-2"}
    assert "task 1" in nodes


def test_an_operation_that_was_canceled_has_not_failed() -> None:
    """Also if it fails of that; its client wanted it so."""
    canceled = becomes("o", "Canceled", time=2000)
    failed = becomes("o", "Failed", time=2001, errorMessage="interrupted")
    _, spans = read([started(), session(), operation("o"), canceled, failed, becomes("o", "Closed", time=2002)])
    assert (spans["operation o"].failure, spans["operation o"].ended) == (None, 2002)
    assert spans["operation o"].attributes["spark.connect.operation.status"] == "canceled"


def test_an_operation_whose_end_the_log_lacks_lasts_until_its_rows_were_sent() -> None:
    """And as long as its SQL execution, which ends just after that."""
    asked = query(0) | {"jobTags": [tag("o")]}
    sent = [becomes("o", "Finished", time=3000), query_ended(0, time=3100)]
    _, spans = read([started(), session(), operation("o"), asked, *sent, log.ended()])
    assert (spans["operation o"].ended, spans["sql 0"].ended) == (3100, 3100)
    assert "spark.incomplete" not in spans["operation o"].attributes
