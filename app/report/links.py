"""Where more is to be seen: the trace in Jaeger, the dashboards in Grafana, as far as settings say where they are."""

from typing import NamedTuple

from app.eventlog import identity
from app.report.scope import Scope
from app.settings import Backends


class Link(NamedTuple):
    """A name and an address."""

    name: str
    url: str


def links(scope: Scope, backends: Backends | None) -> list[Link]:
    """None where no program of the stack is configured."""
    if backends is None:
        return []
    trace = scope.run.trace_id if scope.run else f"{identity.of_application(scope.app).trace_id:032x}"
    board = "pipeline-runs" if scope.run else "spark-performance"
    start, end = int(scope.period.start) - 60_000, int(scope.period.end) + 60_000
    found = []
    if backends.jaeger and trace:
        found.append(Link("Trace in Jaeger", f"{backends.jaeger.rstrip('/')}/trace/{trace}"))
    if backends.grafana:
        found.append(Link("Dashboard in Grafana", f"{backends.grafana.rstrip('/')}/d/{board}?from={start}&to={end}"))
    return found
