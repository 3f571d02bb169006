"""Every service of the compose files is safe by default, bounded, and watched by a program that its image has."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
FILES: Final = ("docker-compose.yml", "docker-compose.observability.yml", "docker-compose.full.yml")
PROGRAMS: Final = {
    "SPARK_APP_IMAGE": {"curl", "grep"},
    "BUSYBOX_IMAGE": {"wget"},
    "PROMETHEUS_IMAGE": {"promtool", "wget"},
    "ALERTMANAGER_IMAGE": {"wget"},
    "JAEGER_IMAGE": {"wget"},
    "ELASTICSEARCH_IMAGE": {"curl", "grep"},
    "KIBANA_IMAGE": {"curl", "grep"},
    "GRAFANA_IMAGE": {"wget"},
    "KAFKA_IMAGE": {"nc"},
    "COLLECTOR_IMAGE": set[str](),
}
"""What a healthcheck may start in each image; the collector's has nothing at all, so a probe looks at it."""
ASKS_FOR_A_PASSWORD: Final = {"grafana", "jupyter"}
WRITES_TO_ITS_ROOT: Final = {"elasticsearch", "kibana", "kafka", "alertmanager"}
"""Their start scripts write settings beside the program; Compose writes those of Alertmanager."""


def services() -> dict[str, dict[str, Any]]:
    """Every service of every file by its name."""
    found: dict[str, dict[str, Any]] = {}
    for file in FILES:
        found |= yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))["services"]
    return found


def variables() -> dict[str, str]:
    """What `.env` sets."""
    lines = (ROOT / ".env").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", maxsplit=1) for line in lines if line and not line.startswith("#"))


SERVICES: Final = services()
ONE_SHOTS: Final = {name for name, service in SERVICES.items() if service["restart"] == "no"}
DAEMONS: Final = sorted(set(SERVICES) - ONE_SHOTS)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_bounded_and_unprivileged(name: str) -> None:
    """Memory, processors, processes and logs have limits; no capability, no way to more rights, no root."""
    service = SERVICES[name]
    assert set(service["deploy"]["resources"]["limits"]) == {"memory", "cpus", "pids"}
    assert set(service["logging"]["options"]) == {"max-size", "max-file"}
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service
    assert (service.get("user") == "0:0") == (name == "owner"), "only the one-shot that changes an owner is root"
    assert set(service.get("cap_add", [])) <= ({"CHOWN"} if name == "owner" else set())
    assert bool(service.get("read_only")) != (name in WRITES_TO_ITS_ROOT)


@pytest.mark.parametrize("name", DAEMONS)
def test_a_daemon_comes_back_and_may_end_in_peace(name: str) -> None:
    """It is started again, has time to end, and its health is looked at by a program that is there."""
    service = SERVICES[name]
    assert service["restart"] == "unless-stopped"
    assert "stop_grace_period" in service
    if name == "otel-collector":
        assert "http://otel-collector:" in SERVICES["otel-collector-ready"]["healthcheck"]["test"][-1]
        return
    check = service["healthcheck"]
    assert {"test", "interval", "timeout", "retries", "start_period", "start_interval"} <= set(check)
    kind, *words = check["test"]
    started = re.findall(r"(?:^|\| )(\w+)", words[0]) if kind == "CMD-SHELL" else words[:1]
    assert set(started) <= PROGRAMS[image_variable(name)]


@pytest.mark.parametrize("name", SERVICES)
def test_an_image_is_pinned_by_tag_in_one_place(name: str) -> None:
    """`.env` has the name and tag of every image."""
    pinned = variables()[image_variable(name)]
    assert re.fullmatch(r"[\w./-]+:[\w.-]+", pinned)
    assert not pinned.endswith(":latest")


def image_variable(name: str) -> str:
    """The variable that names a service's image."""
    found = re.fullmatch(r"\$\{(\w+):\?\}", SERVICES[name]["image"])
    assert found
    return found[1]


