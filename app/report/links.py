"""Links from a report to its trace in Jaeger and its dashboard in Grafana, where these are configured."""

from typing import NamedTuple

from app.eventlog import span_ids
from app.report.scope import Scope
from app.settings import Backends


class Link(NamedTuple):
    """A link text and a URL."""

    name: str
    url: str


def links(scope: Scope, backends: Backends | None) -> list[Link]:
    """The links of a report; empty where no backend is configured."""
    if backends is None:
        return []
    trace = scope.run.trace_id if scope.run else f"{span_ids.of_application(scope.app).trace_id:032x}"
    board = "pipeline-runs" if scope.run else "spark-performance"
    start, end = int(scope.period.start) - 60_000, int(scope.period.end) + 60_000
    urls = []
    if backends.jaeger and trace:
        urls.append(Link("Trace in Jaeger", f"{backends.jaeger.rstrip('/')}/trace/{trace}"))
    if backends.grafana:
        urls.append(Link("Dashboard in Grafana", f"{backends.grafana.rstrip('/')}/d/{board}?from={start}&to={end}"))
    return urls
