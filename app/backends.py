"""Asks the programs of the stack: how they are, and what they know of a trace, a metric or a log line.

Every question is answered within seconds, or ends in a MachineError whose one line names the address and what is wrong.
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

from app.errors import MachineError

TIMEOUT_SECONDS: Final = 5.0
# The stack is where we are: a proxy that the environment names for the world outside does not know its addresses.
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
NO_PARAMETERS: Final[Mapping[str, str]] = MappingProxyType({})
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Target:
    """Something that Prometheus scrapes; the error is empty while it is up."""

    job: str
    url: str
    health: str
    error: str


@dataclass(frozen=True, slots=True)
class Jaeger:
    """Where traces are."""

    url: str

    def health(self) -> str:
        """How it is."""
        return f"knows {len(get(f'{self.url}/api/services', 'data') or [])} services"

    def spans(self, trace_id: str) -> list[dict[str, Any]]:
        """The spans of a trace; none where there is no such trace (yet)."""
        found = get(f"{self.url}/api/traces/{trace_id}", "data", has_errors=True) or []
        return [span for one in found for span in one["spans"]]


@dataclass(frozen=True, slots=True)
class Prometheus:
    """Where metrics are."""

    url: str

    def health(self) -> str:
        """How it is."""
        answer(f"{self.url}/-/ready")
        return "ready"

    def values(self, query: str, *, at: float | None = None) -> dict[Labels, float]:
        """The value of each series by its labels, now or at a Unix time."""
        parameters = {"query": query} | ({} if at is None else {"time": f"{at:.3f}"})
        found = get(f"{self.url}/api/v1/query", "data", "result", parameters=parameters)
        return {tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in found}

    def targets(self) -> list[Target]:
        """What it scrapes."""
        found = get(f"{self.url}/api/v1/targets", "data", "activeTargets", parameters={"state": "active"})
        return [Target(one["labels"]["job"], one["scrapeUrl"], one["health"], one["lastError"]) for one in found]

    def exemplars(self, query: str, *, start: float, end: float) -> set[str]:
        """The trace ids of the exemplars of some series between two Unix times."""
        parameters = {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}"}
        found = get(f"{self.url}/api/v1/query_exemplars", "data", parameters=parameters)
        labels = [exemplar["labels"] for series in found for exemplar in series["exemplars"]]
        return {one["trace_id"] for one in labels if "trace_id" in one}


@dataclass(frozen=True, slots=True)
class Elasticsearch:
    """Where log lines are."""

    url: str

    def health(self) -> str:
        """How it is; yellow is right for a single node.

        Raises:
            MachineError: It is red.
        """
        status = get(f"{self.url}/_cluster/health", "status")
        if status == "red":
            raise MachineError(f"{self.url} is red: some of its data cannot be read")
        return f"status {status}"

    def logs(self, trace_id: str) -> list[dict[str, Any]]:
        """The log lines of a trace, oldest first and at most 1000; none where there is no such line (yet)."""
        query = {
            "size": 1000,
            "query": {"term": {"trace_id": trace_id}},
            "sort": [{"@timestamp": {"order": "asc", "unmapped_type": "date_nanos"}}],
        }
        return [hit["_source"] for hit in get(f"{self.url}/logs-*/_search", "hits", "hits", content=query)]


def collector_health(url: str) -> str:
    """That the collector is at work; it does not say whether back ends take what it sends."""
    return str(get(f"{url}/health", "status")).lower()


def alertmanager_health(url: str) -> str:
    """That Alertmanager is ready."""
    answer(f"{url}/-/ready")
    return "ready"


def grafana_health(url: str) -> str:
    """That Grafana and its own database are well.

    Raises:
        MachineError: They are not.
    """
    database = get(f"{url}/api/health", "database")
    if database != "ok":
        raise MachineError(f"{url} says of its database: {database}")
    return "database ok"


def kibana_health(url: str) -> str:
    """That Kibana is available.

    Raises:
        MachineError: It is not (yet).
    """
    level = str(get(f"{url}/api/status", "status", "overall", "level"))
    if level != "available":
        raise MachineError(f"{url} is {level}")
    return level


def spark_health(url: str) -> str:
    """That the Spark master is alive, and its workers.

    Raises:
        MachineError: It is a standby, or has no worker.
    """
    status, workers = get(f"{url}/json/", "status"), get(f"{url}/json/", "aliveworkers")
    if status != "ALIVE":
        raise MachineError(f"{url} is {status}")
    if not workers:
        raise MachineError(f"{url} has no worker that is alive: no application gets a core")
    return f"{workers} workers alive"


def reports_health(url: str) -> str:
    """That reports are served."""
    answer(f"{url}/")
    return "served"


def kafka_health(address: str) -> str:
    """That the port of a broker is open.

    Raises:
        MachineError: Nobody listens there.
    """
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS):
            return "its port is open"
    except OSError as error:
        raise MachineError(f"{address} does not answer: {_reason(error)}") from error


def get(
    url: str,
    *path: str,
    parameters: Mapping[str, str] = NO_PARAMETERS,
    content: Any = None,
    has_errors: bool = False,
) -> Any:
    """A part of the JSON at an address.

    Args:
        url: The address.
        path: The keys that lead to the part; none for the whole.
        parameters: What follows the `?`.
        content: A JSON document to send along.
        has_errors: Whether the program answers in JSON, too, that there is no such thing (404).

    Raises:
        MachineError: Nobody answers, it is no JSON, or it has no such part.
    """
    found = answer(url, parameters=parameters, content=content, has_errors=has_errors)
    try:
        part = json.loads(found)
        for key in path:
            part = part[key]
    except (ValueError, LookupError, TypeError) as error:
        expected = f"JSON with {'.'.join(path)}" if path else "JSON"
        raise MachineError(f"{url} answers something else than {expected}: is another program there?") from error
    return part


def answer(
    url: str, *, parameters: Mapping[str, str] = NO_PARAMETERS, content: Any = None, has_errors: bool = False
) -> bytes:
    """What is at an address.

    Raises:
        MachineError: Nobody answers.
    """
    query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
    body = None if content is None else json.dumps(content).encode("utf-8")
    request = urllib.request.Request(url + query, body, {"Content-Type": "application/json"} if body else {})
    try:
        with _OPENER.open(request, timeout=TIMEOUT_SECONDS) as found:
            return bytes(found.read())
    except urllib.error.HTTPError as error:
        body = _body(error)
        if has_errors and error.code == http.HTTPStatus.NOT_FOUND:
            return body
        raise MachineError(f"{url} answers {error.code} {error.reason}: {_said(body)}") from error
    except (OSError, http.client.HTTPException) as error:
        raise MachineError(f"{url} does not answer: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    reason = getattr(error, "reason", None)
    if isinstance(reason, BaseException):
        return _reason(reason)
    if isinstance(error, TimeoutError):
        return f"nothing came within {TIMEOUT_SECONDS:.0f} s"
    return str(getattr(error, "strerror", None) or str(error) or type(error).__name__)


def _body(error: urllib.error.HTTPError) -> bytes:
    try:
        with error:
            return error.read()
    except (OSError, http.client.HTTPException):
        return b""


def _said(body: bytes) -> str:
    return " ".join(body[:200].decode("utf-8", errors="replace").split()) or "nothing more"
