"""Every service of the compose files is safe by default, bounded, and checked by a program that its image has."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from tests.contract.violations import violations
from tests.pins import variables

ROOT: Final = Path(__file__).resolve().parents[2]
ENTRIES: Final = (
    "docker-compose.yml", "docker-compose.observability.yml", "docker-compose.full.yml", "docker-compose.ha.yml",
    "docker-compose.s3.yml", "docker-compose.tls.yml", "docker-compose.ha-tls.yml",
    "docker-compose.s3-tls.yml",
)  # fmt: skip
FILES: Final = ("compose/spark.yml", "compose/observability.yml", "compose/full.yml", "compose/s3.yml")
PROGRAMS: Final = {
    "SPARK_APP_IMAGE": {"bash", "curl", "grep"},
    "BUSYBOX_IMAGE": {"wget"},
    "PROMETHEUS_IMAGE": {"promtool", "wget"},
    "ALERTMANAGER_IMAGE": {"wget"},
    "JAEGER_IMAGE": {"wget"},
    "ELASTICSEARCH_IMAGE": {"curl", "grep"},
    "KIBANA_IMAGE": {"curl", "grep"},
    "GRAFANA_IMAGE": {"wget"},
    "KAFKA_IMAGE": {"nc"},
    "S3_IMAGE": {"wget"},
    "COLLECTOR_IMAGE": set[str](),
}
"""The programs that a healthcheck may run in each image; the collector's image has none."""
WITH_PASSWORD: Final = {"grafana", "jupyter"}
WITH_WRITABLE_ROOT: Final = {"elasticsearch", "kibana", "kafka", "alertmanager"}
"""Their start scripts write settings beside the program; Compose writes those of Alertmanager."""


class ComposeLoader(yaml.SafeLoader):
    """Reads what Compose marks with `!override`, too."""


def sequence(loader: ComposeLoader, node: yaml.SequenceNode) -> list[Any]:
    """A list that replaces another one."""
    return list(loader.construct_sequence(node, deep=True))


ComposeLoader.add_constructor("!override", sequence)


def parsed(file: str) -> dict[str, Any]:
    """The content of a compose file."""
    content: dict[str, Any] = yaml.load((ROOT / file).read_text(encoding="utf-8"), ComposeLoader)
    return content


def services() -> dict[str, dict[str, Any]]:
    """Every service of every file by its name."""
    return {name: service for file in FILES for name, service in parsed(file)["services"].items()} | ZOOKEEPERS


ZOOKEEPERS: Final = {
    name: service for name, service in parsed("compose/ha.yml")["services"].items() if name.startswith("zookeeper-")
}
SERVICES: Final = services()
TEXT: Final = "".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "compose").glob("*.yml")))
REFERENCE: Final = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
PROJECT: Final = "${PROJECT_BUILD:+-project}"
"""What the name of an image that a project is built into ends with."""
ONE_SHOTS: Final = {name for name, service in SERVICES.items() if service["restart"] == "no"}


def test_service_is_bounded_and_unprivileged() -> None:
    """Memory, processors, processes and logs have limits; no capability, no way to more rights, no root."""

    def rule(name: str) -> Iterator[str]:
        service = SERVICES[name]
        if set(service["deploy"]["resources"]["limits"]) != {"memory", "cpus", "pids"}:
            yield "its resources have no limit"
        if set(service["logging"]["options"]) != {"max-size", "max-file"}:
            yield "its logs have no limit"
        if service["cap_drop"] != ["ALL"] or set(service.get("cap_add", [])) - (
            {"CHOWN"} if name == "owner" else set()
        ):
            yield "it has capabilities"
        if service["security_opt"] != ["no-new-privileges:true"] or "privileged" in service:
            yield "it can gain privileges"
        if (service.get("user") == "0:0") != (name == "owner"):
            yield "only the one-shot that changes an owner is root"
        if bool(service.get("read_only")) == (name in WITH_WRITABLE_ROOT):
            yield "its root is writable" if name not in WITH_WRITABLE_ROOT else "its root is read-only"

    assert violations(rule, SERVICES) == []


def test_daemon_restarts_stops_in_peace_and_has_a_healthcheck() -> None:
    """The healthcheck runs a program that the image has; the collector's image has none, so another service asks it."""

    def rule(name: str) -> Iterator[str]:
        service = SERVICES[name]
        if service["restart"] != "unless-stopped" or "stop_grace_period" not in service:
            yield "it does not restart or has no time to stop"
        if name == "otel-collector":
            if "http://otel-collector:" not in SERVICES["otel-collector-ready"]["healthcheck"]["test"][-1]:
                yield "otel-collector-ready does not ask it"
            return
        check = service["healthcheck"]
        if missing := {"test", "interval", "timeout", "retries", "start_period", "start_interval"} - set(check):
            yield f"its healthcheck lacks {missing}"
        kind, *words = check["test"]
        programs = re.findall(r"(?:^|\| )(\w+)", words[0]) if kind == "CMD-SHELL" else words[:1]
        if unknown := set(programs) - PROGRAMS[image_variable(name)]:
            yield f"its image has no {unknown}"

    assert violations(rule, set(SERVICES) - ONE_SHOTS) == []


