"""What the back ends of the stack know, asked through the package that `spark-app doctor` asks with."""

import time
from collections.abc import Iterable
from typing import Any, Final

from app.backends import Elasticsearch, Jaeger, Prometheus, answer, get, spark_health
from app.errors import MachineError
from app.telemetry import names, spark_names
from app.telemetry.prometheus_names import label
from grafana import queries
from grafana.queries import added
from tests.e2e.signals import COUNTED, SIGNALS, Figure

MASTER: Final = "http://localhost:8080"
JAEGER: Final = Jaeger("http://localhost:16686")
PROMETHEUS: Final = Prometheus("http://localhost:9090")
ELASTICSEARCH: Final = Elasticsearch("http://localhost:9200")
EXEMPLAR_SECONDS: Final = 3600


def number(query: str) -> float | None:
    """The one value of a query; None if there is none (yet).

    Raises:
        AssertionError: There are several.
    """
    values = list(PROMETHEUS.values(query).values())
    assert len(values) <= 1, f"{query} has {len(values)} series"
    return values[0] if values else None


def ranged(query: str, *, seconds: float, step: int = 15) -> list[float]:
    """All points of a query over the last seconds, whatever series they are of."""
    now = time.time()
    parameters = {"query": query, "start": f"{now - seconds:.0f}", "end": f"{now:.0f}", "step": str(step)}
    found = get(f"{PROMETHEUS.url}/api/v1/query_range", "data", "result", parameters=parameters)
    return [float(value) for series in found for _, value in series["values"]]


def grown(since: float) -> dict[Figure, float]:
    """By how much each figure of each pipeline has grown since a Unix time, asked as the dashboards ask."""
    window = f"{time.time() - since:.0f}s"
    return {
        (name, signals.pipeline): number(
            added(queries.grown(metric, window, f'{label(names.PIPELINE)}="{signals.pipeline}"'))
        )
        or 0.0
        for name, metric in COUNTED.items()
        for signals in SIGNALS
    }


def recorded(runs: Iterable[dict[str, Any]]) -> dict[Figure, float]:
    """The same figures as some runs record them, one of each pipeline."""
    return {(name, run["pipeline"]): run[name] for name in COUNTED for run in runs}


def exemplars(query: str) -> set[str]:
    """The trace ids of the exemplars of some series in the last hour."""
    now = time.time()
    return PROMETHEUS.exemplars(query, start=now - EXEMPLAR_SECONDS, end=now)


def log_services(trace_id: str) -> set[str]:
    """Who has written log lines of a trace."""
    return {line["resource"]["attributes"]["service.name"] for line in ELASTICSEARCH.logs(trace_id)}


def found_lines(query: str) -> int:
    """How many log lines a query in Lucene's words finds."""
    found = get(f"{ELASTICSEARCH.url}/logs-*/_count", "count", parameters={"q": query})
    return int(found)


def traces(service: str) -> int:
    """How many of the latest traces of a service Jaeger gives."""
    return len(latest(service))


def latest(service: str) -> list[dict[str, Any]]:
    """The latest traces of a service."""
    parameters = {"service": service, "limit": "20", "lookback": "1h"}
    return list(get(f"{JAEGER.url}/api/traces", "data", parameters=parameters))


def findings(service: str, kind: str) -> set[tuple[str, str]]:
    """The names of the events of a service's spans of one kind, with the rules that they tell of."""
    spans = [span for trace in latest(service) for span in trace["spans"] if span["operationName"].split()[0] == kind]
    told = [{field["key"]: field["value"] for field in log["fields"]} for span in spans for log in span["logs"] or []]
    return {(one.get("event", ""), one[spark_names.RULE.name]) for one in told if spark_names.RULE.name in one}


def page(url: str) -> str:
    """A page that a browser would show."""
    return answer(url).decode("utf-8")


def monitored(service: str) -> int:
    """How many points Jaeger's Monitor tab has for a service."""
    parameters = {
        "service": service,
        "spanKind": "internal",
        "lookback": "3600000",
        "ratePer": "600000",
        "step": "60000",
    }
    metrics = get(f"{JAEGER.url}/api/metrics/calls", "metrics", parameters=parameters)
    return sum(len(one["metricPoints"]) for one in metrics)


def parents(span: dict[str, Any]) -> list[str]:
    """The ids of a span's parents."""
    return [reference["spanID"] for reference in span["references"] if reference["refType"] == "CHILD_OF"]


def tags(span: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a span."""
    return {tag["key"]: tag["value"] for tag in span["tags"]}


def has_two_workers() -> bool:
    """Whether both workers are there."""
    try:
        return spark_health(MASTER).startswith("2 ")
    except MachineError:
        return False


def applications() -> dict[str, str]:
    """The state of each application that the master takes for alive, by its name."""
    return {one["name"]: one["state"] for one in get(f"{MASTER}/json/", "activeapps")}


def is_up(name: str) -> bool:
    """Whether a store answers and is well."""
    ask = {"jaeger": JAEGER.health, "prometheus": PROMETHEUS.health, "elasticsearch": ELASTICSEARCH.health}[name]
    try:
        ask()
    except MachineError:
        return False
    return True
