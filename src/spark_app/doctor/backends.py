"""HTTP clients for the components of the stack: health, and queries for a trace, a metric or a log line.

Every request ends within seconds, or raises a MachineError that names the URL and what is wrong.
"""

import http.client
import json
import socket
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from spark_app.errors import MachineError
from spark_app.formatting import quantity
from spark_app.redaction import excerpt

TIMEOUT_SECONDS: Final = 5.0
# No proxy: the components are on this host or network.
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
NO_PARAMETERS: Final[Mapping[str, str]] = MappingProxyType({})
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A scrape target of Prometheus; the error is empty while it is up."""

    job: str
    url: str
    health: str
    error: str


@dataclass(frozen=True, slots=True)
class Jaeger:
    """The store of traces."""

    url: str

    def health(self) -> str:
        """The number of services with traces."""
        return f"knows {len(get(f'{self.url}/api/services', 'data') or [])} services"

    def spans(self, trace_id: str) -> list[dict[str, Any]]:
        """The spans of a trace; empty if the trace is unknown."""
        traces = get(f"{self.url}/api/traces/{trace_id}", "data", has_errors=True) or []
        return [span for trace in traces for span in trace["spans"]]


@dataclass(frozen=True, slots=True)
class Prometheus:
    """The store of metrics."""

    url: str

    def values(self, query: str, *, at: float | None = None) -> dict[Labels, float]:
        """The value of each series by its labels, now or at a Unix time."""
        parameters = {"query": query} | ({} if at is None else {"time": f"{at:.3f}"})
        result = get(f"{self.url}/api/v1/query", "data", "result", parameters=parameters)
        return {tuple(sorted(series["metric"].items())): float(series["value"][1]) for series in result}

    def targets(self) -> list[Target]:
        """The active scrape targets."""
        targets = get(f"{self.url}/api/v1/targets", "data", "activeTargets", parameters={"state": "active"})
        return [Target(each["labels"]["job"], each["scrapeUrl"], each["health"], each["lastError"]) for each in targets]

    def exemplars(self, query: str, *, start: float, end: float) -> set[str]:
        """The trace ids of the exemplars of some series between two Unix times."""
        parameters = {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}"}
        result = get(f"{self.url}/api/v1/query_exemplars", "data", parameters=parameters)
        labels = [exemplar["labels"] for series in result for exemplar in series["exemplars"]]
        return {each["trace_id"] for each in labels if "trace_id" in each}


@dataclass(frozen=True, slots=True)
class Elasticsearch:
    """The store of log lines."""

    url: str

    def health(self) -> str:
        """The status of the cluster; yellow is normal for a single node.

        Raises:
            MachineError: The status is red.
        """
        status = get(f"{self.url}/_cluster/health", "status")
        if status == "red":
            raise MachineError(f"{self.url} has status red: some of its data is unavailable")
        return f"status {status}"

    def logs(self, trace_id: str) -> list[dict[str, Any]]:
        """The log lines of a trace, oldest first, at most 1000."""
        query = {
            "size": 1000,
            "query": {"term": {"trace_id": trace_id}},
            "sort": [{"@timestamp": {"order": "asc", "unmapped_type": "date_nanos"}}],
        }
        return [hit["_source"] for hit in get(f"{self.url}/logs-*/_search", "hits", "hits", content=query)]


def collector_health(url: str) -> str:
    """The status of the collector; it does not say whether backends accept its data."""
    return str(get(f"{url}/health", "status")).lower()


def ready_health(url: str) -> str:
    """Whether Prometheus or Alertmanager is ready."""
    answer(f"{url}/-/ready")
    return "ready"


def grafana_health(url: str) -> str:
    """Whether Grafana and its database are up.

    Raises:
        MachineError: The database is down.
    """
    return f"database {_state(url, '/api/health', 'database', good='ok')}"


def kibana_health(url: str) -> str:
    """Whether Kibana is available.

    Raises:
        MachineError: Kibana is not available, or not yet.
    """
    return _state(url, "/api/status", "status", "overall", "level", good="available")


def spark_health(url: str) -> str:
    """The number of alive workers of the Spark master.

    Raises:
        MachineError: The master is a standby, or has no alive worker.
    """
    status, workers = get(f"{url}/json/", "status"), get(f"{url}/json/", "aliveworkers")
    if status == "STANDBY":
        raise MachineError(f"{url} is STANDBY: let backends.spark_master name the master that leads, if one does")
    if status != "ALIVE":
        raise MachineError(f"{url} is {status}")
    if not workers:
        raise MachineError(f"{url} has no alive worker: no application gets a core")
    return f"{quantity(workers, 'alive worker')}"


def history_health(url: str) -> str:
    """The version of Spark of the history server."""
    return f"Spark {get(f'{url}/api/v1/version', 'spark')}"


def jupyter_health(url: str) -> str:
    """The version of Jupyter, which it gives without a token."""
    return f"version {get(f'{url}/api', 'version')}"


def reports_health(url: str) -> str:
    """Whether reports are served."""
    answer(f"{url}/")
    return "served"


def kafka_health(address: str) -> str:
    """Whether the port of a broker is open.

    Raises:
        MachineError: The port refuses connections.
    """
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS):
            return "port is open"
    except OSError as error:
        raise MachineError(f"{address} does not answer: {_reason(error)}") from error


def get(
    url: str,
    *path: str,
    parameters: Mapping[str, str] = NO_PARAMETERS,
    content: Any = None,
    has_errors: bool = False,
) -> Any:
    """A part of the JSON document at a URL.

    Args:
        url: The URL.
        path: The keys to the part; none for the whole document.
        parameters: The query parameters.
        content: A JSON document to send.
        has_errors: Whether a 404 response is JSON, too, and not an error.

    Raises:
        MachineError: The request fails, or the response has no such part.
    """
    body = answer(url, parameters=parameters, content=content, has_errors=has_errors)
    try:
        part = json.loads(body)
        for key in path:
            part = part[key]
    except (ValueError, LookupError, TypeError) as error:
        expected = f"JSON with {'.'.join(path)}" if path else "JSON"
        raise MachineError(f"{url} did not return {expected}: does another program use this port?") from error
    return part


def answer(
    url: str, *, parameters: Mapping[str, str] = NO_PARAMETERS, content: Any = None, has_errors: bool = False
) -> bytes:
    """The body of the response of a URL.

    Raises:
        MachineError: The request fails.
    """
    query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
    body = None if content is None else json.dumps(content).encode("utf-8")
    request = urllib.request.Request(url + query, body, {"Content-Type": "application/json"} if body else {})
    try:
        with _OPENER.open(request, timeout=TIMEOUT_SECONDS) as response:
            return bytes(response.read())
    except urllib.error.HTTPError as error:
        body = _body(error)
        if has_errors and error.code == http.HTTPStatus.NOT_FOUND:
            return body
        raise MachineError(f"{url} returned {error.code} {error.reason}: {_excerpt(body)}") from error
    except (OSError, http.client.HTTPException) as error:
        raise MachineError(f"{url} does not answer: {_reason(error)}") from error


def _state(url: str, path: str, *keys: str, good: str) -> str:
    """The state that a component reports in JSON.

    Raises:
        MachineError: It is another one than the good one.
    """
    state = str(get(f"{url}{path}", *keys))
    if state != good:
        raise MachineError(f"{url} has {keys[-1]} {state}")
    return state


def is_unknown_host(error: BaseException | None) -> bool:
    """Whether a request failed because there is no host of its name."""
    while error is not None:
        reason = getattr(error, "reason", None)
        if isinstance(error, socket.gaierror) or isinstance(reason, socket.gaierror):
            return True
        error = error.__cause__
    return False


def _reason(error: BaseException) -> str:
    reason = getattr(error, "reason", None)
    if isinstance(reason, BaseException):
        return _reason(reason)
    if isinstance(error, TimeoutError):
        return f"no response within {TIMEOUT_SECONDS:.0f} s"
    return str(getattr(error, "strerror", None) or str(error) or type(error).__name__)


def _body(error: urllib.error.HTTPError) -> bytes:
    try:
        with error:
            return error.read()
    except (OSError, http.client.HTTPException):
        return b""


def _excerpt(body: bytes) -> str:
    return excerpt(body.decode("utf-8", errors="replace")) or "no body"
