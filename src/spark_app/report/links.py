"""Links from a report to its trace in Jaeger and its dashboard in Grafana, where these are configured."""

from typing import NamedTuple
from urllib.parse import quote, urlencode

from spark_app.eventlog import span_ids
from spark_app.report.scope import Scope
from spark_app.settings import Backends
from spark_app.vocabulary.spark_names import BATCH_SPAN


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
    searched = {"Micro-batches in Jaeger": bool(scope.batches), "Sessions in Jaeger": _has_sessions(scope)}
    if backends.jaeger:
        found = f"{backends.jaeger.rstrip('/')}/search?{_search(scope, start, end)}"
        urls += [Link(name, found) for name, is_there in searched.items() if is_there]
    if backends.grafana:
        urls.append(Link("Dashboard in Grafana", f"{backends.grafana.rstrip('/')}/d/{board}?from={start}&to={end}"))
    return urls


def _has_sessions(scope: Scope) -> bool:
    """Whether clients of a Spark Connect server have sessions, each the root of a trace."""
    return scope.run is None and any(
        span_ids.of_session(scope.app, key).parent_id is None for key in scope.app.connect.sessions
    )


def _search(scope: Scope, start: int, end: int) -> str:
    """Finds the traces of a time, of the micro-batches of one query where that is all; Jaeger counts microseconds."""
    queries = {batch.name for batch in scope.batches}
    (name,) = queries if len(queries) == 1 and not _has_sessions(scope) else (None,)
    operation = {} if name is None else {"operation": BATCH_SPAN.of(name)}
    times = {"start": start * 1000, "end": end * 1000, "lookback": "custom"}
    return urlencode({"service": scope.app.name or "unknown", **operation, **times}, quote_via=quote)