def image_variable(name: str) -> str:
    """The variable that names the image of a service."""
    return re.fullmatch(rf"\$\{{(\w+):\?\}}({re.escape(PROJECT)})?", SERVICES[name]["image"])[1]  # type: ignore[index]


def test_image_is_pinned_in_env() -> None:
    """`.env` has the name and the tag of every image."""

    def rule(name: str) -> Iterator[str]:
        pin = variables()[image_variable(name)]
        if not re.fullmatch(r"[\w./-]+:[\w.-]+", pin) or pin.endswith(":latest"):
            yield f"its image is {pin}"

    assert violations(rule, SERVICES) == []


def test_port_is_open_on_the_loopback_only() -> None:
    """BIND_ADDRESS opens services with a password to others, and nothing else."""

    def rule(name: str) -> list[str]:
        address = r"\$\{BIND_ADDRESS:-127\.0\.0\.1\}" if name in WITH_PASSWORD else r"127\.0\.0\.1"
        ports = SERVICES[name].get("ports", [])
        return [port for port in ports if not re.fullmatch(rf"{address}:(\$\{{\w+_PORT:-\d+\}}):(\d+|\1)", port)]

    assert violations(rule, SERVICES) == []


def test_open_address_needs_a_password() -> None:
    """The compose file itself refuses it otherwise."""
    needed = re.compile(r"\$\{(\w+):-\$\{BIND_ADDRESS:\+\$\{\1:\?BIND_ADDRESS needs \1 in \.env\.local\}\}")
    assert [name for name in sorted(WITH_PASSWORD) if not needed.search(str(SERVICES[name]["environment"]))] == []


def test_every_variable_is_set_and_used() -> None:
    """`.env` sets what a compose file needs, and a compose file uses each line of `.env`."""
    assert set(re.findall(r"\$\{(\w+):\?\}", TEXT)) == set(variables()) - {"COMPOSE_PROJECT_NAME"}


def test_variable_has_one_default_and_is_documented() -> None:
    """The same in each compose file, and in the table of docs/reference.md; `.env` would override `.env.local`."""
    rows = re.findall(r"^\| `([A-Z_0-9]+)` \|([^|]*)\|", REFERENCE, re.MULTILINE)
    documented = {name: default.strip() for name, default in rows}
    defaults = set(re.findall(r"\$\{(\w+):-([\w.]+)\}", TEXT))
    assert sorted(dict(defaults).items()) == sorted(defaults)
    assert {name: default for name, default in documented.items() if default} == dict(defaults)
    assert set(documented) == set(re.findall(r"\$\{(\w+)", TEXT)) - set(variables())


def test_env_local_is_read_by_every_command() -> None:
    """Compose reads `.env` beside the files that an entry includes: a link to the user's file, which need not exist."""
    assert (ROOT / "compose" / ".env").readlink() == Path("../.env.local")
    for entry in ENTRIES:
        content = parsed(entry)
        assert set(content) == {"name", "include"}, "variables in the entry itself would not see .env.local"
        paths = [include if isinstance(include, str) else include["path"][0] for include in content["include"]]
        assert {path.partition("/")[0] for path in paths} == {"compose"}


def test_changed_setting_replaces_the_container() -> None:
    """Compose compares the variables of a service, not its configs: a variable of a config is one of its service."""

    def rule(file: str) -> Iterator[str]:
        for name, config in parsed(file).get("configs", {}).items():
            read = set(re.findall(r"\$\{(\w+)", config["content"]))
            users = [each for each in SERVICES.values() if name in [one["source"] for one in each.get("configs", [])]]
            if not users:
                yield f"{name} has no user"
            for user in users:
                yield from read - set(user.get("environment", {}))

    assert violations(rule, FILES) == []


def test_another_service_waits_for_every_one_shot() -> None:
    """Otherwise `up --wait` takes its end for a failure."""

    def rule(name: str) -> Iterator[object]:
        waiting = [other["depends_on"][name] for other in SERVICES.values() if name in other.get("depends_on", {})]
        if {each["condition"] for each in waiting} != {"service_completed_successfully"}:
            yield waiting

    assert violations(rule, ONE_SHOTS) == []


