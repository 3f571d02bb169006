"""Every alert says what is wrong and what to do, reads only series that exist, and has tests for and against firing."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from spark_app.eventlog.labels import ATTRIBUTES
from spark_app.runs.model_card import SHIFTED
from tests.contract.metrics import SCRAPED, catalogued, names_in
from tests.contract.violations import violations

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "prometheus"
SEVERITIES: Final = {"critical", "warning", "info"}
RUNBOOK: Final = ROOT / "docs" / "runbook.md"


def read(path: Path) -> Any:
    """The content of a YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Rule:
    """A rule of Prometheus.

    Attributes:
        concern: The stem of its file.
        content: The rule.
    """

    concern: str
    content: dict[str, Any]

    def __str__(self) -> str:
        return self.content.get("alert") or str(self.content["record"])

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of an alert."""
        annotations: dict[str, str] = self.content["annotations"]
        return annotations


CONCERNS: Final = sorted(path.stem for path in (FOLDER / "rules").glob("*.yml"))
RULES: Final = [
    Rule(concern, rule)
    for concern in CONCERNS
    for group in read(FOLDER / "rules" / f"{concern}.yml")["groups"]
    for rule in group["rules"]
]
ALERTS: Final = [rule for rule in RULES if "alert" in rule.content]
RECORDED: Final = {str(rule) for rule in RULES if "record" in rule.content}
PROMETHEUS: Final = read(FOLDER / "prometheus.yml")
LINKS: Final = PROMETHEUS["global"]["external_labels"]


def test_alert_is_defined_once() -> None:
    """Who receives two alerts of one name cannot tell them apart."""
    names = [str(alert) for alert in ALERTS]
    assert len(names) == len(set(names))


def test_alert_has_severity_and_texts() -> None:
    """A severity, a summary, a description and links; nothing else is shown anywhere."""
    needed = {"summary", "description", "runbook_url", "dashboard_url"}

    def rule(alert: Rule) -> Iterator[object]:
        if alert.content["labels"]["severity"] not in SEVERITIES:
            yield alert.content["labels"]
        if not needed <= set(alert.annotations) <= needed | {"trace_url"}:
            yield f"its annotations are {sorted(alert.annotations)}"

    assert violations(rule, ALERTS) == []


def test_the_alert_about_drift_has_the_limit_of_reports_and_dashboards() -> None:
    """The same figure is not red in one and silent in the other."""
    [alert] = [alert for alert in ALERTS if str(alert) == "ModelFeatureDrift"]
    assert alert.content["expr"].split()[-2:] == [">", str(SHIFTED)]


def test_runbook_has_one_heading_for_each_alert() -> None:
    """The link of an alert leads to the heading of its name, and no heading is of an alert that is gone."""
    headings = re.findall(r"^## (\w+)$", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(headings) == sorted(map(str, ALERTS))
    urls = {alert.annotations["runbook_url"] for alert in ALERTS}
    assert urls == {f"{{{{ $externalLabels.runbook }}}}#{heading.lower()}" for heading in headings}


def test_alert_about_a_pipeline_links_to_the_traces_of_its_runs() -> None:
    """And no other alert does."""

    def rule(alert: Rule) -> Iterator[str]:
        is_about_runs = "pipeline_name" in alert.annotations["summary"] + alert.annotations["description"]
        if ("trace_url" in alert.annotations) != is_about_runs:
            yield "trace_url is missing" if is_about_runs else "trace_url leads to runs that it is not about"

    assert violations(rule, ALERTS) == []


def test_alert_about_a_query_is_about_that_of_one_program() -> None:
    """Queries of two programs may have one name: the name of the program goes wherever that of the query does."""

    def rule(each: Rule) -> Iterator[str]:
        for labels in re.findall(r"(?:by|on) \(([^)]*)\)", each.content["expr"]):
            if ("pipeline_name" in labels) != ("spark_app_name" in labels):
                yield labels

    assert violations(rule, [each for each in RULES if each.concern == "streams"]) == []


def test_an_alert_has_the_labels_of_an_owner() -> None:
    """Rules keep what `metric_labels` is shipped with, Prometheus promotes it, and Alertmanager groups by it."""
    shipped = read(ROOT / "config" / "app.yml")["metric_labels"]
    promoted = [ATTRIBUTES.get(label, label) for label in shipped]
    owner = [attribute.replace(".", "_") for attribute in promoted]

    def rule(each: Rule) -> Iterator[str]:
        for labels in re.findall(r"(?:by|on) \(([^)]*)\)", each.content["expr"]):
            if "deployment_environment_name" in labels and not set(owner) <= set(labels.split(", ")):
                yield labels

    assert violations(rule, RULES) == []
    assert set(promoted) < set(PROMETHEUS["otlp"]["promote_resource_attributes"])
    stack = read(ROOT / "compose" / "observability.yml")["configs"]["alertmanager"]["content"]
    assert f"spark_app_name, {', '.join(owner)}]" in stack


def test_links_lead_to_programs_and_queries_of_any_name() -> None:
    """A stranger's name may have spaces and `&`, which a link has to encode; names of our pipelines are plain."""
    names = {"spark_app_name"}

    def rule(alert: Rule) -> Iterator[str]:
        free = names | {"pipeline_name"} if alert.concern == "streams" else names
        urls = [url for name, url in alert.annotations.items() if name.endswith("_url")]
        for encoding, label in re.findall(r"\{\{ ([^}]*)\$labels\.(\w+)", " ".join(urls)):
            if encoding != "urlquery " and label in free:
                yield label

    assert violations(rule, ALERTS) == []