@pytest.mark.parametrize("name", SERVICES)
def test_a_port_is_open_on_the_loopback_only(name: str) -> None:
    """BIND_ADDRESS widens what asks for a password, and nothing else."""
    address = r"\$\{BIND_ADDRESS:-127\.0\.0\.1\}" if name in ASKS_FOR_A_PASSWORD else r"127\.0\.0\.1"
    for port in SERVICES[name].get("ports", []):
        assert re.fullmatch(rf"{address}:\$\{{\w+_PORT:\?\}}:\d+", port)


@pytest.mark.parametrize("name", sorted(ASKS_FOR_A_PASSWORD))
def test_a_wider_address_needs_a_password(name: str) -> None:
    """The compose file itself refuses it otherwise."""
    assert re.search(
        r"\$\{(\w+):-\$\{BIND_ADDRESS:\+\$\{\1:\?BIND_ADDRESS needs \1 in \.env\.local\}\}",
        str(SERVICES[name]["environment"]),
    )


@pytest.mark.parametrize("file", FILES)
def test_every_variable_is_set(file: str) -> None:
    """What a compose file needs, `.env` has; what it has, a compose file, a script or the reader needs."""
    needed = set(re.findall(r"\$\{(\w+):\?\}", (ROOT / file).read_text(encoding="utf-8")))
    assert needed <= set(variables())


def test_a_changed_setting_replaces_the_container() -> None:
    """Compose sees a changed variable of a service, but not a changed configuration: what one reads, the other has."""
    for file in FILES:
        for name, config in yaml.safe_load((ROOT / file).read_text(encoding="utf-8")).get("configs", {}).items():
            read = set(re.findall(r"\$\{(\w+)", config["content"]))
            users = [one for one in SERVICES.values() if name in [used["source"] for used in one.get("configs", [])]]
            assert users
            assert all(read <= set(user.get("environment", {})) for user in users)


def test_no_variable_is_left_over() -> None:
    """Each line of `.env` is used by a compose file."""
    text = "".join((ROOT / file).read_text(encoding="utf-8") for file in FILES)
    assert {name for name in variables() if name not in text} <= {"COMPOSE_PROJECT_NAME"}


@pytest.mark.parametrize("name", sorted(ONE_SHOTS - {"kibana-setup"}))
def test_somebody_waits_for_a_one_shot(name: str) -> None:
    """Or else `up --wait` takes its good end for a failure."""
    waiting = [other for other in SERVICES.values() if name in other.get("depends_on", {})]
    assert [other["depends_on"][name]["condition"] for other in waiting]
    assert {other["depends_on"][name]["condition"] for other in waiting} == {"service_completed_successfully"}


def test_the_bridge_has_the_runs_where_the_driver_has_them() -> None:
    """It completes those whose process was killed: the same volume at the same place, to be written."""
    assert "spark-data:/data" in SERVICES["spark-master"]["volumes"]
    assert "spark-data:/data" in SERVICES["spark-bridge"]["volumes"]
    assert "spark-events:/data/spark-events:ro" in SERVICES["spark-bridge"]["volumes"]


@pytest.mark.parametrize("file", FILES)
def test_a_file_begins_with_the_command_that_starts_it(file: str) -> None:
    """A reader sees at once how it is used."""
    head = (ROOT / file).read_text(encoding="utf-8").split("\nname:", maxsplit=1)[0]
    assert re.search(r"^#   docker compose .*up -d", head, re.MULTILINE)


def test_the_same_volume_and_network_mean_the_same_in_every_file() -> None:
    """So that including two files makes one project."""
    parsed = [yaml.safe_load((ROOT / file).read_text(encoding="utf-8")) for file in FILES]
    assert {content["name"] for content in parsed} == {"spark-app"}
    assert all(options is None for content in parsed for options in content["volumes"].values())
    assert {str(content.get("networks", {"default": {"name": "spark-app"}})) for content in parsed} == {
        "{'default': {'name': 'spark-app'}}"
    }
