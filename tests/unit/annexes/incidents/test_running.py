import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from spark_app.annexes.incidents import running
from spark_app.annexes.incidents.docker import Docker
from spark_app.annexes.incidents.incident import OF_APPLICATION, Alert, Incident, Panel, finding
from spark_app.annexes.incidents.planting import Clock, Planting
from spark_app.doctor.backends import Prometheus
from spark_app.errors import MachineError
from tests.answering import Answering, answering

PROJECT = "spark-app"
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
        return running.run(running.Watch(incident, self.planting, lambda *_: None, lambda *_: None))


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


def test_the_seconds_of_each_sign_count_from_the_planting(stage: Stage) -> None:
    """Not from the preparation, and each sign has its own; queries are about this planting."""
    incident = replace(INCIDENT, prepare=lambda planting: planting.clock.pause(1))
    stage.after = {"ALERTS": 40, "spark_tasks_failed_total": 20, "spark_findings_total": 30}
    outcome = stage.run(incident)
    assert outcome.seen == {"alert": 30.0, "panel": 10.0, "cause": 20.0}
    assert outcome.is_complete
    assert all("incident_skew_1" in parameters["query"] for parameters, _ in stage.prometheus.asked["/api/v1/query"])


def test_what_is_not_seen_in_time_is_missing(stage: Stage) -> None:
    """With what the program said last; what was seen stays."""
    stage.after = {"ALERTS": 10, "spark_tasks_failed_total": 10}
    stage.containers.answers = {"tail": "Killed"}
    outcome = stage.run(INCIDENT)
    assert (outcome.missing, outcome.error, outcome.is_complete) == (("cause",), "Killed", False)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError])
def test_an_incident_is_undone_whatever_ends_it(stage: Stage, kind: type[BaseException]) -> None:
    """Ctrl-C and a bug end it as it was to end: its container runs, its programs have ended, its folder is gone."""

    def fail(planting: Planting) -> None:
        planting.docker.kill("kafka")
        raise kind

    with pytest.raises(kind):
        stage.run(replace(INCIDENT, plant=fail))
    assert_undone(stage.containers)


def assert_undone(containers: Containers) -> None:
    """The last commands undo what was planted."""
    started = containers.commands.index("start kafka")
    killed = containers.commands.index("kill kafka")
    [gone] = [number for number, command in enumerate(containers.commands) if "rm -rf /tmp/incidents/skew" in command]
    assert killed < started < gone


def test_a_failed_preparation_is_the_error_of_the_incident(stage: Stage) -> None:
    """It is undone, and the next incident can be planted."""

    def fail(_: Planting) -> None:
        raise MachineError("no worker has an executor")

    outcome = stage.run(replace(INCIDENT, prepare=fail))
    assert outcome.error == "no worker has an executor"
    assert "start kafka" in stage.containers.commands


def test_what_cannot_be_undone_is_said_and_tried_again(stage: Stage) -> None:
    """The folder stays, by which the next run knows of it."""
    stage.after = {"": 10}
    stage.containers.failing = ("start kafka",)
    outcome = stage.run(INCIDENT)
    assert "no such container" in outcome.error
    assert not any("rm -rf /tmp/incidents/skew" in command for command in stage.containers.commands)


def test_an_incident_waits_until_its_alert_no_longer_fires(stage: Stage) -> None:
    """Else the alert of an earlier one would count; one that stays is an error, and nothing is planted."""
    stage.after = {"ALERTS": 0}
    outcome = stage.run(INCIDENT)
    assert "alert" in outcome.error
    assert "kill kafka" not in stage.containers.commands


def test_what_a_killed_run_left_is_known_by_its_folder(stage: Stage) -> None:
    """With the name of its planting, under which its alert fires; a folder without it is none."""
    stage.containers.answers = {"cat": "skewed_join incident_skewed_join_101500\nbroken \n"}
    assert running.left_behind(stage.planting.docker) == {"skewed_join": "incident_skewed_join_101500"}


def test_without_the_stack_nothing_is_planted(stage: Stage) -> None:
    """One line says so, and what to do."""
    with pytest.raises(MachineError, match=r"does not run.*start-full-stack\.sh"):
        running.require_stack(stage.planting.docker, PROJECT)
    stage.containers.answers = {"ps": "spark-master\trunning Up 2 minutes (healthy)\n"}
    running.require_stack(stage.planting.docker, PROJECT)


def unhealthy_container(stage: Stage) -> None:
    """A container that is not healthy."""
    stage.containers.answers = {"ps": "collector\trunning Up 2 minutes (unhealthy)\nowner\texited Exited (0)\n"}


def target_down(stage: Stage) -> None:
    """A target that Prometheus does not reach."""
    stage.after = {"up == 0": 0}


@pytest.mark.parametrize("damage", [unhealthy_container, target_down])
def test_in_an_unhealthy_stack_nothing_is_planted(stage: Stage, damage: Callable[[Stage], None]) -> None:
    """The line names what is unhealthy; services that have done their work are not."""
    damage(stage)
    with pytest.raises(MachineError, match="collector") as failure:
        running.require_healthy(stage.planting, PROJECT)
    assert "owner" not in str(failure.value)


def test_a_healthy_stack_is_accepted(stage: Stage) -> None:
    """At once."""
    stage.containers.answers = {"ps": "collector\trunning Up 2 minutes (healthy)\nowner\texited Exited (0)\n"}
    running.require_healthy(stage.planting, PROJECT)
    assert stage.clock.seconds == 0
