"""Rules and dashboards of the chart are those of the stack; Prometheus and its operator accept what the chart makes."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.kubernetes.cluster import ROOT, rendered, run

RULES: Final = ROOT / "prometheus"
OPERATOR: Final = "github.com/prometheus-operator/prometheus-operator@v0.87.1"
"""The release of the Prometheus operator whose resource definitions a cluster gets that has none."""
KINDS: Final = ("servicemonitors", "podmonitors", "prometheusrules", "prometheuses")
LINKS: Final = {"runbook": "docs/runbook.md", "grafana": "http://localhost:3000", "jaeger": "http://localhost:16686"}
"""The addresses of the stack's own tests of rules."""
MONITORED: Final = (
    *("monitoring.serviceMonitor.enabled=true", "monitoring.podMonitor.enabled=true", "podLogs.enabled=true"),
    *("monitoring.rules.enabled=true", "monitoring.dashboards.enabled=true", "monitoring.labels.release=prometheus"),
)
LEFT_OUT: Final = {
    *("SparkMasterDown", "SparkWorkerDown", "SparkNoWorkers", "SparkApplicationWaiting", "SparkGarbageCollection"),
    *("TelemetryBackendDown", "TelemetryAbsent", "StackServiceDown", "StackProbeDown", "Watchdog"),
}
"""Alerts about what only the stack has: its master, workers, probe, Jaeger, Alertmanager and Prometheus."""


def objects_with(*settings: str) -> list[dict[str, Any]]:
    """The objects of the chart with some values."""
    values = ("eventLogs.location=s3://bucket/events", *settings)
    text = rendered("seen", *(word for value in values for word in ("--set", value)))
    return [each for each in yaml.safe_load_all(text) if each]


