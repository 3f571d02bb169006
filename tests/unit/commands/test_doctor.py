import json

import pytest

from spark_app import __main__ as program
from spark_app.commands import doctor
from spark_app.doctor.checks import Check
from spark_app.errors import MachineError
from spark_app.settings import config_folder
from spark_app.telemetry import probe
from tests.receivers import dead_port
from tests.unit.conftest import Printed, Screen

WELL = [Check("collector", "ok", "server available"), Check("kibana", "left out", "null in the configuration")]
UNWELL = [
    *WELL,
    Check("jaeger", "down", "it says\x1b[31m no", "docker logs jaeger"),
    Check("trace", "lost", "not in jaeger after 30 s", "docker logs otel-collector, docker logs jaeger"),
    Check("log", "lost", "not in elasticsearch after 30 s", "docker logs elasticsearch"),
]
VERDICT = "the stack is unhealthy; down: jaeger; lost on the way: trace, log"


def test_a_healthy_stack_is_a_table(printed: Printed) -> None:
    """A row per component, without hints; what is left out is no failure."""
    doctor.listing(printed.terminal, WELL)
    assert printed.out.getvalue().splitlines() == [
        "component  state     finding",
        "collector  ok        server available",
        "kibana     left out  null in the configuration",
    ]


def test_unhealthy_components_are_followed_by_hints(printed: Printed) -> None:
    """The table is complete, and control characters in answers are escaped."""
    doctor.listing(printed.terminal, UNWELL)
    assert printed.out.getvalue().splitlines()[3:] == [
        r"jaeger     down      it says\x1b[31m no",
        "trace      lost      not in jaeger after 30 s",
        "log        lost      not in elasticsearch after 30 s",
        "",
        "component  look at",
        "jaeger     docker logs jaeger",
        "trace      docker logs otel-collector, docker logs jaeger",
        "log        docker logs elasticsearch",
    ]


def test_all_unhealthy_components_are_one_error() -> None:
    """Exit code 2, every component by name, and every check in the JSON document."""
    with pytest.raises(MachineError) as raised:
        doctor.require_healthy(UNWELL)
    error = raised.value
    assert (str(error), error.exit_code, error.document) == (VERDICT, 2, {"checks": UNWELL})


def test_a_healthy_stack_is_no_error() -> None:
    """Components that are left out are no error, either."""
    doctor.require_healthy(WELL)


def test_on_a_terminal_states_have_colours(screen: Screen) -> None:
    """`down` is red."""
    from spark_app.commands.terminal import Terminal

    doctor.listing(Terminal(out=screen.stream, err=screen.stream), UNWELL)
    assert "\x1b[31mdown" in screen.text()


@pytest.mark.parametrize("arguments", [["doctor"], ["doctor", "--json"]], ids=" ".join)
def test_without_a_stack_doctor_exits_with_2(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every component is down and every part lost; one line on standard error, no traceback."""
    monkeypatch.setattr(probe, "SEND_SECONDS", 0.5)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    for name in (
        "OTLP",
        "COLLECTOR",
        "JAEGER",
        "PROMETHEUS",
        "ALERTMANAGER",
        "ELASTICSEARCH",
        "GRAFANA",
        "SPARK_MASTER",
        "SPARK_HISTORY",
        "JUPYTER",
        "REPORTS",
    ):
        monkeypatch.setenv(f"SPARK_APP_BACKENDS__{name}", f"http://127.0.0.1:{dead_port()}")
    monkeypatch.setenv("SPARK_APP_BACKENDS__KAFKA", f"127.0.0.1:{dead_port()}")
    monkeypatch.setenv("SPARK_APP_BACKENDS__KIBANA", "null")
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", "no-such-stack")
    assert program.run([*arguments, "--config", str(config_folder())]) == 2
    out, err = capsys.readouterr()
    assert err == (
        "error: the stack is unhealthy; down: collector, jaeger, prometheus, targets, elasticsearch, alertmanager, "
        "grafana, spark_master, spark_history, jupyter, kafka, bridge, reports; lost on the way: trace, metric, log\n"
    )
    if "--json" in arguments:
        document = json.loads(out)
        assert (document["exit_code"], document["error"]["type"]) == (2, "MachineError")
        assert {check["component"]: check["state"] for check in document["checks"]}["kibana"] == "left out"
    else:
        assert "\nkibana         left out  backends.kibana is null in the configuration\n" in out
