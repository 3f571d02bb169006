"""Grafana starts with data sources and dashboards, and metrics, traces and logs link to each other."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from tests.contract.dashboards import BOARDS, FOLDER, ROOT, provisioned
from tests.contract.metrics import SCRAPED, catalogued, names_in
from tests.contract.violations import violations

FOLDERS: Final = ROOT / "grafana" / "provisioning"
SOURCES: Final = {
    "prometheus": "$STACK_SCHEME://prometheus:9090",
    "jaeger": "$STACK_SCHEME://jaeger:16686",
    "elasticsearch": "$STACK_SCHEME://elasticsearch:9200",
    "alertmanager": "$STACK_SCHEME://alertmanager:9093",
}


def read(path: Path) -> Any:
    """The content of a YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def grafana() -> dict[str, Any]:
    """The Grafana service of the compose file."""
    service: dict[str, Any] = read(ROOT / "compose" / "observability.yml")["services"]["grafana"]
    return service


def settings(uid: str) -> dict[str, Any]:
    """The `jsonData` of one data source."""
    data: dict[str, Any] = provisioned()[uid]["jsonData"]
    return data


def test_data_sources_are_those_of_the_stack() -> None:
    """A uid is the type, each address is a service of the stack, and Grafana drops sources that left the file."""
    file = read(FOLDERS / "datasources" / "datasources.yml")
    assert (file["apiVersion"], file["prune"]) == (1, True)
    assert {source["uid"]: source["url"] for source in file["datasources"]} == SOURCES
    services = read(ROOT / "compose" / "observability.yml")["services"]
    assert services["grafana"]["environment"]["STACK_SCHEME"] == "http"
    for source in file["datasources"]:
        assert source["type"] == source["uid"]
        assert source["uid"] in services
        assert source["editable"] is False
    assert [source["uid"] for source in file["datasources"] if source.get("isDefault")] == ["prometheus"]


def test_elasticsearch_source_matches_its_index_template() -> None:
    """No password; index and fields are those of the template."""
    assert "basicAuth" not in provisioned()["elasticsearch"]
    template = read(ROOT / "config" / "elasticsearch" / "logs-spark.json")
    source = settings("elasticsearch")
    assert source["index"].startswith(template["index_patterns"][0].rstrip("*"))
    properties = template["template"]["mappings"]["properties"]
    assert {source["timeField"], source["logLevelField"]} <= set(properties)
    assert source["logMessageField"].split(".")[0] in properties


def test_exemplar_links_to_its_trace() -> None:
    """By the label that OTLP exemplars have."""
    (link,) = settings("prometheus")["exemplarTraceIdDestinations"]
    assert (link["name"], link["datasourceUid"]) == ("trace_id", "jaeger")


def test_interval_is_that_of_scrapes() -> None:
    """Grafana computes `$__rate_interval` from it, which must span two samples."""
    scraped = read(ROOT / "prometheus" / "prometheus.yml")["global"]["scrape_interval"]
    spans = read(ROOT / "config" / "otel" / "collector.yaml")["connectors"]["span_metrics"]["metrics_flush_interval"]
    assert settings("prometheus")["timeInterval"] == scraped == spans


def test_prometheus_knows_the_modifier_of_the_dashboards() -> None:
    """Without its feature flag, every expression with `anchored` is an error."""
    command = read(ROOT / "compose" / "observability.yml")["services"]["prometheus"]["command"]
    (features,) = [option.partition("=")[2].split(",") for option in command if option.startswith("--enable-feature=")]
    assert "promql-extended-range-selectors" in features


def test_trace_links_to_its_logs_and_metrics() -> None:
    """A literal dollar is doubled, because Grafana expands variables of its environment."""
    logs = settings("jaeger")["tracesToLogsV2"]
    assert logs["datasourceUid"] == "elasticsearch"
    assert (logs["customQuery"], logs["query"]) == (True, 'trace_id:"$${__trace.traceId}"')
    metrics = settings("jaeger")["tracesToMetrics"]
    assert metrics["datasourceUid"] == "prometheus"
    for query in metrics["queries"]:
        expression = query["query"].replace("$$__tags", 'service_name="spark-app"')
        assert names_in(expression) <= catalogued() | SCRAPED


def test_log_line_links_to_its_trace() -> None:
    """By the field that the exporter writes."""
    (link,) = settings("elasticsearch")["dataLinks"]
    assert (link["field"], link["datasourceUid"], link["url"]) == ("trace_id", "jaeger", "$${__value.raw}")


def test_dashboards_are_mounted_where_grafana_reads_them() -> None:
    """Outside its provisioning folder, in folders as on disk, and read-only."""
    (provider,) = read(FOLDERS / "dashboards" / "dashboards.yml")["providers"]
    mounts = dict(volume.split(":")[:2] for volume in grafana()["volumes"])
    assert mounts["../grafana/dashboards"] == provider["options"]["path"]
    assert not provider["options"]["path"].startswith(mounts["../grafana/provisioning"])
    assert provider["options"]["foldersFromFilesStructure"] is True
    assert not provider.keys() & {"folder", "folderUid"}
    assert (provider["disableDeletion"], provider["allowUiUpdates"]) == (True, False)
    home = grafana()["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert FOLDER / Path(home).relative_to(provider["options"]["path"]) in [board.path for board in BOARDS]


def test_grafana_starts_offline() -> None:
    """It installs no plug-ins and checks for no updates."""
    environment = grafana()["environment"]
    assert [name for name in environment if "INSTALL" in name and name != "GF_PLUGINS_PREINSTALL_DISABLED"] == []
    assert environment["GF_PLUGINS_PREINSTALL_DISABLED"] == "true"
    assert environment["GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES"] == "false"


def test_provisioning_holds_only_what_grafana_reads() -> None:
    """Grafana does not start if it cannot read a file there."""

    def rule(path: Path) -> Iterator[str]:
        if path.is_dir() and path.name not in {"datasources", "dashboards"}:
            yield "Grafana knows no such folder"
        if path.is_file() and (path.suffix != ".yml" or read(path)["apiVersion"] != 1):
            yield "is no provisioning file of version 1"

    assert violations(rule, FOLDERS.rglob("*")) == []
