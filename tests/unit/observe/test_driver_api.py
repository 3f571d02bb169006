"""The driver is asked where its log says that it is, in bounded time, and nothing follows where it does not answer."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from spark_app.eventlog.model.application import Application
from spark_app.observe.driver_api import DriverApi
from spark_app.report.sections.now import RunningStage
from tests.receivers import dead_port
from tests.unit.eventlog import log

ANSWER: dict[str, Any] = {
    "stageId": 4, "attemptId": 1, "numTasks": 8, "numActiveTasks": 2, "numCompleteTasks": 3, "status": "ACTIVE",
    "name": "sum at job.py:7", "submissionTime": "1970-01-01T00:00:02.500GMT", "tasks": {},
}  # fmt: skip
"""A stage as Spark 4.2 answers."""


class Driver(BaseHTTPRequestHandler):
    """Knows one application."""

    def do_GET(self) -> None:
        """Answers with its stages, to whoever asks for its application."""
        is_known = self.path == "/api/v1/applications/app-1/stages?status=active"
        content = json.dumps([ANSWER] if is_known else "no such app").encode()
        self.send_response(200 if is_known else 404)
        self.send_header("Content-Length", f"{len(content)}")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a driver."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Driver) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def application(*ended: log.Line, name: str = "app-1", **settings: str) -> Application:
    """An application whose driver is on this host."""
    properties = {"spark.driver.host": "127.0.0.1"} | {f"spark.ui.{key}": value for key, value in settings.items()}
    return log.application([log.environment(properties), log.started() | {"App ID": name}, *ended])


def test_the_stages_that_run_are_those_of_the_driver(port: int) -> None:
    """It is asked on the first ports of its UI, of which another program may have taken some."""
    expected = [RunningStage(4, 1, "sum at job.py:7", 2500, done=3, running=2, total=8)]
    for first in (port, port - 3):
        assert DriverApi().stages(application(port=f"{first}")) == expected


def test_another_application_has_no_stages_here(port: int) -> None:
    """Its driver, or the UI of this one, is elsewhere, is off or is gone."""
    assert DriverApi().stages(application(name="app-2", port=f"{port}")) == []
    assert DriverApi().stages(application(port=f"{port}", enabled="false")) == []
    assert DriverApi().stages(application(port="0")) == []
    assert DriverApi().stages(application(log.ended(9000), port=f"{port}")) == []
    assert DriverApi().stages(log.application([log.started()])) == []


def test_a_driver_that_does_not_answer_is_left_alone_for_a_while(port: int) -> None:
    """The page is made by its log meanwhile."""
    driver = DriverApi()
    assert driver.stages(application(port=f"{dead_port()}")) == []
    assert driver.stages(application(port=f"{port}")) == []
