"""The table at the end: what runs where, since when it is ready, and where the password is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from full_stack.compose import Port, Service

HEADERS = ("service", "url", "state", "ready after", "password")
PASSWORDS = {
    "grafana": ("GRAFANA_ADMIN_PASSWORD", "user admin", "admin / admin"),
    "jupyter": ("JUPYTER_TOKEN", "token", "token spark-app"),
}
"""The variable that holds it, what it is for, and what is asked for where the variable is not set."""
NOTES = {4040: "while a job runs", 4317: "OTLP, gRPC", 4318: "OTLP, HTTP"}
NO_HTTP = (4317, 9092)
PATHS = {13133: "/health"}


def table(
    services: Mapping[str, Service], seconds: Mapping[str, float], left_out: Mapping[str, str], own: Mapping[str, str]
) -> Iterator[str]:
    """The lines of the table.

    Args:
        services: What was started.
        seconds: When each was ready; 0 for what was ready before.
        left_out: What was not started, and why.
        own: The file in which the secrets are that are set.
    """
    rows = [row for name, service in services.items() for row in _rows(service, seconds[name], own)]
    rows += [(name, "", "left out", "", reason) for name, reason in left_out.items()]
    widths = [max(len(row[column]) for row in [HEADERS, *rows]) for column in range(len(HEADERS))]
    for row in [HEADERS, *rows]:
        yield "  ".join(cell.ljust(widths[column]) for column, cell in enumerate(row)).rstrip()


def _rows(service: Service, seconds: float, own: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    state = "done" if service.is_one_shot else "up"
    after = f"{seconds:.0f} s" if seconds else "already"
    password = _password(service.name, own)
    first, *more = [_url(port) for port in service.ports] or [""]
    yield service.name, first, state, after, password
    for url in more:
        yield "", url, "", "", ""


def _url(port: Port) -> str:
    place = f"localhost:{port.published}{PATHS.get(port.target, '')}"
    url = place if port.target in NO_HTTP else f"http://{place}"
    return f"{url} ({NOTES[port.target]})" if port.target in NOTES else url


def _password(name: str, own: Mapping[str, str]) -> str:
    if name not in PASSWORDS:
        return ""
    variable, purpose, otherwise = PASSWORDS[name]
    return f"{purpose}; {variable} in {own[variable]}" if variable in own else otherwise