def test_collector_and_jupyter_start_without_a_back_end() -> None:
    """`--without elasticsearch` or `--without kafka` leaves out no more than that service and its one-shots."""
    required = {
        name: {need for need, how in SERVICES[name]["depends_on"].items() if how.get("required", True)}
        for name in ("otel-collector", "otel-collector-ready", "jupyter")
    }
    assert required == {
        "otel-collector": {"owner"},
        "otel-collector-ready": {"otel-collector"},
        "jupyter": {"spark-master"},
    }


def test_daemons_start_without_a_configuration_folder() -> None:
    """A folder on the class path disables the class-data archive, which the image names for them."""
    daemons = {name for name in SERVICES if str(SERVICES[name].get("image")).startswith("${SPARK_APP_IMAGE")} - {
        "jupyter", "kafka-topics", "reports", "spark-bridge", *ZOOKEEPERS,
    }  # fmt: skip
    assert {SERVICES[name]["command"][0] for name in daemons} == {"run_daemon.sh"}
    script = (ROOT / "scripts" / "run_daemon.sh").read_text(encoding="utf-8")
    assert script.index("\nunset SPARK_CONF_DIR\n") < script.index("\nexec spark-class ")


def test_master_is_healthy_when_it_schedules() -> None:
    """The healthcheck finds the status of the master itself, not that of a worker, in any layout of the JSON."""
    pattern = re.search(r"grep -Eq '([^']+)'", SERVICES["spark-master"]["healthcheck"]["test"][1])
    assert pattern
    worker = '"workers" : [ { "id" : "worker-1", "state" : "ALIVE" } ], "aliveworkers" : 1, '
    assert [
        bool(re.search(pattern[1].replace("[[:space:]]", r"\s"), text))
        for text in (worker + '"status" : "ALIVE"', worker + '"status":"ALIVE"', worker + '"status" : "RECOVERING"')
    ] == [True, True, False]


def test_limits_of_memory_are_those_that_the_page_of_the_stack_states() -> None:
    """Of what keeps running in the full stack.

    Decision 6 says why the sum is above the 8 GB on which one application runs at a time.
    """
    kept = set(SERVICES) - ONE_SHOTS - {"s3", "runbook", *ZOOKEEPERS}
    limits = [SERVICES[name]["deploy"]["resources"]["limits"]["memory"] for name in kept]
    total = sum(int(limit.removesuffix("m")) * 2**20 for limit in limits) / 10**9
    page = " ".join((ROOT / "docs" / "stack.md").read_text(encoding="utf-8").split())
    assert f"add up to {total:.0f} GB" in page
    decision = ROOT / "docs" / "decisions" / "0006-one-image-and-what-the-stack-is-made-of.md"
    assert f"add up to {total:.1f} GB" in decision.read_text(encoding="utf-8")
    assert total < 1.75 * 8


def test_jaeger_stores_no_traces_of_its_own_queries() -> None:
    """They would be a service among the applications."""
    assert parsed("config/jaeger.yaml")["extensions"]["jaeger_query"]["enable_tracing"] is False


def test_the_bridge_sees_the_runs_where_the_driver_writes_them() -> None:
    """It completes those whose process was killed: the same volume at the same path, writable."""
    assert "spark-data:/data" in SERVICES["spark-master"]["volumes"]
    assert "spark-data:/data:nocopy" in SERVICES["spark-bridge"]["volumes"]
    assert "spark-events:/data/spark-events:ro" in SERVICES["spark-bridge"]["volumes"]


def test_tests_use_the_broker_of_the_stack() -> None:
    """Its jars are those of the version that `.env` pins."""
    version = variables()["KAFKA_IMAGE"].partition(":")[2]
    lists = ROOT / "tests" / "kafka_jars"
    assert f'name="kafka_2.13" rev="{version}"' in (lists / "jars.ivy.xml").read_text(encoding="utf-8")
    jars = re.findall(r"^[0-9a-f]{64}  (\S+)$", (lists / "jars.sha256").read_text(encoding="utf-8"), re.MULTILINE)
    assert {f"kafka_2.13-{version}.jar", f"kafka-clients-{version}.jar"} <= set(jars)


def test_file_begins_with_the_command_that_starts_it() -> None:
    """A reader sees at once how it is used."""
    heads = {file: (ROOT / file).read_text(encoding="utf-8").split("\nname:", maxsplit=1)[0] for file in ENTRIES}
    command = re.compile(r"^#   docker compose .*up -d", re.MULTILINE)
    assert [file for file, head in heads.items() if not command.search(head)] == []


def test_the_same_volume_and_network_mean_the_same_in_every_file() -> None:
    """So that including two files makes one project."""
    contents = [parsed(file) for file in FILES]
    assert {parsed(entry)["name"] for entry in ENTRIES} == {"spark-app"}
    assert all(options is None for content in contents for options in content["volumes"].values())
    assert {str(content.get("networks", {"default": {"name": "spark-app"}})) for content in contents} == {
        "{'default': {'name': 'spark-app'}}"
    }