def of_kind(objects: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    """The objects of a kind by their names."""
    return {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}


@pytest.fixture(scope="module")
def objects() -> list[dict[str, Any]]:
    """The objects of the chart with everything that concerns Prometheus, and the links of the stack's tests."""
    return objects_with(*MONITORED, *(f"monitoring.rules.links.{name}={address}" for name, address in LINKS.items()))


@pytest.fixture(scope="module")
def groups(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The groups of rules."""
    [rules] = of_kind(objects, "PrometheusRule").values()
    found: list[dict[str, Any]] = rules["spec"]["groups"]
    return found


def read(path: Path) -> Any:
    """The content of a YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def alerts(groups: list[dict[str, Any]]) -> set[str]:
    """The names of alerts."""
    return {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}


def test_rules_are_those_of_the_stack_but_for_services_that_only_it_has(groups: list[dict[str, Any]]) -> None:
    """Nothing else of them is another, besides the addresses of links."""
    stack = [group for file in sorted(RULES.glob("rules/*.yml")) for group in read(file)["groups"]]
    assert alerts(stack) - alerts(groups) == LEFT_OUT
    kept = {name: rules for group in stack if (rules := linked(group)) for name in [group["name"]]}
    assert {group["name"]: group["rules"] for group in groups} == kept


def linked(group: dict[str, Any]) -> list[dict[str, Any]]:
    """The rules of a group of the stack that the chart has, as it has them."""
    text = json.dumps([rule for rule in group["rules"] if rule.get("alert") not in LEFT_OUT])
    for name, address in LINKS.items():
        text = text.replace(f"{{{{ $externalLabels.{name} }}}}", address)
    rules: list[dict[str, Any]] = json.loads(text)
    return rules


def test_prometheus_accepts_the_rules(groups: list[dict[str, Any]], tmp_path: Path) -> None:
    """With the names that it fills in, which Helm leaves as they are; what alerts do is tested with the stack's own."""
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": groups}), encoding="utf-8")
    checked = run("promtool", "check", "rules", "--lint=all", "--lint-fatal", tmp_path / "rules.yml")
    assert f"{sum(len(group['rules']) for group in groups)} rules found" in checked
    assert "{{ $labels.spark_app_name }}" in (tmp_path / "rules.yml").read_text(encoding="utf-8")


def test_an_alert_has_no_link_without_an_address() -> None:
    """Nor has it half of one; what it says stays."""
    [rules] = of_kind(objects_with("monitoring.rules.enabled=true"), "PrometheusRule").values()
    annotations = [
        rule["annotations"] for group in rules["spec"]["groups"] for rule in group["rules"] if "alert" in rule
    ]
    assert {name for each in annotations for name in each} == {"summary", "description"}


def test_dashboards_are_those_of_the_stack_but_for_its_cluster(objects: list[dict[str, Any]]) -> None:
    """Each is a ConfigMap with the label that Grafana's sidecar looks for, and the JSON as it is."""
    stack = {file.stem: file for file in (ROOT / "grafana" / "dashboards").glob("*/*.json")}
    labelled = {
        name: each for name, each in of_kind(objects, "ConfigMap").items()
        if each["metadata"]["labels"].get("grafana_dashboard") == "1"
    }  # fmt: skip
    assert {f"seen-spark-app-{name}" for name in stack} - set(labelled) == {"seen-spark-app-spark-cluster"}
    for name, each in labelled.items():
        [(key, content)] = each["data"].items()
        assert key == f"{name.removeprefix('seen-spark-app-')}.json"
        assert json.loads(content) == json.loads(stack[Path(key).stem].read_text(encoding="utf-8"))


def test_a_monitor_selects_one_service_and_gives_it_the_job_that_rules_ask_about(objects: list[dict[str, Any]]) -> None:
    """By the labels of the service, and by the name of its port."""
    services = of_kind(objects, "Service")
    monitors = of_kind(objects, "ServiceMonitor")
    jobs = {}
    for name, monitor in monitors.items():
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        assert [each for each, service in services.items() if wanted <= service["metadata"]["labels"].items()] == [name]
        [endpoint] = monitor["spec"]["endpoints"]
        assert endpoint["port"] in {port["name"] for port in services[name]["spec"]["ports"]}
        [relabeling] = endpoint["relabelings"]
        jobs[name] = relabeling["replacement"]
    assert jobs == {"seen-spark-app-bridge": "spark-bridge", "seen-spark-app-collector": "otel-collector"}
    scraped = {
        job["job_name"]
        for file in ("prometheus.yml", "scrape/spark.yml")
        for job in read(RULES / file)["scrape_configs"]
    }
    assert set(jobs.values()) < scraped


@pytest.fixture
def definitions(tmp_path: Path) -> Iterator[None]:
    """The cluster knows the kinds of the Prometheus operator: its own, or those of a release until the test ends."""
    known = run("kubectl", "api-resources", "--api-group=monitoring.coreos.com", "--output=name")
    if all(f"{kind}.monitoring.coreos.com" in known for kind in KINDS):
        yield
        return
    assert shutil.which("go"), f"the cluster has no Prometheus operator, and Go is not there to get {OPERATOR}"
    folder = json.loads(run("go", "mod", "download", "-json", OPERATOR))["Dir"]
    files = [f"--filename={folder}/example/prometheus-operator-crd/monitoring.coreos.com_{kind}.yaml" for kind in KINDS]
    run("kubectl", "create", *files)
    try:
        run("kubectl", "wait", "--for=condition=Established", "--timeout=60s", *files)
        yield
    finally:
        run("kubectl", "delete", *files)


@pytest.mark.usefixtures("definitions")
def test_the_operator_of_prometheus_accepts_the_objects(objects: list[dict[str, Any]], tmp_path: Path) -> None:
    """And the settings of Prometheus that docs/kubernetes.md asks for; unknown and wrong fields are errors."""
    kinds = {"ServiceMonitor", "PodMonitor", "PrometheusRule", "ConfigMap"}
    made = [each for each in objects if each["kind"] in kinds]
    assert {each["kind"] for each in made} == kinds
    (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all([*made, documented()]), encoding="utf-8")
    run("kubectl", "apply", "--dry-run=server", "--validate=strict", "--filename", tmp_path / "objects.yaml")


def documented() -> dict[str, Any]:
    """The Prometheus of docs/kubernetes.md."""
    text = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    [block] = [block.partition("```")[0] for block in text.split("```yaml\n")[1:] if "kind: Prometheus\n" in block]
    found: dict[str, Any] = yaml.safe_load(block)
    return found
