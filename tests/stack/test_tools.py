"""What the stack's own programs say of its files: Compose, the collector, promtool."""

import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
RULES: Final = ROOT / "prometheus"
COMPOSE: Final = ("docker-compose.yml", "docker-compose.observability.yml", "docker-compose.full.yml")
COMBINATIONS: Final = [[file] for file in COMPOSE] + [list(COMPOSE[:2])]
WIDE: Final = {"BIND_ADDRESS": "0.0.0.0"}
SECRETS: Final = {"GRAFANA_ADMIN_PASSWORD": "only-for-this-test", "JUPYTER_TOKEN": "only-for-this-test"}


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command in the project's folder."""
    environment = {key: value for key, value in os.environ.items() if key not in {*WIDE, *SECRETS}}
    return subprocess.run(command, cwd=ROOT, env=environment | variables, capture_output=True, text=True, check=False)


def configured(files: list[str], **variables: str) -> dict[str, Any]:
    """What Compose makes of some files."""
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


@pytest.mark.parametrize("files", COMBINATIONS, ids=" ".join)
def test_compose_takes_every_combination(files: list[str]) -> None:
    """Each file stands alone, and nothing is open beyond the loopback."""
    project = configured(files)
    assert project["services"]
    assert set().union(*addresses(project).values()) == {"127.0.0.1"}


def test_the_full_stack_is_the_sum_of_both() -> None:
    """With Kafka, Jupyter, the bridge and reports, its metrics layer, and the address of the collector."""
    full = configured(["docker-compose.full.yml"])["services"]
    both = configured(list(COMPOSE[:2]))["services"]
    assert set(full) - set(both) == {"kafka", "kafka-topics", "jupyter", "spark-bridge", "reports"}
    assert set(both) <= set(full)
    assert full["otel-collector"]["command"][-1] == "--config=/etc/otelcol/collector-kafka.yaml"
    for name in ("spark-master", "spark-worker-1", "spark-worker-2", "jupyter", "spark-bridge"):
        assert full[name]["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://otel-collector:4318"
    assert full["spark-master"]["environment"]["SPARK_APP_CLUSTER"] == "config/spark/cluster.conf"


def test_a_wider_address_is_refused_without_passwords() -> None:
    """And opens only what asks for one."""
    refused = run("docker", "compose", "-f", "docker-compose.full.yml", "config", **WIDE)
    assert refused.returncode != 0
    assert "in .env.local" in refused.stderr
    open_to_all = {
        name
        for name, hosts in addresses(configured(["docker-compose.full.yml"], **WIDE, **SECRETS)).items()
        if hosts != {"127.0.0.1"}
    }
    assert open_to_all == {"grafana", "jupyter"}


@pytest.mark.parametrize("layers", [["collector.yaml"], ["collector.yaml", "collector-kafka.yaml"]], ids=" ".join)
def test_the_collector_takes_its_layers(layers: list[str], tmp_path: Path) -> None:
    """`validate` finds no unknown key, no missing component and no wrong value."""
    files = []
    for layer in layers:
        text = (ROOT / "config" / "otel" / layer).read_text(encoding="utf-8")
        file = tmp_path / layer
        file.write_text(text.replace("/var/lib/otelcol", str(tmp_path)), encoding="utf-8")
        files.append(f"--config={file}")
    done = run("otelcol-contrib", "validate", *files)
    assert done.returncode == 0, done.stderr
    assert "deprecated" not in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["check", "config", "prometheus/prometheus.yml"],
        ["check", "rules", "--lint=all", "--lint-fatal", *map(str, sorted(RULES.glob("rules/*.yml")))],
        ["test", "rules", *map(str, sorted(RULES.glob("tests/*.yml")))],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_promtool_takes_the_rules(command: list[str]) -> None:
    """The configuration is whole, no rule has a fault, and each fires and keeps silent as its cases say."""
    done = run("promtool", *command)
    assert done.returncode == 0, done.stdout + done.stderr
