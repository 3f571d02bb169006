"""Compose, the collector and promtool accept the files of the stack."""

import itertools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from spark_app.settings import load_settings
from tests.recipes.test_recipes import apply, copy_tree

ROOT: Final = Path(__file__).resolve().parents[2]
RULES: Final = ROOT / "prometheus"
COMPOSE: Final = ("docker-compose.yml", "docker-compose.observability.yml", "docker-compose.full.yml")
OBJECT_STORE: Final = "docker-compose.s3.yml"
TWO_MASTERS: Final = "docker-compose.ha.yml"
TLS: Final = "docker-compose.tls.yml"
TWO_MASTERS_TLS: Final = "docker-compose.ha-tls.yml"
OBJECT_STORE_TLS: Final = "docker-compose.s3-tls.yml"
AMAZON: Final = "https://s3.eu-west-1.amazonaws.com"
COMBINATIONS: Final = [[file] for file in (*COMPOSE, OBJECT_STORE, TWO_MASTERS, TLS, TWO_MASTERS_TLS, OBJECT_STORE_TLS)]
COMBINATIONS.append(list(COMPOSE[:2]))
OPEN: Final = {"BIND_ADDRESS": "0.0.0.0"}
SECRETS: Final = {"GRAFANA_ADMIN_PASSWORD": "only-for-this-test", "JUPYTER_TOKEN": "only-for-this-test"}


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command in the project's folder."""
    environment = {key: value for key, value in os.environ.items() if key not in {*OPEN, *SECRETS}}
    return subprocess.run(command, cwd=ROOT, env=environment | variables, capture_output=True, text=True, check=False)


def configured(files: list[str], **variables: str) -> dict[str, Any]:
    """The project that Compose merges from some files."""
    options = itertools.chain.from_iterable(("-f", file) for file in files)
    done = run("docker", "compose", *options, "config", "--format", "json", **variables)
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr.lower()
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def addresses(project: dict[str, Any]) -> dict[str, set[str]]:
    """The addresses on which each service has a port open."""
    return {
        name: {port.get("host_ip", "everywhere") for port in service["ports"]}
        for name, service in project["services"].items()
        if service.get("ports")
    }


def test_compose_accepts_every_combination_of_files() -> None:
    """Each file works by itself, and nothing is open beyond the loopback."""
    for files in COMBINATIONS:
        project = configured(files)
        assert project["services"]
        assert set().union(*addresses(project).values()) == {"127.0.0.1"}, files


