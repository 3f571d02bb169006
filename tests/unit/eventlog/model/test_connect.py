"""Sessions and operations of Spark Connect, in order, in a log that is cut, and in those that Spark has written."""

from collections import Counter
from typing import Final

import pytest

from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.connect import Operation, Session, SessionKey
from spark_app.eventlog.model.connect_statements import Statement
from tests.eventlogs import record_connect, walking
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line, becomes, operation, session, tag

ANA: Final = SessionKey("ana", "s")
DONE: Final[list[Line]] = [
    log.started(), session(), operation("o", time=1600), becomes("o", "Analyzed", time=1650),
    becomes("o", "Analyzed", time=1690), becomes("o", "ReadyForExecution", time=1700),
    log.job(0, [0], **{"spark.job.tags": f"other,{tag('o')}"}), log.stage(0),
    log.task(0, 0) | {"Event": "SparkListenerTaskStart"}, log.task(0, 0), log.stage(0, end=2900),
    log.job_ended(0), becomes("o", "Finished", time=3050, producedRowCount=7), becomes("o", "Closed", time=3100),
    session(time=3200, is_closed=True), log.ended(),
]  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Application:
    """A server that five clients have shared."""
    return walking.read(record_connect.recorded("server"))[0]


def test_an_operation_has_its_times_and_its_rows() -> None:
    """It waited from its plan until its first task."""
    app = log.application(DONE)
    assert app.connect.sessions == {ANA: Session(ANA, 1500, ended=3200)}
    assert app.connect.operations == {
        "o": Operation(
            "o", tag("o"), ANA, "", Statement("range"), 1600, 1700, 3050, 3100, 7, first_task=2200, latest=3000
        )
    }
    (only,) = app.connect.operations.values()
    assert (only.status, only.prepare_ms, only.wait_ms) == ("succeeded", 100, 500)


def test_jobs_and_queries_belong_to_the_operation_that_their_tags_name() -> None:
    """Among the tags of the program, and of Spark; a tag of no operation says nothing."""
    tags = {"jobTags": ["other", tag("o")]}
    lines = [*DONE[:6], log.query(0) | tags, log.query(1) | {"jobTags": [tag("p")]}, *DONE[6:]]
    app = log.application(lines)
    asked = app.connect.operations["o"]
    assert (app.jobs[0].operation, app.queries[0].operation, app.queries[1].operation) == (asked, asked, None)


@pytest.mark.parametrize(
    ("ends", "status"),
    [
        ([becomes("o", "Failed", time=3000, errorMessage="no")], "failed"),
        ([becomes("o", "Canceled", time=3000)], "canceled"),
        ([becomes("o", "Canceled", time=2900), becomes("o", "Failed", time=3000, errorMessage="no")], "canceled"),
        ([becomes("o", "Failed", time=2900, errorMessage="no"), becomes("o", "Canceled", time=3000)], "failed"),
        ([], "not finished"),
    ],
)
def test_an_operation_says_how_it_ended(ends: list[Line], status: str) -> None:
    """One that its client interrupts may fail of it; the server also interrupts what has failed, to clean up."""
    app = log.application([log.started(), session(), operation("o"), *ends])
    assert app.connect.operations["o"].status == status


def test_a_session_ends_the_operations_that_it_leaves_open() -> None:
    """Spark logs no end of them."""
    app = log.application([log.started(), session(), operation("o"), session(time=2000, is_closed=True)])
    (left,) = app.connect.sessions[ANA].left
    assert (left.id, left.ended, left.status) == ("o", 2000, "not finished")
    assert app.connect.open_sessions == []


def test_a_log_that_lacks_its_beginning_has_the_session_of_its_operations() -> None:
    """What ends without a start is nothing."""
    lines = [log.started(), operation("o"), becomes("p", "Closed", time=1700), session("t", is_closed=True)]
    app = log.application(lines)
    assert [(each.key, each.started, each.is_cut) for each in app.connect.sessions.values()] == [(ANA, 1600, True)]
    assert list(app.connect.operations) == ["o"]


def test_users_of_a_server_are_told_apart(server: Application) -> None:
    """One of them had two sessions at once; each operation is over, and has run or says why not."""
    assert Counter(each.user for each in server.connect.sessions.values()) == {"ana": 2, "ben": 1, "cyd": 1, "dan": 1}
    outcomes = Counter((each.session.user, each.status) for each in server.connect.operations.values())
    assert outcomes == {
        ("ana", "succeeded"): 8, ("ana", "failed"): 2, ("ben", "succeeded"): 6,
        ("cyd", "succeeded"): 2, ("cyd", "failed"): 2, ("dan", "canceled"): 1,
    }  # fmt: skip
    assert all(each.ended is not None for each in server.connect.operations.values())


def test_every_job_of_a_server_has_its_operation(server: Application) -> None:
    """And so has every query."""
    asked = [job.operation for job in server.jobs.values()] + [query.operation for query in server.queries.values()]
    assert {each and each.session.user for each in asked} == {"ana", "ben", "cyd", "dan"}


@pytest.mark.parametrize("version", record_connect.VERSIONS)
def test_servers_of_other_versions_say_the_same(version: str) -> None:
    """Two clients, whose operations have jobs, waits, rows and errors, on each Spark that has a server."""
    app = walking.read(record_connect.recorded(version))[0]
    operations = app.connect.operations.values()
    assert {session.user for session in app.connect.sessions.values()} == {"ana", "ben"}
    are_released = version >= "4"  # a client of Spark 3.5 leaves its session to the server, which keeps it for an hour
    assert {session.ended is not None for session in app.connect.sessions.values()} == {are_released}
    assert Counter((each.session.user, each.status) for each in operations) == {
        ("ana", "succeeded"): 6, ("ben", "succeeded"): 2, ("ben", "failed"): 2,
    }  # fmt: skip
    assert all(each.ended is not None for each in operations)
    assert all((each.statement.sql is not None) == (each.statement.kind == "sql") for each in operations)
    assert {"write_operation", "aggregate", "sql", "create_dataframe_view"} == {
        each.statement.kind for each in operations
    }
    assert {each.rows for each in operations if each.session.user == "ana"} == {None, 0, 3, 7}
    assert sum(each.wait_ms is not None for each in operations) == 6
    assert all(job.operation is not None for job in app.jobs.values())
