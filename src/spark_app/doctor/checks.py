"""Checks of the running stack: the health of each component, and the delivery of a trace, a metric and a log line.

What does not answer is down, unless the stack was started without it: then other services have a container, and it
has none. A container of the stack, which cannot ask Docker, sees this by the name of the service, which no host has.
"""

import importlib.metadata
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal
from urllib.parse import urlsplit

from spark_app.doctor import backends as ask
from spark_app.doctor.backends import Elasticsearch, Jaeger, Prometheus, Target
from spark_app.doctor.certificates import certificates_health
from spark_app.errors import MachineError
from spark_app.eventlog.bridge.self_metrics import ALIVE_SECONDS
from spark_app.formatting import duration, quantity
from spark_app.redaction import redacted
from spark_app.settings import Backends, Settings, process_environment
from spark_app.telemetry import probe
from spark_app.telemetry.export import Signal
from spark_app.telemetry.probe import Sent
from spark_app.vocabulary import names, spark_names
from spark_app.vocabulary.prometheus_names import series

State = Literal["ok", "down", "lost", "left out"]
EVERY_SECONDS: Final = 0.5
_SILENCE, _LAG = series(spark_names.BRIDGE_SILENCE), series(spark_names.BRIDGE_LAG)
BRIDGE: Final = f'{{__name__=~"up|{_LAG}|{_SILENCE}", job="spark-bridge"}}'
_MILLISECOND: Final = 0.0015
LOCAL: Final = frozenset({"localhost", "127.0.0.1"})
NEW_CERTIFICATES: Final = (
    "docker compose -f docker-compose.tls.yml run --rm certificates --rotate, and restart (docs/stack.md, TLS)"
)
NO_CONTAINER: Final = "it was left out of the start, or has stopped: no host has its name"
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
        services: The services of the stack without any of which it cannot be checked.
        health: Returns its state, or None if there is nothing to check; raises `MachineError` if it is down. Takes the
            address, and the services that have a container.
        look_at: Where to look for the cause if it is down.
    """

    name: str
    backend: str
    services: tuple[str, ...]
    health: Callable[[str, frozenset[str]], str | None]
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


def _component(service: str, health: Callable[[str], str]) -> Component:
    """The component of a service that has its name, and whose log says why it is down."""
    return Component(service, service, (service,), lambda url, _: health(url), f"docker logs {service}")


COMPONENTS: Final = (
    Component(
        "collector",
        "collector",
        ("otel-collector",),
        lambda url, _: ask.collector_health(url),
        "docker logs otel-collector",
    ),
    _component("jaeger", lambda url: Jaeger(url).health()),
    _component("prometheus", ask.ready_health),
    Component(
        "targets",
        "prometheus",
        ("prometheus",),
        lambda url, services: targets_health(Prometheus(url), services),
        "the page /targets of Prometheus",
    ),
    _component("elasticsearch", lambda url: Elasticsearch(url).health()),
    _component("alertmanager", ask.ready_health),
    _component("grafana", ask.grafana_health),
    _component("kibana", ask.kibana_health),
    Component(
        "spark_master",
        "spark_master",
        ("spark-master",),
        lambda url, _: ask.spark_health(url),
        "docker logs spark-master, docker logs spark-worker-1",
    ),
    Component(
        "spark_history",
        "spark_history",
        ("spark-history",),
        lambda url, _: ask.history_health(url),
        "docker logs spark-history",
    ),
    _component("jupyter", ask.jupyter_health),
    _component("kafka", ask.kafka_health),
    Component(
        "bridge",
        "prometheus",
        ("spark-bridge", "prometheus"),
        lambda url, _: bridge_health(Prometheus(url)),
        "docker logs spark-bridge",
    ),
    _component("reports", ask.reports_health),
)
LOOK_AT: Final = {component.name: component.look_at for component in COMPONENTS}


def run_checks(settings: Settings, services: frozenset[str], *, seconds: float) -> list[Check]:
    """The health of every component, and the delivery of a probe within some seconds.

    Args:
        settings: Where the components are.
        services: The services of the stack that have a container on this machine; none if that is unknown.
        seconds: The longest wait for the probe.
    """
    components = check_components(settings.reached_backends, services, inside=settings.backends_inside.keys())
    certificates = check_certificates(settings.reached_backends)
    checks = [
        *components,
        *certificates,
        *check_delivery(settings, {check.component: check for check in components}, seconds=seconds),
    ]
    return [replace(check, finding=redacted(check.finding)) for check in checks]  # URLs may contain passwords


def check_components(backends: Backends, services: frozenset[str], *, inside: Collection[str] = ()) -> list[Check]:
    """The health of each component; all are checked at once, so that several timeouts take no longer than one.

    Args:
        backends: Where the components are.
        services: The services of the stack that have a container on this machine; none if that is unknown.
        inside: The components whose address is the name of a container.
    """
    with ThreadPoolExecutor(len(COMPONENTS)) as pool:
        return list(pool.map(lambda each: check_component(each, backends, services, inside=inside), COMPONENTS))


def check_component(
    component: Component, backends: Backends, services: frozenset[str], *, inside: Collection[str] = ()
) -> Check:
    """The health of one component; takes some seconds where it does not answer."""
    url = getattr(backends, component.backend)
    return _health(component, url, services, is_container=component.backend in inside)


def check_certificates(backends: Backends) -> list[Check]:
    """Whether the certificates are good, if anything is asked by HTTPS."""
    try:
        health = certificates_health(backends)
    except MachineError as error:
        return [Check("certificates", "down", str(error), NEW_CERTIFICATES)]
    return [] if health is None else [Check("certificates", "ok", health)]


def targets_health(prometheus: Prometheus, services: frozenset[str]) -> str:
    """The number of scrape targets, all up but those of services that were left out.

    Raises:
        MachineError: A target is down; the message has the reason that Prometheus gives.
    """
    known = prometheus.targets()
    left_out = {target.job for target in known if target.health != "up" and _is_left_out(target, services)}
    targets = [target for target in known if target.health == "up" or not _is_left_out(target, services)]
    down = [target for target in targets if target.health != "up"]
    if down or not targets:
        reasons = "; ".join(
            f"{each.job} {each.url} is {each.health}: {each.error or 'not scraped yet'}" for each in down
        )
        up = f"{len(targets) - len(down)} of {quantity(len(targets), 'target')} up"
        raise MachineError(f"{up}; {reasons or 'nothing is scraped'}")
    others = f", left out: {', '.join(sorted(left_out))}" if left_out else ""
    return f"all {len(targets)} targets up{others}"


def _is_left_out(target: Target, services: frozenset[str]) -> bool:
    """Whether a target of Prometheus is a service that has no container, although others have."""
    host = urlsplit(target.url).hostname
    return bool(services) and host not in services | LOCAL


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
    silence, lag = known.get(_SILENCE), known.get(_LAG)
    if silence is not None and silence > ALIVE_SECONDS:
        raise MachineError(f"it hangs: its loop last ran {duration(1000 * silence)} ago ({prometheus.url})")
    return "up" if lag is None else f"up, {duration(1000 * lag)} behind the newest event"


def check_delivery(settings: Settings, components: Mapping[str, Check], *, seconds: float) -> list[Check]:
    """Sends a probe and waits until each part arrives in its store, unless that is left out.

    Args:
        settings: Where to send it, and where to look for it.
        components: The results for the components by their names.
        seconds: How long to wait.
    """
    backends = settings.reached_backends
    if backends.otlp is None:
        return [Check(route.part, "left out", f"not sent: backends.otlp {_NULL}") for route in ROUTES]
    version = importlib.metadata.version("spark-app")
    sent = probe.send(
        process_environment(), endpoint=backends.otlp, service_version=version, environment=settings.environment
    )
    wanted = {route.part for route in ROUTES if components[route.store].state != "left out"} - _refused(sent)
    accepted = {part: finder for part, finder in finders(backends, sent).items() if part in wanted}
    arrived = awaited(accepted, seconds=seconds)
    return [_arrival(route, backends, sent, arrived, components, seconds=seconds) for route in ROUTES]


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


def _health(component: Component, url: str | None, services: frozenset[str], *, is_container: bool) -> Check:
    if url is None:
        return Check(component.name, "left out", f"backends.{component.backend} {_NULL}")
    try:
        health = component.health(url, services)
    except MachineError as error:
        absent = [service for service in component.services if service not in services]
        if services and absent and _is_local(url):
            return Check(component.name, "left out", f"the stack runs without the service {absent[0]}")
        if is_container and ask.is_unknown_host(error):
            return Check(component.name, "left out", f"{NO_CONTAINER} ({url})")
        return Check(component.name, "down", str(error), component.look_at)
    if health is None:
        return Check(component.name, "left out", f"not scraped ({url})")
    return Check(component.name, "ok", f"{health} ({url})")


def _is_local(address: str) -> bool:
    """Whether an address, `http://HOST:PORT` or `HOST:PORT`, is of this machine."""
    return urlsplit(address if "//" in address else f"//{address}").hostname in LOCAL


def _arrival(
    route: Route,
    backends: Backends,
    sent: Sent,
    arrived: Mapping[str, float],
    components: Mapping[str, Check],
    *,
    seconds: float,
) -> Check:
    collector, store = components["collector"], components[route.store]
    if route.part in _refused(sent):
        if backends.collector and collector.state == "left out":
            return Check(route.part, "left out", f"not sent: {collector.finding}")
        refused = f"the collector did not accept it: {sent.refused[route.signal]}"
        return Check(route.part, "lost", refused, LOOK_AT["collector"])
    if store.state == "left out":
        return Check(route.part, "left out", f"sent; {store.finding}")
    if route.part in arrived:
        return Check(route.part, "ok", f"in {route.store} after {duration(1000 * arrived[route.part])}")
    lost = f"accepted by the collector, but not in {route.store} after {duration(1000 * seconds)}"
    if store.state == "down":
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