def test_the_full_stack_is_the_sum_of_both() -> None:
    """With Kafka, Jupyter, the bridge and reports, its metrics layer, and the address of the collector."""
    full = configured(["docker-compose.full.yml"])["services"]
    both = configured(list(COMPOSE[:2]))["services"]
    assert set(full) - set(both) == {"kafka", "kafka-topics", "jupyter", "spark-bridge", "reports"}
    assert set(both) - set(full) == {"runbook"}, "which is a page of reports there"
    assert full["otel-collector"]["command"][-1] == "--config=/etc/otelcol/collector-kafka.yaml"
    for name in ("spark-master", "spark-worker-1", "spark-worker-2", "jupyter", "spark-bridge"):
        assert full[name]["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://otel-collector:4318"
    assert full["spark-master"]["environment"]["SPARK_APP_CLUSTER"] == "/app/config/spark/cluster.conf"


def test_both_masters_are_the_same_to_whoever_runs_something_there() -> None:
    """They differ in their names, their ports and their scratch space; all programs know both."""
    services = configured([TWO_MASTERS])["services"]
    masters = [services[name] for name in ("spark-master", "spark-master-2")]
    environments = [dict(each["environment"]) for each in masters]
    assert environments[0].pop("SPARK_SUBMIT_OPTS")
    assert not environments[1].pop("SPARK_SUBMIT_OPTS"), "the port of a driver's page is published in the first only"
    assert environments[0] | {"DEMO_RATE": None} == environments[1] | {"DEMO_RATE": None}
    assert all(len(each["depends_on"]) == len({"zookeeper-1", "zookeeper-2", "zookeeper-3"}) for each in masters)
    targets = [{volume["target"] for volume in each["volumes"]} for each in masters]
    assert targets[0] - targets[1] == {"/var/lib/spark-master"}
    both = "spark://spark-master:7077,spark-master-2:7077"
    for name in ("spark-worker-1", "spark-worker-2", "spark-master", "spark-master-2", "jupyter"):
        assert services[name]["environment"]["SPARK_MASTERS"] == both
        assert services[name]["environment"]["SPARK_OVERLAY"] == "/app/config/spark/two-masters.conf"
    properties = (ROOT / "config" / "spark" / "two-masters.conf").read_text(encoding="utf-8")
    assert re.search(rf"^spark\.master +{re.escape(both)}$", properties, re.MULTILINE)


def test_two_masters_with_tls_are_both() -> None:
    """Both masters are the same, and nobody is asked without TLS but by a healthcheck of its own."""
    plain, secure, both = (configured([file])["services"] for file in (TWO_MASTERS, TLS, TWO_MASTERS_TLS))
    assert set(both) == set(plain) | set(secure)
    own = {"spark-master", "spark-master-2", "spark-worker-1", "spark-worker-2", "jupyter", "prometheus"}
    zookeepers = {name for name in both if name.startswith("zookeeper-")}
    assert {name for name in secure if both[name] != secure[name]} == own - {"spark-master-2"}
    for name in zookeepers | own - {"prometheus"}:
        assert "/tls" in {volume["target"] for volume in both[name]["volumes"]}
        assert both[name]["depends_on"]["certificates"]["condition"] == "service_completed_successfully"
    environments = [dict(both[name]["environment"]) for name in ("spark-master", "spark-master-2")]
    environments[0].pop("SPARK_SUBMIT_OPTS"), environments[1].pop("SPARK_SUBMIT_OPTS")
    assert environments[0] | {"DEMO_RATE": None} == environments[1] | {"DEMO_RATE": None}
    addresses = [service.get("environment", {}) | {"": service.get("command")} for service in both.values()]
    assert re.findall(r"http://[^'\" ]+|:2181", str(addresses)) == []


def test_the_stack_with_s3_and_tls_asks_it_by_https() -> None:
    """Whoever has its address trusts its certificate; nobody is asked without TLS, but by a healthcheck of its own."""
    plain, secure, both = (configured([file])["services"] for file in (OBJECT_STORE, TLS, OBJECT_STORE_TLS))
    assert set(both) == set(plain) | set(secure)
    asking = {name for name, service in both.items() if "S3_ENDPOINT" in (service.get("environment") or {})}
    assert asking == {"spark-master", "spark-worker-1", "spark-worker-2", "jupyter"}
    assert {name for name in secure if both[name] != secure[name]} == {*asking, "certificates"}
    for name in asking:
        assert both[name]["environment"]["S3_ENDPOINT"] == "https://s3:7070"
        assert "/etc/ssl/certs/java" in {volume["target"] for volume in both[name]["volumes"]}
    addresses = [service.get("environment", {}) | {"": service.get("command")} for service in both.values()]
    assert re.findall(r"http://[^'\" ]+", str(addresses)) == []


def test_the_stack_with_s3_is_the_full_one_with_a_server() -> None:
    """Drivers, executors and notebooks have its address and keys, and their tables there; nothing else differs."""
    full = configured(["docker-compose.full.yml"])["services"]
    stack = configured([OBJECT_STORE])["services"]
    assert set(stack) - set(full) == {"s3"}
    changed = {name for name in full if stack[name] != full[name]}
    assert changed == {"spark-master", "spark-worker-1", "spark-worker-2", "jupyter"}
    for name in changed:
        added = {
            key: value for key, value in stack[name]["environment"].items() if key not in full[name]["environment"]
        }
        assert added["S3_ENDPOINT"] == "http://s3:7070"
        assert added["AWS_SECRET_ACCESS_KEY"] == stack["s3"]["environment"]["ROOT_SECRET_ACCESS_KEY"]
        assert added["SPARK_APP_WAREHOUSE"] == "s3a://spark-app/warehouse"
    amazon = configured([OBJECT_STORE], S3_ENDPOINT=AMAZON)["services"]
    for variable in ("S3_ENDPOINT", "AWS_ENDPOINT_URL"):
        assert amazon["spark-master"]["environment"][variable] == AMAZON


def test_one_variable_gives_the_stack_a_project_of_ones_own(tmp_path: Path) -> None:
    """Commands in the master start in its folder, as the image's project does without it."""
    own = configured(["docker-compose.full.yml"], PROJECT_FOLDER=str(tmp_path))["services"]
    shipped = configured(["docker-compose.full.yml"])["services"]
    for name in ("spark-master", "spark-worker-1", "spark-worker-2"):
        [mount] = [each for each in own[name]["volumes"] if each["target"] == "/project"]
        assert (mount["source"], mount["read_only"], mount["type"]) == (str(tmp_path), True, "bind")
    assert own["spark-master"]["working_dir"] == "/project"
    assert not shipped["spark-master"].get("working_dir")


def test_every_command_reads_env_local(tmp_path: Path) -> None:
    """Plain Compose has the variables of the start script and replaces no container; the file is optional."""
    shutil.copytree(ROOT / "compose", tmp_path / "compose", symlinks=True)
    for file in (*COMPOSE, ".env"):
        shutil.copy(ROOT / file, tmp_path)
    (tmp_path / "config").mkdir()
    shutil.copy(ROOT / "config" / "app.yml", tmp_path / "config")
    for expected in ({"9092"}, {"9192"}):
        command = ["docker", "compose", "-f", "docker-compose.full.yml", "config", "--format", "json"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        services = json.loads(done.stdout)["services"]
        kafka = services["kafka"]
        assert {port["published"] for port in kafka["ports"]} == expected
        assert kafka["environment"]["KAFKA_ADVERTISED_LISTENERS"].rpartition(":")[2] in expected
        published = {port["published"] for service in services.values() for port in service.get("ports", [])}
        looked_at = {str(url).rpartition(":")[2] for _, url in load_settings(tmp_path / "config").backends}
        assert looked_at <= published, "the doctor looks at the ports that Compose publishes"
        assert expected < looked_at
        ports = re.findall(r"\$\{(\w+_PORT):-(\d+)\}", (ROOT / "config" / "app.yml").read_text(encoding="utf-8"))
        moved = "".join(f"{name}={int(port) + 100}\n" for name, port in ports)
        (tmp_path / ".env.local").write_text(moved, encoding="utf-8")


def test_links_lead_to_ports_that_were_moved() -> None:
    """Those of the master's pages to the web UI of a driver, and those of reports to traces and dashboards."""
    moved = {"SPARK_DRIVER_PORT": "4041", "JAEGER_PORT": "26686", "GRAFANA_PORT": "3001"}
    services = configured(["docker-compose.full.yml"], **moved)["services"]
    driver = [port for port in services["spark-master"]["ports"] if port["published"] == "4041"]
    assert [port["target"] for port in driver] == [4041]
    assert services["spark-master"]["environment"]["SPARK_SUBMIT_OPTS"] == "-Dspark.ui.port=4041"
    for name in ("spark-master", "jupyter"):
        assert {services[name]["environment"][port] for port in ("JAEGER_PORT", "GRAFANA_PORT")} == {"26686", "3001"}


def test_open_address_is_refused_without_passwords() -> None:
    """With passwords, it opens only the services that ask for one."""
    refused = run("docker", "compose", "-f", "docker-compose.full.yml", "config", **OPEN)
    assert refused.returncode != 0
    assert "in .env.local" in refused.stderr
    open_to_all = {
        name
        for name, hosts in addresses(configured(["docker-compose.full.yml"], **OPEN, **SECRETS)).items()
        if hosts != {"127.0.0.1"}
    }
    assert open_to_all == {"grafana", "jupyter"}


def test_collector_accepts_its_configuration(tmp_path: Path) -> None:
    """`validate` finds no unknown key, no missing component and no wrong value, with and without the layer."""
    options: list[str] = []
    for layer in ("collector.yaml", "collector-kafka.yaml"):
        text = (ROOT / "config" / "otel" / layer).read_text(encoding="utf-8")
        file = tmp_path / layer
        file.write_text(text.replace("/var/lib/otelcol", str(tmp_path)), encoding="utf-8")
        options.append(f"--config={file}")
        done = run("otelcol-contrib", "validate", *options)
        assert done.returncode == 0, done.stderr
        assert "deprecated" not in done.stderr


def test_promtool_accepts_the_rules() -> None:
    """The configuration is valid, no rule has a lint, and each alert fires and is silent as its cases say."""
    for command in (
        ["check", "config", "prometheus/prometheus.yml"],
        ["check", "rules", "--lint=all", "--lint-fatal", *map(str, sorted(RULES.glob("rules/*.yml")))],
        ["test", "rules", *map(str, sorted(RULES.glob("tests/*.yml")))],
    ):
        done = run("promtool", *command)
        assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_recipe_of_an_alert(tmp_path: Path) -> None:
    """The rule of docs/recipes.md is valid, and its cases fire and are silent as they say."""
    tree = copy_tree(tmp_path)
    apply("An alert", tree)
    for command in (["check", "rules", "--lint=all", "--lint-fatal"], ["test", "rules"]):
        folder = "rules" if command[0] == "check" else "tests"
        done = run("promtool", *command, str(tree / "prometheus" / folder / "quality.yml"))
        assert done.returncode == 0, done.stdout + done.stderr
