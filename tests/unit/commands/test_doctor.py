import json

import pytest

from app import __main__ as program
from app.commands import doctor
from app.commands.checks import Check
from app.errors import MachineError
from app.settings import config_folder
from tests.receivers import dead_port
from tests.unit.commands.conftest import Printed, Screen

WELL = [Check("collector", "ok", "server available"), Check("kibana", "left out", "null in the configuration")]
UNWELL = [
    *WELL,
    Check("jaeger", "down", "it says\x1b[31m no", "docker logs jaeger"),
    Check("trace", "lost", "not in jaeger after 30 s", "docker logs otel-collector, docker logs jaeger"),
    Check("log", "lost", "not in elasticsearch after 30 s", "docker logs elasticsearch"),
]
VERDICT = "the stack is not well; down: jaeger; lost on the way: trace, log"


def test_a_stack_that_is_well_is_a_table(printed: Printed) -> None:
    """A row per hop, and no word about what to look at; what is left out is no failure."""
    doctor.listing(printed.terminal, WELL)
    assert printed.out.getvalue().splitlines() == [
        "hop        state     found",
        "collector  ok        server available",
        "kibana     left out  null in the configuration",
    ]


def test_what_is_not_well_is_followed_by_what_to_look_at(printed: Printed) -> None:
    """The table is whole, and what programs say is shown and not obeyed by the terminal."""
    doctor.listing(printed.terminal, UNWELL)
    assert printed.out.getvalue().splitlines()[3:] == [
        r"jaeger     down      it says\x1b[31m no",
        "trace      lost      not in jaeger after 30 s",
        "log        lost      not in elasticsearch after 30 s",
        "",
        "hop     look at",
        "jaeger  docker logs jaeger",
        "trace   docker logs otel-collector, docker logs jaeger",
        "log     docker logs elasticsearch",
    ]


def test_what_is_not_well_is_one_error_about_all() -> None:
    """Exit code 2, every hop by its name, and for scripts every check."""
    with pytest.raises(MachineError) as raised:
        doctor.require_well(UNWELL)
    error = raised.value
    assert (str(error), error.exit_code, error.document) == (VERDICT, 2, {"checks": UNWELL})


def test_a_stack_that_is_well_is_no_error() -> None:
    """Nor is what is left out."""
    doctor.require_well(WELL)


def test_on_a_terminal_states_have_colours(screen: Screen) -> None:
    """What is down is red."""
    from app.commands.terminal import Terminal

    doctor.listing(Terminal(out=screen.stream, err=screen.stream), UNWELL)
    assert "\x1b[31mdown" in screen.text()


@pytest.mark.parametrize("arguments", [["doctor"], ["doctor", "--json"]], ids=" ".join)
def test_where_no_stack_runs_the_program_ends_with_2(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every hop is down, every part is lost, in seconds; one line on standard error, and no traceback."""
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
        "REPORTS",
    ):
        monkeypatch.setenv(f"SPARK_APP_BACKENDS__{name}", f"http://127.0.0.1:{dead_port()}")
    monkeypatch.setenv("SPARK_APP_BACKENDS__KAFKA", f"127.0.0.1:{dead_port()}")
    monkeypatch.setenv("SPARK_APP_BACKENDS__KIBANA", "null")
    assert program.run([*arguments, "--config", str(config_folder())]) == 2
    out, err = capsys.readouterr()
    assert err == (
        "error: the stack is not well; down: collector, jaeger, prometheus, targets, elasticsearch, alertmanager, "
        "grafana, spark_master, kafka, bridge, reports; lost on the way: trace, metric, log\n"
    )
    if "--json" in arguments:
        told = json.loads(out)
        assert (told["exit_code"], told["error"]["type"]) == (2, "MachineError")
        assert {check["hop"]: check["state"] for check in told["checks"]}["kibana"] == "left out"
    else:
        assert "\nkibana         left out  backends.kibana is null in the configuration\n" in out
