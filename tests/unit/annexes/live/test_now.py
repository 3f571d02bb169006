"""What a live page says of the moment: what runs, and what the application waits for, by its log so far."""

from pathlib import Path
from typing import Final

import pytest

from spark_app.annexes.live.now import MAX_ROWS, Now, now
from spark_app.eventlog.model.application import Application
from spark_app.report.scope import scope
from tests.eventlogs import walking
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line
from tests.unit.report import made

RECORDED: Final = Path(__file__).parents[3] / "eventlogs"
BEGUN: Final = [log.started(), log.executor()]
QUERY: Final = {"spark.sql.execution.id": "0"}


def started_task(number: int, stage: int, *, time: int = 2200) -> Line:
    """A task begins."""
    info = {"Task ID": number, "Index": number, "Attempt": 0, "Launch Time": time, "Executor ID": "0", "Host": "h"}
    return {"Event": "SparkListenerTaskStart", "Stage ID": stage, "Stage Attempt ID": 0, "Task Info": info}


def at(*lines: Line) -> Now:
    """The moment after some lines."""
    return now(scope(log.application([*BEGUN, *lines]), None))


def rows(moment: Now) -> list[tuple[str, int, str]]:
    """What has no end: what it is, how deep it stands, and how far it is."""
    return [(f"{work.kind} {work.id}", work.depth, work.progress) for work in moment.work]


def test_open_work_is_a_tree_with_progress() -> None:
    """A query, its job and its stage with its tasks; then a job without a query."""
    begun = [log.query(0), log.job(0, [0, 1], **QUERY), log.stage(0, end=2900), log.stage(1, tasks=8)]
    tasks = [started_task(number, 1) for number in range(3)]
    moment = at(*begun, *tasks, log.task(0, 1), log.job(1, [2], **{"callSite.short": "count at jobs/a.py:7"}))
    assert rows(moment) == [
        ("query 0", 0, ""),
        ("job 0", 1, "1 of at most 2 stages done"),
        ("stage 1", 2, "1 of 8 tasks done, 2 running"),
        ("job 1", 0, "0 of at most 1 stage done"),
    ]
    assert moment.work[3].name == "count at jobs/a.py:7"
    assert moment.waits == "2 tasks ran at the last event; 5 more tasks of the same stages had not started."
    assert moment.waiting_since is None


def test_the_parts_of_a_query_are_below_it_as_in_its_trace() -> None:
    """A query that is a part of another one, and its job; what ended with the whole is not open."""
    begun = [log.query(0), log.query(1, root=0), log.job(0, [0], **{"spark.sql.execution.id": "1"}), log.stage(0)]
    below = [("query 0", 0), ("query 1", 1), ("job 0", 2), ("stage 0", 3)]
    assert [row[:2] for row in rows(at(*begun))] == below
    assert rows(at(*begun, log.query_ended(1))) == [("query 0", 0, "")]


JOB: Final = log.job(3, [4])
SUBMITTED: Final = [JOB, log.stage(4)]
GONE: Final = log.removed(time=2050, reason="lost")
ENDED: Final = [*SUBMITTED, started_task(0, 4), log.task(0, 4)]
WAITS: Final = {
    "No query and no job has begun.": [],
    "No job runs: the driver plans query 0, or works on what its jobs returned.": [log.query(0)],
    "Job 3 began; no open stage of it is in the log yet.": [JOB],
    "Job 3 and 1 more began; no open stage of them is in the log yet.": [JOB, log.job(5, [6])],
    "No start of a task of stage 4 is in the log yet.": SUBMITTED,
    "No task was running at the last event; the end of stage 4 is not in the log yet.": ENDED,
    "No task runs: tasks wait for executors, and none is registered.": [*SUBMITTED, GONE],
    "No query and no job runs: the driver does work of its own, between jobs.": [JOB, log.job_ended(3)],
    "No batch runs: streaming query orders is between batches.": [
        made.stream_event("Started", name="orders"),
        made.stream_batch(0, 2000),
    ],
}


@pytest.mark.parametrize("sentence", WAITS)
def test_what_it_waits_for_is_what_the_log_says(sentence: str) -> None:
    """One sentence for each state, and nothing that the log does not have."""
    assert at(*WAITS[sentence]).waits == sentence


def test_the_time_without_a_task_begins_with_the_end_of_the_last() -> None:
    """As the log has it; unknown where no task has run."""
    assert at(*ENDED, log.stage(4, end=2400), log.job_ended(3, time=2500)).waiting_since == 2300
    assert at(JOB).waiting_since is None


def test_nothing_runs_after_the_end() -> None:
    """Also where the log has a job without an end: Spark stops it with the application."""
    moment = at(*SUBMITTED, log.ended(9000))
    assert (moment.state, moment.since, moment.waits, moment.work) == ("ended", 9000, "", [])


def test_a_process_that_is_not_known_may_have_been_killed() -> None:
    """Only whoever started it knows that it runs."""
    app = log.application(BEGUN)
    assert now(scope(app, None)).state == "no end in its log"
    app.is_alive = True
    assert now(scope(app, None)).state == "running"


def test_a_stage_of_a_job_that_failed_does_not_run() -> None:
    """Spark logs no end of what it cancels."""
    assert at(*SUBMITTED, log.job_ended(3, error="boom")).work == []


def test_the_list_is_bounded() -> None:
    """The rest is counted."""
    moment = at(*(log.job(number, [number]) for number in range(MAX_ROWS + 5)))
    assert (len(moment.work), moment.left_out) == (MAX_ROWS, 5)


def cut(recorded: Path, event: bytes) -> Application:
    """A recorded application up to the first event of a kind."""
    lines = list(walking.lines(recorded))
    end = next(number for number, line in enumerate(lines) if event in line)
    return walking.application(lines[: end + 1])


def test_a_recorded_stage_runs_with_its_tasks() -> None:
    """Cut at the end of a task: the stage, its job and the line of the program."""
    (recorded,) = (RECORDED / "4.2.0" / "plain").glob("local-*")
    app = cut(recorded, b"SparkListenerTaskEnd")
    moment = now(scope(app, None))
    stages = [work for work in moment.work if work.kind == "stage"]
    assert stages
    assert all(work.name and work.done == 1 for work in stages)
    assert [work.kind for work in moment.work].index("job") < [work.kind for work in moment.work].index("stage")


def test_a_recorded_stream_waits_between_batches() -> None:
    """Cut at the report about its first batch, when nothing of another one has begun."""
    app = cut(RECORDED / "streaming" / "tiny_batches-quiet.zst", b"QueryProgressEvent")
    moment = now(scope(app, None))
    assert moment.work == []
    assert "between batches" in moment.waits
