"""Grafana starts with its data sources and dashboards in place, and each hop leads to the next."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from grafana.queries import REMEMBERED
from tests.contract.dashboards import BOARDS, FOLDER, ROOT, provisioned
from tests.contract.metrics import THIRD_PARTY, catalogued, names_in

FOLDERS: Final = ROOT / "grafana" / "provisioning"
SOURCES: Final = {
    "prometheus": "http://prometheus:9090",
    "jaeger": "http://jaeger:16686",
    "elasticsearch": "http://elasticsearch:9200",
    "alertmanager": "http://alertmanager:9093",
}


def read(path: Path) -> Any:
    """The content of a YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def grafana() -> dict[str, Any]:
    """The service of that name."""
    service: dict[str, Any] = read(ROOT / "docker-compose.observability.yml")["services"]["grafana"]
    return service


def settings(uid: str) -> dict[str, Any]:
    """What one data source is told beyond its address."""
    told: dict[str, Any] = provisioned()[uid]["jsonData"]
    return told


def test_data_sources_are_those_of_the_stack() -> None:
    """A uid is the type; each address is a service of the stack; those that are gone from here are gone there."""
    file = read(FOLDERS / "datasources" / "datasources.yml")
    assert (file["apiVersion"], file["prune"]) == (1, True)
    assert {source["uid"]: source["url"] for source in file["datasources"]} == SOURCES
    services = read(ROOT / "docker-compose.observability.yml")["services"]
    for source in file["datasources"]:
        assert source["type"] == source["uid"]
        assert source["uid"] in services
        assert source["editable"] is False
    assert [source["uid"] for source in file["datasources"] if source.get("isDefault")] == ["prometheus"]


def test_elasticsearch_is_asked_as_it_is_set_up() -> None:
    """Without a password, for the fields and the data streams of its template."""
    assert "basicAuth" not in provisioned()["elasticsearch"]
    template = read(ROOT / "config" / "elasticsearch" / "logs-spark.json")
    asked = settings("elasticsearch")
    assert asked["index"].startswith(template["index_patterns"][0].rstrip("*"))
    properties = template["template"]["mappings"]["properties"]
    assert {asked["timeField"], asked["logLevelField"]} <= set(properties)
    assert asked["logMessageField"].split(".")[0] in properties


def test_an_exemplar_leads_to_its_trace() -> None:
    """By the label that OTLP gives it."""
    (link,) = settings("prometheus")["exemplarTraceIdDestinations"]
    assert (link["name"], link["datasourceUid"]) == ("trace_id", "jaeger")


def test_the_interval_is_that_of_the_scrapes() -> None:
    """`$__rate_interval` is made of it, and must span two samples."""
    scraped = read(ROOT / "prometheus" / "prometheus.yml")["global"]["scrape_interval"]
    spans = read(ROOT / "config" / "otel" / "collector.yaml")["connectors"]["span_metrics"]["metrics_flush_interval"]
    assert settings("prometheus")["timeInterval"] == scraped == spans


def test_dashboards_remember_a_series_for_as_long_as_the_collector() -> None:
    """Shorter, and a rare run would count from 0; longer, and one that begins anew would count too little."""
    processors = read(ROOT / "config" / "otel" / "collector.yaml")["processors"]
    assert processors["deltatocumulative"]["max_stale"] == REMEMBERED


def test_a_trace_leads_to_its_logs_and_metrics() -> None:
    """A literal dollar is doubled, or Grafana would put a variable of its environment there."""
    logs = settings("jaeger")["tracesToLogsV2"]
    assert logs["datasourceUid"] == "elasticsearch"
    assert (logs["customQuery"], logs["query"]) == (True, 'trace_id:"$${__trace.traceId}"')
    metrics = settings("jaeger")["tracesToMetrics"]
    assert metrics["datasourceUid"] == "prometheus"
    for query in metrics["queries"]:
        expression = query["query"].replace("$$__tags", 'service_name="spark-app"')
        assert names_in(expression) <= catalogued() | THIRD_PARTY


def test_a_log_line_leads_to_its_trace() -> None:
    """By the field that the exporter puts it in."""
    (link,) = settings("elasticsearch")["dataLinks"]
    assert (link["field"], link["datasourceUid"], link["url"]) == ("trace_id", "jaeger", "$${__value.raw}")


def test_dashboards_are_where_grafana_looks() -> None:
    """Outside its provisioning, in folders as on disk, and nobody changes them there."""
    (provider,) = read(FOLDERS / "dashboards" / "dashboards.yml")["providers"]
    mounts = dict(volume.split(":")[:2] for volume in grafana()["volumes"])
    assert mounts["./grafana/dashboards"] == provider["options"]["path"]
    assert not provider["options"]["path"].startswith(mounts["./grafana/provisioning"])
    assert provider["options"]["foldersFromFilesStructure"] is True
    assert not provider.keys() & {"folder", "folderUid"}
    assert (provider["disableDeletion"], provider["allowUiUpdates"]) == (True, False)
    home = grafana()["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert FOLDER / Path(home).relative_to(provider["options"]["path"]) in BOARDS


def test_nothing_is_fetched_when_grafana_starts() -> None:
    """It starts without the internet: no plug-in, no question for updates."""
    environment = grafana()["environment"]
    assert [name for name in environment if "INSTALL" in name and name != "GF_PLUGINS_PREINSTALL_DISABLED"] == []
    assert environment["GF_PLUGINS_PREINSTALL_DISABLED"] == "true"
    assert environment["GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES"] == "false"


@pytest.mark.parametrize("file", sorted(FOLDERS.rglob("*")), ids=lambda path: path.name)
def test_provisioning_holds_only_what_grafana_reads(file: Path) -> None:
    """A file that it cannot read keeps it from starting."""
    known = {"datasources", "dashboards"}
    assert (file.is_dir() and file.name in known) or (file.suffix == ".yml" and read(file)["apiVersion"] == 1)
