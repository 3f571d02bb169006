"""The chart says what the rest of the project says: versions, images, configuration, and the names of its values."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final

import yaml

from tests.pins import variables

ROOT: Final = Path(__file__).resolve().parents[2]
CHART: Final = ROOT / "charts" / "spark-app"
VALUES: Final[dict[str, Any]] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
TEMPLATES: Final = {file.name: file.read_text(encoding="utf-8") for file in CHART.rglob("templates/**/*.*")}
FREE: Final = {"annotations", "driver", "executor", "labels", "resources", "sparkConf"}
"""Values whose keys are those of Kubernetes, of its operator, or of Spark."""


def paths(values: dict[str, Any], prefix: str = "") -> set[str]:
    """The names of values, with those that contain them."""
    found = set()
    for name, value in values.items():
        found.add(prefix + name)
        if isinstance(value, dict) and name not in FREE:
            found |= paths(value, f"{prefix}{name}.")
    return found


def allowed(schema: dict[str, Any], prefix: str = "") -> set[str]:
    """The names of values that the schema allows; it refuses others."""
    properties = schema.get("properties", {})
    assert not properties or schema["additionalProperties"] is False, prefix
    found = {prefix + name for name in properties}
    return found.union(*(allowed(each, f"{prefix}{name}.") for name, each in properties.items()))


def test_the_schema_knows_each_value_and_refuses_others() -> None:
    """A name that is misspelt is an error of `helm install`, not a default that stays."""
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    assert allowed(schema) - {"global"} == paths(VALUES)


def test_each_value_is_used() -> None:
    """By a template, itself or as a part of what a template takes whole."""
    text = "\n".join(TEMPLATES.values())
    leaves = {path.rpartition(".")[2] for path in paths(VALUES) if not paths_below(path)}
    assert [leaf for leaf in sorted(leaves) if not re.search(rf"\.{leaf}\b", text)] == []


def paths_below(path: str) -> set[str]:
    """The names of values within another."""
    return {each for each in paths(VALUES) if each.startswith(f"{path}.")}


def test_versions_and_images_are_those_of_the_project() -> None:
    """One release has one version, and the collector is that of the stack."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert (chart["version"], chart["appVersion"]) == (version, version)
    assert f"{VALUES['image']['repository']}:{version}" == variables()["SPARK_APP_IMAGE"]
    assert VALUES["collector"]["image"] == variables()["COLLECTOR_IMAGE"]


def test_configuration_has_one_source() -> None:
    """What templates read are links to what the stack reads: files, and folders of files."""
    found = [re.findall(r'\.[Ff]iles\.(?:Get|Glob|Lines) "(files/[^/"]+)', text) for text in TEMPLATES.values()]
    links = {file.relative_to(CHART).as_posix() for file in (CHART / "files").iterdir()}
    assert {name for names in found for name in names} == links
    sources = [ROOT / "config", ROOT / "prometheus" / "rules", ROOT / "grafana" / "dashboards"]
    for link in links:
        assert (CHART / link).is_symlink()
        assert any((CHART / link).resolve().is_relative_to(source) for source in sources)


def test_the_collector_has_what_the_chart_changes() -> None:
    """Exporters, pipelines and operators, by the names that the chart has for them."""
    collector = yaml.safe_load((ROOT / "config" / "otel" / "collector.yaml").read_text(encoding="utf-8"))
    helpers = TEMPLATES["_helpers.tpl"]
    changed = re.findall(r'"exporter" "([^"]+)" "key" "([^"]+)" "pipelines" \(list ([^)]+)\)', helpers)
    assert {exporter for exporter, _, _ in changed} == set(collector["exporters"])
    for exporter, key, pipelines in changed:
        assert key in collector["exporters"][exporter]
        for pipeline in re.findall(r'"([^"]+)"', pipelines):
            assert collector["service"]["pipelines"][pipeline]["exporters"] == [exporter]
    assert collector["receivers"]["file_log"]["operators"][-1]["field"] == 'resource["service.name"]'


def test_pods_of_spark_and_of_the_chart_are_restricted_alike() -> None:
    """Both enforce what the pod security standard `restricted` asks for, and a read-only root."""
    pod = yaml.safe_load((ROOT / "config" / "spark" / "kubernetes-pod.yaml").read_text(encoding="utf-8"))["spec"]
    helpers = TEMPLATES["_helpers.tpl"].replace("{{ . }}", "185")
    defined = dict(re.findall(r'define "spark-app\.(\w+Security)" -}}\n(.*?){{- end', helpers, re.DOTALL))
    assert yaml.safe_load(defined["podSecurity"]) == pod["securityContext"]
    assert yaml.safe_load(defined["containerSecurity"]) == pod["containers"][0]["securityContext"]


def test_prometheus_of_a_cluster_is_set_as_that_of_the_stack() -> None:
    """What docs/kubernetes.md asks for is what the metrics, the exemplars and the queries of dashboards need."""
    text = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    [block] = [block.partition("```")[0] for block in text.split("```yaml\n")[1:] if "kind: Prometheus\n" in block]
    documented = yaml.safe_load(block)["spec"]
    own = yaml.safe_load((ROOT / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    assert documented["otlp"] == {
        "keepIdentifyingResourceAttributes": own["otlp"]["keep_identifying_resource_attributes"],
        "promoteResourceAttributes": own["otlp"]["promote_resource_attributes"],
    }
    assert documented["tsdb"]["outOfOrderTimeWindow"] == own["storage"]["tsdb"]["out_of_order_time_window"]
    assert documented["exemplars"]["maxSize"] == own["storage"]["exemplars"]["max_exemplars"]
    stack = yaml.safe_load((ROOT / "compose" / "observability.yml").read_text(encoding="utf-8"))
    options = stack["services"]["prometheus"]["command"]
    assert f"--enable-feature={','.join(documented['enableFeatures'])}" in options


def test_each_job_of_the_chart_is_one_of_the_stack() -> None:
    """Rules and dashboards ask about jobs by the names of the stack."""
    [defined] = re.findall(r'define "spark-app\.jobs" -}}\n(.*?){{- end', TEMPLATES["_helpers.tpl"], re.DOTALL)
    files = [ROOT / "prometheus" / name for name in ("prometheus.yml", "scrape/spark.yml")]
    jobs = {job["job_name"] for file in files for job in yaml.safe_load(file.read_text("utf-8"))["scrape_configs"]}
    assert set(yaml.safe_load(defined).values()) < jobs
