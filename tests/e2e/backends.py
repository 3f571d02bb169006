"""Queries to the back ends of the stack, with the clients of `spark-app doctor`."""

import time
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from grafana import queries
from grafana.queries import added
from spark_app.doctor.backends import Elasticsearch, Jaeger, Prometheus, answer, get, ready_health, spark_health
from spark_app.errors import MachineError
from spark_app.settings import load_settings
from spark_app.vocabulary import names
from spark_app.vocabulary.prometheus_names import label
from tests.e2e.signals import COUNTED, SIGNALS, Figure

ADDRESSES: Final = {name: str(url) for name, url in load_settings().backends}
MASTER: Final = ADDRESSES["spark_master"]
JAEGER: Final = Jaeger(ADDRESSES["jaeger"])
PROMETHEUS: Final = Prometheus(ADDRESSES["prometheus"])
ELASTICSEARCH: Final = Elasticsearch(ADDRESSES["elasticsearch"])
EXEMPLAR_SECONDS: Final = 3600


def number(query: str) -> float | None:
    """The value of a query; None if it has none (yet).

    Raises:
        AssertionError: The query has several series.
    """
    values = list(PROMETHEUS.values(query).values())
    assert len(values) <= 1, f"{query} has {len(values)} series"
    return values[0] if values else None


def series(query: str, *, seconds: float = 0) -> int:
    """How many series answer a query: now, or over the last seconds."""
    now = time.time()
    if not seconds:
        return len(get(f"{PROMETHEUS.url}/api/v1/query", "data", "result", parameters={"query": query}))
    parameters = {"query": query, "start": f"{now - seconds:.0f}", "end": f"{now:.0f}", "step": "15"}
    return len(get(f"{PROMETHEUS.url}/api/v1/query_range", "data", "result", parameters=parameters))


def ranged(query: str, *, seconds: float, step: int = 15) -> list[float]:
    """All points of all series of a query over the last seconds."""
    now = time.time()
    parameters = {"query": query, "start": f"{now - seconds:.0f}", "end": f"{now:.0f}", "step": str(step)}
    result = get(f"{PROMETHEUS.url}/api/v1/query_range", "data", "result", parameters=parameters)
    return [float(value) for series in result for _, value in series["values"]]


def grown(since: float) -> dict[Figure, float]:
    """The growth of each figure of each pipeline since a Unix time, queried as the dashboards do."""
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
    """The same figures from the records of some runs, summed by pipeline."""
    figures: Counter[Figure] = Counter({(name, signals.pipeline): 0 for name in COUNTED for signals in SIGNALS})
    for run in runs:
        figures.update({(name, run["pipeline"]): run["counts"][name] for name in COUNTED})
    return dict(figures)


def exemplars(query: str) -> set[str]:
    """The trace ids of the exemplars of some series in the last hour."""
    now = time.time()
    return PROMETHEUS.exemplars(query, start=now - EXEMPLAR_SECONDS, end=now)


def log_services(trace_id: str) -> set[str]:
    """The services that wrote log lines of a trace."""
    return {line["resource"]["attributes"]["service.name"] for line in ELASTICSEARCH.logs(trace_id)}


def count_log_lines(query: str) -> int:
    """The number of log lines that match a Lucene query."""
    count = get(f"{ELASTICSEARCH.url}/logs-*/_count", "count", parameters={"q": query})
    return int(count)


def spans_of(service: str, name: str, *, since: float) -> list[dict[str, Any]]:
    """The spans of a name in the traces of a service since a Unix time."""
    parameters = {"service": service, "operation": name, "start": f"{since * 1e6:.0f}", "limit": "20"}
    found = get(f"{JAEGER.url}/api/traces", "data", parameters=parameters) or []
    return [span for trace in found for span in trace["spans"] if span["operationName"] == name]


def traces(service: str) -> int:
    """The number of the latest traces of a service in Jaeger."""
    return len(latest(service))


def latest(service: str) -> list[dict[str, Any]]:
    """The latest traces of a service."""
    parameters = {"service": service, "limit": "20", "lookback": "1h"}
    return list(get(f"{JAEGER.url}/api/traces", "data", parameters=parameters))


def page(url: str) -> str:
    """The text of a web page."""
    return answer(url).decode("utf-8")


def monitored(service: str) -> int:
    """The number of points for a service on the Monitor tab of Jaeger."""
    parameters = {
        "service": service,
        "spanKind": "internal",
        "lookback": "3600000",
        "ratePer": "600000",
        "step": "60000",
    }
    metrics = get(f"{JAEGER.url}/api/metrics/calls", "metrics", parameters=parameters)
    return sum(len(metric["metricPoints"]) for metric in metrics)


def parents(span: dict[str, Any]) -> list[str]:
    """The ids of a span's parents."""
    return [reference["spanID"] for reference in span["references"] if reference["refType"] == "CHILD_OF"]


def tags(span: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a span."""
    return {tag["key"]: tag["value"] for tag in span["tags"]}


def has_two_workers() -> bool:
    """Whether both workers are registered."""
    try:
        return spark_health(MASTER).startswith("2 ")
    except MachineError:
        return False


def cores_used() -> int:
    """Cores that executors hold, of all applications; some seconds longer than the application runs."""
    return int(get(f"{MASTER}/json/", "coresused"))


def applications() -> dict[str, str]:
    """The state of each active application of the master, by its name."""
    return {each["name"]: each["state"] for each in get(f"{MASTER}/json/", "activeapps")}


def is_up(name: str) -> bool:
    """Whether a store is healthy."""
    check = {
        "jaeger": JAEGER.health,
        "prometheus": lambda: ready_health(PROMETHEUS.url),
        "elasticsearch": ELASTICSEARCH.health,
    }[name]
    try:
        check()
    except MachineError:
        return False
    return True
