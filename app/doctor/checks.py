"""Checks of the running stack: the health of each component, and the delivery of a trace, a metric and a log line."""

import importlib.metadata
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from app.doctor import backends as ask
from app.doctor.backends import Elasticsearch, Jaeger, Prometheus
from app.errors import MachineError
from app.eventlog.bridge.self_metrics import ALIVE_SECONDS
from app.formatting import duration, quantity
from app.redaction import redacted
from app.settings import Backends, Settings, process_environment
from app.telemetry import names, probe
from app.telemetry.export import Signal
from app.telemetry.probe import Sent
from app.telemetry.prometheus_names import series

State = Literal["ok", "down", "lost", "left out"]
EVERY_SECONDS: Final = 0.5
BRIDGE: Final = '{__name__=~"up|spark_bridge_(lag|silence)_seconds", job="spark-bridge"}'
_MILLISECOND: Final = 0.0015
_NULL: Final = "is null in the configuration"


@dataclass(frozen=True, slots=True)
class Check:
    """The result for one component or one part of the probe, and where to look if it is unhealthy."""

    component: str
    state: State
    finding: str
    look_at: str | None = None


@dataclass(frozen=True, slots=True)
class Component:
    """A component of the stack and its health check.

    Attributes:
        name: The name in the table.
        backend: The key of `backends` in the configuration with its address; null there leaves the component out.
        health: Returns its state, or None if there is nothing to check; raises `MachineError` if it is down.
        look_at: Where to look for the cause if it is down.
    """

    name: str
    backend: str
    health: Callable[[str], str | None]
    look_at: str


@dataclass(frozen=True, slots=True)
class Route:
    """The route of one part of the probe: the store that it must reach, and the exporter of the collector to it."""

    part: str
    signal: Signal
    store: str
    exporter: str


ROUTES: Final = (
    Route("trace", "traces", "jaeger", "otlp_grpc/jaeger"),
    Route("metric", "metrics", "prometheus", "otlp_http/prometheus"),
    Route("log", "logs", "elasticsearch", "elasticsearch"),
)
COMPONENTS: Final = (
    Component("collector", "collector", ask.collector_health, "docker logs otel-collector"),
    Component("jaeger", "jaeger", lambda url: Jaeger(url).health(), "docker logs jaeger"),
    Component("prometheus", "prometheus", ask.ready_health, "docker logs prometheus"),
    Component("targets", "prometheus", lambda url: targets_health(Prometheus(url)), "the page /targets of Prometheus"),
    Component("elasticsearch", "elasticsearch", lambda url: Elasticsearch(url).health(), "docker logs elasticsearch"),
    Component("alertmanager", "alertmanager", ask.ready_health, "docker logs alertmanager"),
    Component("grafana", "grafana", ask.grafana_health, "docker logs grafana"),
    Component("kibana", "kibana", ask.kibana_health, "docker logs kibana"),
    Component("spark_master", "spark_master", ask.spark_health, "docker logs spark-master, docker logs spark-worker-1"),
    Component("kafka", "kafka", ask.kafka_health, "docker logs kafka"),
    Component("bridge", "prometheus", lambda url: bridge_health(Prometheus(url)), "docker logs spark-bridge"),
    Component("reports", "reports", ask.reports_health, "docker logs reports"),
)
LOOK_AT: Final = {component.name: component.look_at for component in COMPONENTS}


def run_checks(settings: Settings, *, seconds: float) -> list[Check]:
    """The health of every component, and the delivery of a probe within some seconds."""
    components = check_components(settings.backends)
    down = {check.component for check in components if check.state == "down"}
    checks = [*components, *check_delivery(settings, down=down, seconds=seconds)]
    return [replace(check, finding=redacted(check.finding)) for check in checks]  # URLs may contain passwords


def check_components(backends: Backends) -> list[Check]:
    """The health of each component; all are checked at once, so that several timeouts take no longer than one."""
    with ThreadPoolExecutor(len(COMPONENTS)) as pool:
        return list(pool.map(lambda each: _health(each, getattr(backends, each.backend)), COMPONENTS))


def targets_health(prometheus: Prometheus) -> str:
    """The number of scrape targets, all up.

    Raises:
        MachineError: A target is down; the message has the reason that Prometheus gives.
    """
    targets = prometheus.targets()
    down = [target for target in targets if target.health != "up"]
    if down or not targets:
        reasons = "; ".join(
            f"{each.job} {each.url} is {each.health}: {each.error or 'not scraped yet'}" for each in down
        )
        up = f"{len(targets) - len(down)} of {quantity(len(targets), 'target')} up"
        raise MachineError(f"{up}; {reasons or 'nothing is scraped'}")
    return f"all {len(targets)} targets up"


