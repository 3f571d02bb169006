"""What the clients of a Spark Connect server asked for, and what each user cost."""

from decimal import Decimal
from pathlib import Path
from typing import Final

import pytest

from spark_app.eventlog.reader import Reading, read
from spark_app.report import page
from spark_app.report.limits import Limits
from spark_app.report.scope import scope
from spark_app.report.sections.connect import Connect, connect
from spark_app.report.sections.timeline import Bar, timeline
from spark_app.settings import Prices
from tests.eventlogs import record_connect
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line, becomes, operation, session, tag
from tests.unit.report.conftest import Read

PRICES: Final = Prices(currency="EUR", core_hour=Decimal("3.6"), gib_hour=None)
HOUR: Final = 3_600_000
SHARED: Final[list[Line]] = [
    log.started(0), log.executor("0", cores=2, time=0), session(), session("t", user="ben"), session("u", user=""),
    operation("o", time=1600), operation("p", session="t", user="ben", time=1600),
    log.job(0, [0], **{"spark.job.tags": tag("o")}), log.stage(0), log.task(0, 0, seconds=1800), log.stage(0, end=HOUR),
    log.job_ended(0, time=HOUR), log.job(1, [1], **{"spark.job.tags": tag("p")}), log.stage(1),
    log.task(1, 1, seconds=900), log.stage(1, end=HOUR), log.job_ended(1, time=HOUR),
    log.job(2, [2]), log.stage(2), log.task(2, 2, seconds=450), log.stage(2, end=HOUR), log.job_ended(2, time=HOUR),
    becomes("o", "Finished", time=HOUR), becomes("p", "Failed", time=HOUR, errorMessage="no"), log.ended(HOUR),
]  # fmt: skip


def section(reading: Reading, *, prices: Prices | None = None, **limits: int) -> Connect:
    """The section of an application that has clients."""
    found = connect(scope(reading.app, None), Limits(**limits), prices)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def server() -> Reading:
    """A server that five clients have shared."""
    return read(record_connect.recorded("server"))


def test_an_application_without_clients_has_no_section(reading: Read, tmp_path: Path) -> None:
    """Nor a tab for it."""
    done = reading([log.started(), log.ended()])
    assert connect(scope(done.app, None), Limits(), PRICES) is None
    assert b'href="#connect"' not in page.write(done, output=tmp_path / "r.html").path.read_bytes()


def test_users_share_what_the_executors_took(reading: Read) -> None:
    """By the time of their tasks; the rest is idle cores, and a job of nobody. In all it is what the report says."""
    users = section(reading(SHARED), prices=PRICES).users
    shown = [(each.user, each.operations, each.failed_operations, each.core_hours, each.price) for each in users]
    assert shown == [
        ("ana", 1, 0, 0.5, Decimal("1.8")),
        ("ben", 1, 1, 0.25, Decimal("0.9")),
        (None, 0, 0, 1.25, Decimal("4.5")),
    ]
    assert [each.price for each in section(reading(SHARED)).users] == [None, None, None]


def test_an_operation_says_how_long_it_prepared_waited_and_ran(server: Reading) -> None:
    """That is all of its time; it leads to its SQL."""
    (written,) = (each for each in section(server).operations if each.kind == "write_operation" and each.user == "ben")
    parts = (written.prepare_ms, written.wait_ms, written.run_ms)
    assert None not in parts
    assert written.duration_ms == sum(part or 0 for part in parts)
    (number,) = written.queries
    assert server.app.queries[number].operation is not None
    assert (written.name, written.call_site) == ("write_operation at work/connect.py:26",) * 2


def test_operations_are_listed_by_session(server: Reading) -> None:
    """In the order of their starts; a user may have several sessions at once."""
    shown = section(server)
    assert sorted(each.user for each in shown.sessions) == ["ana", "ana", "ben", "cyd", "dan"]
    assert shown.total == len(shown.operations) == sum(len(each.operations) for each in shown.sessions)
    starts = [each.started for each in shown.operations]
    assert starts == sorted(starts, key=str)


def test_failed_operations_are_listed_before_long_ones(server: Reading) -> None:
    """As many as the report has room for; all are counted."""
    shown = section(server, operations=4)
    assert (shown.total, {each.status for each in shown.operations}) == (21, {"failed"})


def test_the_page_has_the_clients_and_no_secret(server: Reading, tmp_path: Path) -> None:
    """Users, SQL and lines; the password of the SQL is masked."""
    text = page.write(server, output=tmp_path / "r.html", prices=PRICES).path.read_text(encoding="utf-8")
    for expected in ('<section id="connect">', "write_operation at work/connect.py:26", "SELECT nothing FROM nowhere"):
        assert expected in text
    assert "hunter2" not in text
    assert "plan_id:" not in text  # of requests


def test_the_timeline_has_sessions_and_operations(server: Reading) -> None:
    """A session hangs on the server, an operation on its session, and the SQL on that."""
    root = timeline(scope(server.app, None), Limits()).root
    assert {each.kind for each in root.children} == {"session"}
    below: list[Bar] = [operation for each in root.children for operation in each.children]
    assert {each.kind for each in below} == {"operation"}
    assert {query.kind for each in below for query in each.children} == {"query"}
