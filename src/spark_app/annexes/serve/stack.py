"""The stack as a person needs it at a glance: where each service is and how it is, and which alerts fire.

Everything is asked when the page is opened, all at once; what has not answered then is on the page as it comes.
"""

import datetime
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from spark_app.doctor import backends as ask
from spark_app.doctor import checks
from spark_app.errors import MachineError
from spark_app.redaction import redacted
from spark_app.settings import Settings

PATIENCE_SECONDS: Final = 2.5
"""How long a page waits for answers."""
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
COMPONENTS: Final = {component.name: component for component in checks.COMPONENTS}
PATHS: Final = {"grafana": "/d/platform-overview", "targets": "/targets", "kibana": "/app/discover"}
"""Where a link leads, below the address of a component; without one, to its first page."""
ALERTS: Final = "alerts"
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
        self._asked = dict[str, tuple[float, Future[Any]]]()
        self._seen = set[str]()

    def look(self) -> Answers:
        """What they answer now; of one that takes long, that it has not answered yet."""
        asked = {name: self._ask(name, partial(self._check, COMPONENTS[name])) for name in SERVICES}
        alerts = self._ask(ALERTS, self._alerts)
        wait([*asked.values(), alerts], self._patience)
        found = {name: each.result() if each.done() else None for name, each in asked.items()}
        self._seen |= {name for name, check in found.items() if check is not None and check.state == "ok"}
        services = [self._service(name, check) for name, check in found.items()]
        return Answers(services, alerts.result() if alerts.done() else None)

    def _ask(self, name: str, make: Callable[[], Any]) -> "Future[Any]":
        """Asks, unless an answer is awaited or fresh; on a thread that does not keep the process alive."""
        with self._lock:
            since, known = self._asked.get(name, (0.0, None))
            if known is not None and (not known.done() or time.monotonic() - since < FRESH_SECONDS):
                return known
            asking = Future[Any]()
            self._asked[name] = time.monotonic(), asking
        threading.Thread(target=_answer, args=(asking, make), daemon=True).start()
        return asking

    def _check(self, component: checks.Component) -> checks.Check:
        inside = self._settings.backends_inside.keys()
        return checks.check_component(component, self._settings.reached_backends, frozenset(), inside=inside)

    def _service(self, name: str, check: checks.Check | None) -> Service:
        """A service that has answered and has no host any more has stopped: it was not left out of the start."""
        title, purpose = SERVICES[name]
        if check is None:
            return Service(title, purpose, None, "asked", "", "no answer yet", None)
        address = getattr(self._settings.backends, COMPONENTS[name].backend)
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


def _answer(asking: "Future[Any]", make: Callable[[], Any]) -> None:
    try:
        asking.set_result(make())
    except BaseException as error:  # noqa: BLE001 - the thread that asks raises it
        asking.set_exception(error)


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
