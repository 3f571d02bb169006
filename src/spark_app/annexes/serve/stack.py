"""The stack as a person needs it at a glance: where each service is and how it is, and which alerts fire.

Everything is asked when the page is opened, all at once.
"""

import datetime
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from typing import Any, Final

from spark_app.doctor import backends as ask
from spark_app.doctor import checks
from spark_app.errors import MachineError
from spark_app.redaction import redacted
from spark_app.settings import Settings

PATIENCE_SECONDS: Final = 2.5
"""How long a page waits for answers; after that it shows those of before, or none."""
FRESH_SECONDS: Final = 2.0
"""Answers younger than this are not asked for again."""
SERVICES: Final[Mapping[str, tuple[str, str]]] = {
    "grafana": ("Grafana", "dashboards"),
    "jaeger": ("Jaeger", "traces"),
    "prometheus": ("Prometheus", "metrics and rules of alerts"),
    "targets": ("targets of Prometheus", "what it scrapes"),
    "alertmanager": ("Alertmanager", "alerts, silences"),
    "elasticsearch": ("Elasticsearch", "logs"),
    "kibana": ("Kibana", "search in logs"),
    "collector": ("OpenTelemetry Collector", "receives all telemetry"),
    "bridge": ("bridge", "reads event logs"),
    "spark_master": ("Spark master", "workers and applications"),
    "spark_history": ("Spark history server", "Spark's own pages of what has ended"),
    "jupyter": ("Jupyter", "notebooks on the cluster"),
    "kafka": ("Kafka", "topics of the streams"),
}
"""What a person calls a component, and what it is for, in the order of the page."""
PATHS: Final = {"grafana": "/d/platform-overview", "targets": "/targets", "kibana": "/app/discover"}
"""Where a link leads, below the address of a component; without one, to its first page."""
WITHOUT_PAGE: Final = ("kafka", "bridge", "collector")
MOODS: Final = {"ok": "good", "down": "bad", "lost": "bad", "left out": ""}
SEVERITIES: Final = {"critical": "bad", "warning": "unsure", "info": "info"}
HEARTBEAT: Final = "Watchdog"
"""The alert that always fires, so that its absence is seen."""
OF_ALERTS: Final = {"active": "true", "silenced": "false", "inhibited": "false"}


@dataclass(frozen=True, slots=True)
class Service:
    """A row of the services: what it is called, what for, its page if it has one, and how it is."""

    name: str
    purpose: str
    link: str | None
    state: str
    mood: str
    finding: str
    look_at: str | None


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert that fires.

    Attributes:
        since: Milliseconds since the epoch.
        links: Addresses by what they show: dashboard, traces.
    """

    name: str
    severity: str
    mood: str
    summary: str
    since: float
    links: dict[str, str]


@dataclass(frozen=True, slots=True)
class Answers:
    """What the services of the stack answered; the alerts are None where Alertmanager did not."""

    services: list[Service]
    alerts: list[Alert] | None


class Stack:
    """Asks the services of the stack."""

    def __init__(self, settings: Settings, *, patience: float = PATIENCE_SECONDS) -> None:
        """Asks nothing yet."""
        self._settings, self._patience = settings, patience
        self._lock = threading.Lock()
        self._asking: Future[Answers] | None = None
        self._last: Answers | None = None
        self._answered_at = -FRESH_SECONDS
        self._seen = set[str]()

    def look(self) -> Answers | None:
        """What they answer now, or answered before where that takes long; None where nothing is known yet."""
        with self._lock:
            is_old = time.monotonic() - self._answered_at > FRESH_SECONDS
            if self._asking is None or (self._asking.done() and is_old):
                self._asking = Future()
                threading.Thread(target=self._ask, args=(self._asking,), daemon=True).start()
            asking = self._asking
        try:
            return asking.result(self._patience)
        except NotYet:
            return self._last

    def _ask(self, asking: "Future[Answers]") -> None:
        try:
            found = checks.check_components(
                self._settings.reached_backends, frozenset(), inside=self._settings.backends_inside.keys()
            )
            self._last = Answers(self._services(found), self._alerts())
            self._answered_at = time.monotonic()
            asking.set_result(self._last)
        except BaseException as error:  # noqa: BLE001 - whoever waits for it raises it
            asking.set_exception(error)

    def _services(self, found: Sequence[checks.Check]) -> list[Service]:
        self._seen |= {check.component for check in found if check.state == "ok"}
        by_name = {check.component: check for check in found}
        return [self._service(name, by_name[name]) for name in SERVICES]

    def _service(self, name: str, check: checks.Check) -> Service:
        """A service that has answered and has no host any more has stopped: it was not left out of the start."""
        title, purpose = SERVICES[name]
        backend = next(each.backend for each in checks.COMPONENTS if each.name == name)
        address = getattr(self._settings.backends, backend)
        link = None if address is None or name in WITHOUT_PAGE else f"{address}{PATHS.get(name, '')}"
        state = "down" if check.state == "left out" and name in self._seen else check.state
        finding = redacted(check.finding.rpartition(" (")[0] or check.finding)
        return Service(title, purpose, link, state, MOODS[state], finding, check.look_at)

    def _alerts(self) -> list[Alert] | None:
        url = self._settings.reached_backends.alertmanager
        if url is None:
            return None
        try:
            found = ask.get(f"{url}/api/v2/alerts", parameters=OF_ALERTS)
        except MachineError:
            return None
        alerts = [_alert(each) for each in found if each["labels"].get("alertname") != HEARTBEAT]
        return sorted(alerts, key=lambda each: ([*SEVERITIES].index(each.severity), -each.since))


def _alert(found: Mapping[str, Any]) -> Alert:
    labels, annotations = found["labels"], found.get("annotations", {})
    severity = labels.get("severity") if labels.get("severity") in SEVERITIES else "info"
    links = {"dashboard": annotations.get("dashboard_url"), "traces": annotations.get("trace_url")}
    return Alert(
        name=labels.get("alertname", ""),
        severity=severity,
        mood=SEVERITIES[severity],
        summary=annotations.get("summary", ""),
        since=datetime.datetime.fromisoformat(found["startsAt"]).timestamp() * 1000,
        links={name: link for name, link in links.items() if link and link.startswith(("http://", "https://"))},
    )
