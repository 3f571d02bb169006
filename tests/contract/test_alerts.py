"""Every alert says what is wrong and what to do, reads only series that exist, and is tested both ways."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.contract.metrics import THIRD_PARTY, catalogued, names_in

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "prometheus"
SEVERITIES: Final = {"critical", "warning", "info"}
RUNBOOK: Final = ROOT / "docs" / "runbook.md"


def read(path: Path) -> Any:
    """The content of a YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def rules(concern: str) -> list[dict[str, Any]]:
    """The rules of one file, recordings and alerts."""
    return [rule for group in read(FOLDER / "rules" / f"{concern}.yml")["groups"] for rule in group["rules"]]


CONCERNS: Final = sorted(path.stem for path in (FOLDER / "rules").glob("*.yml"))
RULES: Final = [(concern, rule) for concern in CONCERNS for rule in rules(concern)]
ALERTS: Final = [(concern, rule) for concern, rule in RULES if "alert" in rule]
RECORDED: Final = {rule["record"] for _, rule in RULES if "record" in rule}
PROMETHEUS: Final = read(FOLDER / "prometheus.yml")
LINKS: Final = PROMETHEUS["global"]["external_labels"]

of_each_alert: Final = pytest.mark.parametrize(("concern", "rule"), ALERTS, ids=[rule["alert"] for _, rule in ALERTS])


def cases(concern: str, alert: str) -> list[bool]:
    """Whether the alert fires, for each time that its tests look at it."""
    looks = [look for test in read(FOLDER / "tests" / f"{concern}.yml")["tests"] for look in test["alert_rule_test"]]
    return [bool(look.get("exp_alerts")) for look in looks if look["alertname"] == alert]


def anchors() -> set[str]:
    """The anchors of the runbook's headings."""
    return {heading.lower() for heading in re.findall(r"^## (\w+)$", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE)}


def test_an_alert_is_defined_once() -> None:
    """Two alerts of one name could not be told apart by who gets them."""
    alerts = [rule["alert"] for _, rule in ALERTS]
    assert len(alerts) == len(set(alerts))


@of_each_alert
def test_an_alert_says_how_bad_it_is_and_what_is_wrong(concern: str, rule: dict[str, Any]) -> None:
    """It has a severity, a summary, a description and links, and nothing else that nobody reads."""
    assert rule["labels"]["severity"] in SEVERITIES
    assert {"summary", "description", "runbook_url", "dashboard_url"} <= set(rule["annotations"])
    assert set(rule["annotations"]) <= {"summary", "description", "runbook_url", "dashboard_url", "trace_url"}


@of_each_alert
def test_an_alert_has_its_heading_in_the_runbook(concern: str, rule: dict[str, Any]) -> None:
    """The link leads to the heading of its name."""
    anchor = rule["alert"].lower()
    assert rule["annotations"]["runbook_url"] == f"{{{{ $externalLabels.runbook }}}}#{anchor}"
    assert anchor in anchors()


def test_the_runbook_has_no_heading_of_an_alert_that_is_gone() -> None:
    """Each heading is that of an alert."""
    assert anchors() == {rule["alert"].lower() for _, rule in ALERTS}


@of_each_alert
def test_an_alert_about_a_pipeline_leads_to_its_runs(concern: str, rule: dict[str, Any]) -> None:
    """What is about a pipeline has a link to the traces of its runs."""
    is_about_runs = "pipeline_name" in rule["annotations"]["summary"] + rule["annotations"]["description"]
    assert ("trace_url" in rule["annotations"]) == is_about_runs


@of_each_alert
def test_the_dashboard_of_an_alert_exists(concern: str, rule: dict[str, Any]) -> None:
    """The link leads to a dashboard that is provisioned."""
    found = re.search(r"/d/([\w-]+)", rule["annotations"]["dashboard_url"])
    assert found is not None
    assert [path.stem for path in (ROOT / "grafana" / "dashboards").glob(f"*/{found[1]}.json")] == [found[1]]


@of_each_alert
def test_the_links_of_an_alert_start_where_prometheus_is_told(concern: str, rule: dict[str, Any]) -> None:
    """Each base of a link is one of prometheus.yml, and is taken off before the alert is sent."""
    used = set(re.findall(r"\$externalLabels\.(\w+)", " ".join(rule["annotations"].values())))
    assert used <= set(LINKS)
    (dropped,) = PROMETHEUS["alerting"]["alert_relabel_configs"]
    assert (dropped["action"], set(dropped["regex"].split("|"))) == ("labeldrop", set(LINKS))


@of_each_alert
def test_an_alert_is_tested_both_ways(concern: str, rule: dict[str, Any]) -> None:
    """Its tests have a case that fires, and one that must not."""
    assert set(cases(concern, rule["alert"])) == {True, False}


@pytest.mark.parametrize(("concern", "rule"), RULES, ids=[rule.get("alert") or rule["record"] for _, rule in RULES])
def test_a_rule_reads_only_series_that_exist(concern: str, rule: dict[str, Any]) -> None:
    """Each name is of the catalogue, of a program that we know, or recorded by a rule."""
    assert names_in(rule["expr"]) - catalogued() - THIRD_PARTY - RECORDED == set()


def test_prometheus_is_given_the_variables_of_its_configuration() -> None:
    """A variable that the container lacks would make a link without a port."""
    used = set(re.findall(r"\$\{(\w+)\}", " ".join(LINKS.values())))
    service = read(ROOT / "docker-compose.observability.yml")["services"]["prometheus"]
    assert used <= set(service["environment"])


def test_every_concern_has_tests() -> None:
    """The files of rules and of their tests are the same."""
    assert sorted(path.stem for path in (FOLDER / "tests").glob("*.yml")) == CONCERNS


def relabelled(job: str, name: str) -> dict[str, str] | None:
    """What the relabelling of a scrape job makes of a metric's name; None if it is dropped."""
    configs = {each["job_name"]: each for each in read(FOLDER / "scrape" / "spark.yml")["scrape_configs"]}
    labels = {"__name__": name}
    for step in configs[job]["metric_relabel_configs"]:
        found = re.fullmatch(step["regex"], labels["__name__"])
        if step.get("action") == "keep":
            if not found:
                return None
        elif found:
            labels[step["target_label"]] = found.expand(re.sub(r"\$\{?(\d)\}?", r"\\\1", step["replacement"]))
    return labels


@pytest.mark.parametrize(
    ("job", "name", "expected"),
    [
        ("spark-worker", "jvm_G1_Young_Generation_time", {"__name__": "jvm_gc_time", "gc": "G1_Young_Generation"}),
        ("spark-master", "jvm_MarkSweepCompact_count", {"__name__": "jvm_gc_count", "gc": "MarkSweepCompact"}),
        ("spark-master", "jvm_heap_used", {"__name__": "jvm_heap_used"}),
        (
            "spark-applications",
            "application_spark_app_etl_1795242000123_cores",
            {"__name__": "application_cores", "application": "spark_app_etl", "started_ms": "1795242000123"},
        ),
    ],
)
def test_spark_s_metrics_get_names_that_a_query_can_know(job: str, name: str, expected: dict[str, str]) -> None:
    """Which garbage collector, which application and when it started are labels; each gauge is kept once."""
    named = {**expected, "__name__": f"metrics_{expected['__name__']}_Number"}
    assert relabelled(job, f"metrics_{name}_Number") == named
    assert relabelled(job, f"metrics_{name}_Value") is None
