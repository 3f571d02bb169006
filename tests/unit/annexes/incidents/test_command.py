import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from spark_app.__main__ import run
from spark_app.annexes.incidents.catalogue import incidents
from spark_app.annexes.incidents.command import Session, documents, require_complete, run_all, table
from spark_app.annexes.incidents.docker import Docker
from spark_app.annexes.incidents.incident import Incident
from spark_app.annexes.incidents.planting import Planting
from spark_app.annexes.incidents.running import Outcome
from spark_app.commands.terminal import Terminal
from spark_app.errors import MachineError
from spark_app.local_files import try_lock_folder
from spark_app.settings import load_settings
from tests.unit.annexes.incidents.conftest import Stage

SEEN = {"alert": 73.4, "panel": 24.0, "cause": 65.0}


def test_without_a_name_all_incidents_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """As a table, and as JSON; nothing is planted."""
    assert run(["incident"]) == 0
    shown = capsys.readouterr().out
    assert [name for name in incidents() if f"{name} " not in shown] == []
    assert run(["incident", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in document["incidents"]] == list(incidents())


@pytest.mark.parametrize("arguments", [["unknown"], ["skewed_join", "--all"]])
def test_what_cannot_be_planted_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """With the names that there are, before any container is looked at."""
    assert run(["incident", *arguments]) == 2
    assert "skewed_join" in capsys.readouterr().err


def outcome(**seen: float | None) -> Outcome:
    """What was seen of an incident."""
    return Outcome("skewed_join", "incident_skewed_join_1", SEEN | seen, 120, ("spark-master",), "partition_skew")


def test_the_table_has_the_seconds_of_each_sign() -> None:
    """And what was not seen."""
    out = io.StringIO()
    table(Terminal(out=out), [outcome(panel=None)])
    assert "SparkPartitionSkew 73 s" in out.getvalue()
    assert "partition_skew 65 s" in out.getvalue()
    assert f"{incidents()['skewed_join'].panel.title} not seen" in out.getvalue()


def test_a_sign_that_was_not_seen_is_an_error_that_names_it() -> None:
    """With the document of all incidents; if all was seen there is none."""
    require_complete([outcome()])
    with pytest.raises(MachineError, match="skewed_join: panel not seen within 120 s") as failure:
        require_complete([outcome(), outcome(panel=None)])
    assert failure.value.document == {"incidents": documents([outcome(), outcome(panel=None)])}


@pytest.fixture
def session(stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Session:
    """The command on a stack in which nothing is wrong."""
    for name in ("PROMETHEUS", "SPARK_MASTER", "JAEGER"):
        monkeypatch.setenv(f"SPARK_APP_BACKENDS__{name}", stage.prometheus.url)
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    stage.containers.answers = {"ps": "spark-master\trunning Up 2 minutes (healthy)\n"}
    docker = Docker(stage.containers.run)
    made = Session(Terminal(out=io.StringIO(), err=io.StringIO()), load_settings(None), docker, stage.clock)
    made.config = tmp_path  # which no run on this machine holds
    return made


def test_what_an_earlier_run_left_is_undone_before_anything_is_planted(
    session: Session, stage: Stage, incident: Incident
) -> None:
    """By its own way: a broker that was killed is started."""
    stage.containers.answers["name"] = "broker_down incident_broker_down_101500\n"
    stage.after = {"up == 0": 0}  # so that nothing is planted
    with pytest.raises(MachineError, match="unhealthy"):
        run_all(session, {"skew": incident})
    assert "start kafka" in stage.containers.commands
    assert any("rm -rf /dev/shm/incidents/broker_down" in command for command in stage.containers.commands)


def test_without_the_stack_one_line_says_so(session: Session, stage: Stage, incident: Incident) -> None:
    """Nothing else is asked of Docker."""
    stage.containers.answers = {}
    with pytest.raises(MachineError, match="the stack does not run"):
        run_all(session, {"skew": incident})
    assert len(stage.containers.commands) == 1


def test_two_runs_do_not_undo_each_other(session: Session, incident: Incident, stage: Stage) -> None:
    """The second is refused while the first one runs."""
    with try_lock_folder(session.config) as is_free:
        assert is_free
        with pytest.raises(MachineError, match="another spark-app incident runs"):
            run_all(session, {"skew": incident})
    assert stage.containers.commands == []


def test_a_stack_that_stays_unhealthy_keeps_what_was_seen_before(
    session: Session, incident: Incident, stage: Stage
) -> None:
    """With --all: the next incidents are not planted, and the table has the first."""

    def spoil(_: Planting) -> None:
        stage.after = {"up == 0": 0, "ALERTS": 0, "spark_": 0}

    outcomes = run_all(session, {"skew": replace(incident, plant=spoil), "other": incident})
    assert [each.is_complete for each in outcomes] == [True, False]
    assert "unhealthy" in outcomes[1].error
    assert "kill kafka" not in stage.containers.commands
