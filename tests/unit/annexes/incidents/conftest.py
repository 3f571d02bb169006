import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from spark_app.annexes.incidents import running
from spark_app.annexes.incidents.docker import Docker
from spark_app.annexes.incidents.incident import OF_APPLICATION, Alert, Incident, Panel, finding
from spark_app.annexes.incidents.planting import Clock, Planting
from spark_app.doctor.backends import Prometheus
from tests.answering import Answering, answering

STEP = 10.0


@dataclass
class Containers:
    """A docker that runs nothing: it notes its commands, and answers what a test says.

    Attributes:
        answers: What a command prints that has a text in it.
        failing: Texts of commands that fail.
        commands: All commands so far.
    """

    answers: dict[str, str] = field(default_factory=dict)
    failing: tuple[str, ...] = ()
    commands: list[str] = field(default_factory=list)

    def run(self, arguments: Sequence[str], _: bytes) -> "subprocess.CompletedProcess[bytes]":
        """Answers a command."""
        command = " ".join(arguments)
        self.commands.append(command)
        out = next((answer for text, answer in self.answers.items() if text in command), "")
        code = 1 if any(text in command for text in self.failing) else 0
        return subprocess.CompletedProcess(arguments, code, out.encode(), b"no such container")


class Ticking(Clock):
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.seconds = 0.0
        super().__init__(now=lambda: self.seconds, pause=self._pass)

    def _pass(self, _: float) -> None:
        self.seconds += STEP


@dataclass
class Stage:
    """What the tests play on."""

    prometheus: Answering
    containers: Containers
    clock: Ticking
    planting: Planting
    after: dict[str, float] = field(default_factory=dict)
    """When a query with a text in it has a result, in seconds after the start of the clock."""

    def answer(self, parameters: dict[str, str], _: Any) -> Any:
        """The result of a query, as Prometheus gives it."""
        query = parameters["query"]
        there = any(text in query and self.clock.seconds >= since for text, since in self.after.items())
        result = [{"metric": {"instance": "collector:8888"}, "value": [0, "1"]}] if there else []
        return {"data": {"result": result}}

    def run(self, incident: Incident) -> running.Outcome:
        """Runs an incident."""
        return running.run(running.Watch(incident, self.planting, lambda *_: None, lambda *_: None), "spark-app")


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A stack in which nothing is wrong."""
    with answering({}) as prometheus:
        containers, clock = Containers(), Ticking()
        docker = Docker(containers.run)
        planting = Planting("skew", "incident_skew_1", docker, Prometheus(prometheus.url), prometheus.url, clock)
        made = Stage(prometheus, containers, clock, planting)
        prometheus.answers["/api/v1/query"] = made.answer
        yield made


INCIDENT = Incident(
    does="stops a container",
    ends="it is started",
    touches=("kafka",),
    alert=Alert("SparkPartitionSkew", OF_APPLICATION),
    panel=Panel("spark-performance", "Skew", f"spark_tasks_failed_total{{{OF_APPLICATION}}}"),
    cause=finding("partition_skew"),
    plant=lambda planting: planting.docker.kill("kafka"),
    undo=lambda planting: planting.docker.start("kafka"),
)


@pytest.fixture
def incident() -> Incident:
    """Stops a container, and starts it."""
    return INCIDENT