def bridge_health(prometheus: Prometheus) -> str | None:
    """Whether the bridge is up and its loop runs; None if Prometheus scrapes no bridge.

    Raises:
        MachineError: The bridge is down, or its loop hangs.
    """
    known = {dict(labels).get("__name__"): value for labels, value in prometheus.values(BRIDGE).items()}
    if "up" not in known:
        return None
    if not known["up"]:
        raise MachineError(f"Prometheus cannot scrape it ({prometheus.url})")
    silence, lag = known.get("spark_bridge_silence_seconds"), known.get("spark_bridge_lag_seconds")
    if silence is not None and silence > ALIVE_SECONDS:
        raise MachineError(f"it hangs: its loop last ran {duration(1000 * silence)} ago ({prometheus.url})")
    return "up" if lag is None else f"up, {duration(1000 * lag)} behind the newest event"


def check_delivery(settings: Settings, *, down: set[str], seconds: float) -> list[Check]:
    """Sends a probe and waits until each part arrives in its store."""
    backends = settings.backends
    if backends.otlp is None:
        return [Check(route.part, "left out", f"not sent: backends.otlp {_NULL}") for route in ROUTES]
    version = importlib.metadata.version("spark-app")
    sent = probe.send(
        process_environment(), endpoint=backends.otlp, service_version=version, environment=settings.environment
    )
    accepted = {part: finder for part, finder in finders(backends, sent).items() if part not in _refused(sent)}
    arrived = awaited(accepted, seconds=seconds)
    return [_arrival(route, backends, sent, arrived, down=down, seconds=seconds) for route in ROUTES]


def finders(backends: Backends, sent: Sent) -> dict[str, Callable[[], bool]]:
    """A function per part of the probe that looks for it in its store; stores that are not configured have none."""
    searches: dict[str, Callable[[], bool]] = {}
    if backends.jaeger is not None:
        searches["trace"] = partial(_has_trace, Jaeger(backends.jaeger), sent)
    if backends.prometheus is not None:
        searches["metric"] = partial(_has_metric, Prometheus(backends.prometheus), sent)
    if backends.elasticsearch is not None:
        searches["log"] = partial(_has_log, Elasticsearch(backends.elasticsearch), sent)
    return searches


def awaited(wanted: Mapping[str, Callable[[], bool]], *, seconds: float) -> dict[str, float]:
    """The seconds until each part was found; parts that were not found in time are absent."""
    began = time.monotonic()
    arrived: dict[str, float] = {}
    while True:
        for name in [name for name in wanted if name not in arrived]:
            if _is_there(wanted[name]):
                arrived[name] = time.monotonic() - began
        if len(arrived) == len(wanted) or time.monotonic() - began > seconds:
            return arrived
        time.sleep(EVERY_SECONDS)


def _health(component: Component, url: str | None) -> Check:
    if url is None:
        return Check(component.name, "left out", f"backends.{component.backend} {_NULL}")
    try:
        health = component.health(url)
    except MachineError as error:
        return Check(component.name, "down", str(error), component.look_at)
    if health is None:
        return Check(component.name, "left out", f"not scraped ({url})")
    return Check(component.name, "ok", f"{health} ({url})")


def _arrival(
    route: Route, backends: Backends, sent: Sent, arrived: Mapping[str, float], *, down: set[str], seconds: float
) -> Check:
    if route.part in _refused(sent):
        refused = f"the collector did not accept it: {sent.refused[route.signal]}"
        return Check(route.part, "lost", refused, LOOK_AT["collector"])
    if getattr(backends, route.store) is None:
        return Check(route.part, "left out", f"sent; backends.{route.store} {_NULL}")
    if route.part in arrived:
        return Check(route.part, "ok", f"in {route.store} after {duration(1000 * arrived[route.part])}")
    lost = f"accepted by the collector, but not in {route.store} after {duration(1000 * seconds)}"
    if route.store in down:
        return Check(route.part, "lost", f"{lost}, which is down", LOOK_AT[route.store])
    look_at = f"{LOOK_AT['collector']} (exporter {route.exporter}), {LOOK_AT[route.store]}"
    return Check(route.part, "lost", f"{lost}{_waiting(route, backends)}", look_at)


def _waiting(route: Route, backends: Backends) -> str:
    """The batches that the collector queues for a store, if Prometheus knows."""
    query = f'sum(otelcol_exporter_queue_size{{exporter="{route.exporter}"}})'
    try:
        values = Prometheus(backends.prometheus).values(query) if backends.prometheus else {}
    except MachineError:
        return ""
    return "".join(f"; {value:.0f} batches are queued in the collector" for value in values.values())


def _is_there(finder: Callable[[], bool]) -> bool:
    try:
        return finder()
    except MachineError:  # the health check of the store reports it
        return False


def _refused(sent: Sent) -> set[str]:
    return {route.part for route in ROUTES if route.signal in sent.refused}


def _has_trace(jaeger: Jaeger, sent: Sent) -> bool:
    return bool(jaeger.spans(sent.trace_id))


def _has_metric(prometheus: Prometheus, sent: Sent) -> bool:
    """Whether the series has the point that was sent; its value resets when the collector restarts."""
    query = f'timestamp({series(names.PROBES)}{{job="{names.PROBE_SERVICE_NAME}"}})'
    return any(value >= sent.at - _MILLISECOND for value in prometheus.values(query, at=sent.at + 1).values())


def _has_log(elasticsearch: Elasticsearch, sent: Sent) -> bool:
    return bool(elasticsearch.logs(sent.trace_id))