def test_alert_links_to_a_dashboard_that_exists() -> None:
    """The link leads to a dashboard that is provisioned."""

    def rule(alert: Rule) -> Iterator[str]:
        match = re.search(r"/d/([\w-]+)", alert.annotations["dashboard_url"])
        if match is None or not list((ROOT / "grafana" / "dashboards").glob(f"*/{match[1]}.json")):
            yield alert.annotations["dashboard_url"]

    assert violations(rule, ALERTS) == []


def test_links_start_at_external_labels() -> None:
    """Each base of a link is one of prometheus.yml, which removes it before an alert is sent."""

    def rule(alert: Rule) -> set[str]:
        return set(re.findall(r"\$externalLabels\.(\w+)", " ".join(alert.annotations.values()))) - set(LINKS)

    assert violations(rule, ALERTS) == []
    (dropped,) = PROMETHEUS["alerting"]["alert_relabel_configs"]
    assert (dropped["action"], set(dropped["regex"].split("|"))) == ("labeldrop", set(LINKS))


ALWAYS: Final = {"Watchdog"}


def test_alert_is_tested_firing_and_silent() -> None:
    """Its promtool cases have one in which it fires and one in which it must not, if it does not always fire."""

    def rule(alert: Rule) -> Iterator[str]:
        tests = read(FOLDER / "tests" / f"{alert.concern}.yml")["tests"]
        cases = [case for test in tests for case in test["alert_rule_test"] if case["alertname"] == str(alert)]
        for fires in {True, str(alert) in ALWAYS} - {bool(case.get("exp_alerts")) for case in cases}:
            yield f"no case in which it {'fires' if fires else 'is silent'}"

    assert violations(rule, ALERTS) == []


def test_rule_reads_only_series_that_exist() -> None:
    """Each name is of the catalogue, of a program that we know, or recorded by a rule."""
    known = catalogued() | SCRAPED | RECORDED
    assert violations(lambda rule: names_in(rule.content["expr"]) - known, RULES) == []


def test_prometheus_gets_the_variables_of_its_configuration() -> None:
    """A variable that the container lacks would make a link without a port."""
    used = set(re.findall(r"\$\{(\w+)\}", " ".join(LINKS.values())))
    service = read(ROOT / "compose" / "observability.yml")["services"]["prometheus"]
    assert used <= set(service["environment"])


def test_every_file_of_rules_has_tests() -> None:
    """The files of rules and of their tests have the same names."""
    assert sorted(path.stem for path in (FOLDER / "tests").glob("*.yml")) == CONCERNS


def relabelled(job: str, name: str) -> dict[str, str] | None:
    """The labels of a metric after the relabelling of a scrape job; None if it is dropped."""
    configs = {each["job_name"]: each for each in read(FOLDER / "scrape" / "spark.yml")["scrape_configs"]}
    labels = {"__name__": name}
    for step in configs[job]["metric_relabel_configs"]:
        match = re.fullmatch(step["regex"], labels["__name__"])
        if step.get("action") == "keep":
            if not match:
                return None
        elif match:
            labels[step["target_label"]] = match.expand(re.sub(r"\$\{?(\d)\}?", r"\\\1", step["replacement"]))
    return labels


def test_metrics_of_spark_get_stable_names() -> None:
    """Garbage collector, application and its start become labels; each gauge is kept once."""
    cases: list[tuple[str, str, dict[str, str]]] = [
        ("spark-worker", "jvm_G1_Young_Generation_time", {"__name__": "jvm_gc_time", "gc": "G1_Young_Generation"}),
        ("spark-master", "jvm_MarkSweepCompact_count", {"__name__": "jvm_gc_count", "gc": "MarkSweepCompact"}),
        ("spark-master", "jvm_heap_used", {"__name__": "jvm_heap_used"}),
        (
            "spark-applications",
            "application_spark_app_etl_1795242000123_cores",
            {"__name__": "application_cores", "application": "spark_app_etl", "started_ms": "1795242000123"},
        ),
    ]
    for job, name, labels in cases:
        expected = {**labels, "__name__": f"metrics_{labels['__name__']}_Number"}
        assert relabelled(job, f"metrics_{name}_Number") == expected
        assert relabelled(job, f"metrics_{name}_Value") is None
