"""Clients of a real Spark Connect server, seen by a bridge while they work, and by `observe` on their side."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.eventlog.spans import SparkSpan
from tests.eventlogs import connect, record_connect
from tests.polling import patience
from tests.unit.eventlog.logs import Bridged

JOB: Final = connect.__file__


@dataclass(frozen=True)
class Shared:
    """What came of a server and its clients: what each `observe` found, and the spans before and after its end."""

    observed: list[dict[str, Any]]
    live: list[SparkSpan]
    spans: list[SparkSpan]


def observe(home: Path, *command: str, **variables: str) -> dict[str, Any]:
    """What `observe` finds of a command."""
    found = home / "found.json"
    words = [sys.executable, "-m", "spark_app", "observe", "--json", str(found), "--", *command]
    environment = {**os.environ, "SPARK_APP_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", **variables}
    done = subprocess.run(
        words, env=environment, cwd=home, check=False, capture_output=True, text=True, timeout=patience(200)
    )
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads(found.read_text(encoding="utf-8"))
    return content


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """Two users of a server, one after the other, each under `observe`; a bridge follows its log meanwhile."""
    home = tmp_path_factory.mktemp("server")
    (home / "logs").mkdir()
    bridge = Bridged(home / "logs")
    observed = []
    with record_connect.started(home, record_connect.variables(home)) as address:
        for user, program in (("ana", "sales"), ("cyd", "failing")):
            own = home / user
            own.mkdir()
            client = (sys.executable, JOB, program, f"sc://{address}/;user_id={user}", str(own))
            observed.append(observe(own, *client))
        bridge.until(lambda: len(spans(bridge, "session")) == 2)
        live = spans(bridge)
    bridge.until_done()
    yield Shared(observed, live, spans(bridge))
    bridge.close()


def spans(bridge: Bridged, kind: str = "") -> list[SparkSpan]:
    """What a bridge has sent so far, all of it or one kind."""
    return [each.span for each in bridge.collector.received if kind in ("", each.span.kind.prefix)]


def test_a_session_is_seen_when_it_is_closed(shared: Shared) -> None:
    """With all that it asked for, whole, while the server runs on."""
    sent = {span.ids.span_id for span in shared.live}
    sessions = [span for span in shared.live if span.kind.prefix == "session"]
    assert {span.attributes["user.id"] for span in sessions} == {"ana", "cyd"}
    assert "application" not in {span.kind.prefix for span in shared.live}
    orphans = [span.name for span in shared.live if span.ids.parent_id not in {None, *sent}]
    assert orphans == []
    statuses = [
        span.attributes["spark.connect.operation.status"] for span in shared.live if span.kind.prefix == "operation"
    ]
    assert {status: statuses.count(status) for status in statuses} == {"succeeded": 8, "failed": 2}


def test_the_end_of_a_server_adds_its_own_span_only(shared: Shared) -> None:
    """Each session has linked to it before."""
    (application,) = (span for span in shared.spans if span not in shared.live)
    assert application.kind.prefix == "application"
    links = {link[:2] for span in shared.live for link in span.links}
    assert links == {(application.ids.trace_id, application.ids.span_id)}


def test_observe_says_where_the_session_of_a_client_is(shared: Shared) -> None:
    """By the id that the spans of the server have."""
    for found, user in zip(shared.observed, ("ana", "cyd"), strict=True):
        (session,) = (
            span.attributes["session.id"]
            for span in shared.live
            if span.kind.prefix == "session" and span.attributes["user.id"] == user
        )
        (line,) = found["program"]["not_observed"]
        assert line.startswith(f"Spark Connect: session {session} of {user} is in the event log of the server sc://127")
        assert found["applications"] == []


def test_the_local_mode_of_a_program_is_observed(tmp_path: Path) -> None:
    """By the name of its file, with what it asked for; nothing of it is elsewhere."""
    found = observe(tmp_path, sys.executable, JOB, "sales", "local[2]", str(tmp_path), SPARK_TESTING="1")
    assert found["program"]["not_observed"] == []
    (application,) = found["applications"]
    assert (application["name"], application["outcome"]) == ("connect", "succeeded")
    kinds = [each["kind"] for each in application["connect"]["operations"]]
    assert kinds == ["write_operation", "aggregate", "create_dataframe_view", "sql", "sql", "sql"]
    assert "hunter2" not in json.dumps(found)


@pytest.mark.before_release
def test_a_declarative_pipeline_is_observed(tmp_path: Path) -> None:
    """By its own name; its SQL by the flows, one of which has a line, and by the datasets."""
    project = record_connect.project(tmp_path)
    command = str(Path(sys.executable).with_name("spark-pipelines"))
    found = observe(project, command, "run", SPARK_TESTING="1", PYSPARK_PYTHON=sys.executable)
    (application,) = found["applications"]
    assert (application["name"], application["outcome"]) == ("shop", "succeeded")
    assert {each["name"] for each in application["queries"]} == {
        "define_flow orders at transformations/orders.py:4, writes default.orders",
        "start_run, writes default.totals",
    }
