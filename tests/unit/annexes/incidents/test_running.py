from collections.abc import Callable
from dataclasses import replace

import pytest

from spark_app.annexes.incidents import running
from spark_app.annexes.incidents.incident import Incident
from spark_app.annexes.incidents.planting import FOLDER, Planting
from spark_app.errors import MachineError
from tests.unit.annexes.incidents.conftest import Containers, Stage

PROJECT = "spark-app"
REMOVED = f"rm -rf {FOLDER}/skew"


def test_the_seconds_of_each_sign_count_from_the_planting(stage: Stage, incident: Incident) -> None:
    """Not from the preparation, and each sign has its own; queries are about this planting."""
    stage.after = {"ALERTS": 40, "spark_tasks_failed_total": 20, "spark_findings_total": 30}
    outcome = stage.run(replace(incident, prepare=lambda planting: planting.clock.pause(1)))
    assert outcome.seen == {"alert": 30.0, "panel": 10.0, "cause": 20.0}
    assert outcome.is_complete
    asked = {parameters["query"] for parameters, _ in stage.prometheus.asked["/api/v1/query"]} - {"up == 0"}
    assert all("incident_skew_1" in query for query in asked)


def test_what_is_seen_late_is_missing_and_noted(stage: Stage, incident: Incident) -> None:
    """With its seconds: a busy machine is only late, and a sign that never comes has none."""
    stage.after = {"ALERTS": 130, "spark_tasks_failed_total": 10, "spark_findings_total": 10}
    outcome = stage.run(incident)
    assert (outcome.seen["alert"], outcome.missing, outcome.is_complete) == (130.0, ("alert",), False)


def test_what_is_not_seen_is_missing(stage: Stage, incident: Incident) -> None:
    """With what the program said last; what was seen stays."""
    stage.after = {"ALERTS": 10, "spark_tasks_failed_total": 10}
    stage.containers.answers = {"tail": "Killed"}
    outcome = stage.run(incident)
    assert (outcome.missing, outcome.error, outcome.is_complete) == (("cause",), "Killed", False)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError])
def test_an_incident_is_undone_whatever_ends_it(stage: Stage, incident: Incident, kind: type[BaseException]) -> None:
    """Ctrl-C and a bug end it as it was to end: its container runs, its programs have ended, its folder is gone."""

    def fail(planting: Planting) -> None:
        planting.docker.kill("kafka")
        raise kind

    with pytest.raises(kind):
        stage.run(replace(incident, plant=fail))
    assert_undone(stage.containers)


def assert_undone(containers: Containers) -> None:
    """The last commands undo what was planted."""
    started = containers.commands.index("start kafka")
    killed = containers.commands.index("kill kafka")
    [gone] = [number for number, command in enumerate(containers.commands) if REMOVED in command]
    assert killed < started < gone


def test_a_failed_preparation_is_the_error_of_the_incident(stage: Stage, incident: Incident) -> None:
    """It is undone, and the next incident can be planted."""

    def fail(_: Planting) -> None:
        raise MachineError("no worker has an executor")

    outcome = stage.run(replace(incident, prepare=fail))
    assert outcome.error == "no worker has an executor"
    assert "start kafka" in stage.containers.commands


def test_what_cannot_be_undone_is_said_and_tried_again(stage: Stage, incident: Incident) -> None:
    """The folder stays, by which the next run knows of it."""
    stage.after = {"": 10}
    stage.containers.failing = ("start kafka",)
    outcome = stage.run(incident)
    assert "no such container" in outcome.error
    assert not any(REMOVED in command for command in stage.containers.commands)


def test_an_incident_waits_until_its_alert_no_longer_fires(stage: Stage, incident: Incident) -> None:
    """Else the alert of an earlier one would count; one that stays is an error, and nothing is planted."""
    stage.after = {"ALERTS": 0}
    outcome = stage.run(incident)
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
