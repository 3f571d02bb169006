"""The checks of the doctor: is each hop of the stack well, and do a trace, a metric and a log line arrive?"""

import importlib.metadata
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from app import backends as ask
from app.backends import Elasticsearch, Jaeger, Prometheus
from app.errors import MachineError
from app.eventlog.bridge.selfmetrics import ALIVE_SECONDS
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
    """What was found at one hop, and what to look at if it is not well."""

    hop: str
    state: State
    found: str
    look_at: str | None = None


@dataclass(frozen=True, slots=True)
class Hop:
    """A part of the stack, and how one finds out whether it is well.

    Attributes:
        name: What it is called.
        backend: The key of `backends` in the configuration that says where to ask; None there leaves the hop out.
        health: Asks, and says how it is; None where there is nothing to ask for. Raises `MachineError` if it is down.
        look_at: Where one sees why it is down.
    """

    name: str
    backend: str
    health: Callable[[str], str | None]
    look_at: str


@dataclass(frozen=True, slots=True)
class Way:
    """The way of one part of the probe: the store where it must arrive, and what in the collector sends to it."""

    part: str
    signal: Signal
    store: str
    exporter: str


WAYS: Final = (
    Way("trace", "traces", "jaeger", "otlp_grpc/jaeger"),
    Way("metric", "metrics", "prometheus", "otlp_http/prometheus"),
    Way("log", "logs", "elasticsearch", "elasticsearch"),
)
HOPS: Final = (
    Hop("collector", "collector", ask.collector_health, "docker logs otel-collector"),
    Hop("jaeger", "jaeger", lambda url: Jaeger(url).health(), "docker logs jaeger"),
    Hop("prometheus", "prometheus", lambda url: Prometheus(url).health(), "docker logs prometheus"),
    Hop("targets", "prometheus", lambda url: targets_health(Prometheus(url)), "the page /targets of Prometheus"),
    Hop("elasticsearch", "elasticsearch", lambda url: Elasticsearch(url).health(), "docker logs elasticsearch"),
    Hop("alertmanager", "alertmanager", ask.alertmanager_health, "docker logs alertmanager"),
    Hop("grafana", "grafana", ask.grafana_health, "docker logs grafana"),
    Hop("kibana", "kibana", ask.kibana_health, "docker logs kibana"),
    Hop("spark_master", "spark_master", ask.spark_health, "docker logs spark-master, docker logs spark-worker-1"),
    Hop("kafka", "kafka", ask.kafka_health, "docker logs kafka"),
    Hop("bridge", "prometheus", lambda url: bridge_health(Prometheus(url)), "docker logs spark-bridge"),
    Hop("reports", "reports", ask.reports_health, "docker logs reports"),
)
LOOK_AT: Final = {hop.name: hop.look_at for hop in HOPS}


def examined(settings: Settings, *, seconds: float) -> list[Check]:
    """The health of every hop, and what came of a probe that was given some seconds to arrive."""
    hops = healths(settings.backends)
    down = {check.hop for check in hops if check.state == "down"}
    found = [*hops, *arrivals(settings, down=down, seconds=seconds)]
    return [replace(check, found=redacted(check.found)) for check in found]  # addresses may hold passwords


def healths(backends: Backends) -> list[Check]:
    """How each hop is; all are asked at once, so that several that hang cost the time of one."""
    with ThreadPoolExecutor(len(HOPS)) as pool:
        return list(pool.map(lambda hop: _health(hop, getattr(backends, hop.backend)), HOPS))


def targets_health(prometheus: Prometheus) -> str:
    """That all that Prometheus scrapes is up.

    Raises:
        MachineError: Something is not; names it, with the reason that Prometheus knows.
    """
    targets = prometheus.targets()
    down = [target for target in targets if target.health != "up"]
    if down or not targets:
        what = "; ".join(f"{one.job} {one.url} is {one.health}: {one.error or 'not scraped yet'}" for one in down)
        raise MachineError(f"{len(targets) - len(down)} of {len(targets)} targets up; {what or 'nothing is scraped'}")
    return f"all {len(targets)} targets up"


def bridge_health(prometheus: Prometheus) -> str | None:
    """That the bridge of event logs is up and its loop goes round; None where Prometheus scrapes none.

    Raises:
        MachineError: It does not answer Prometheus, or answers and hangs.
    """
    known = {dict(labels).get("__name__"): value for labels, value in prometheus.values(BRIDGE).items()}
    if "up" not in known:
        return None
    if not known["up"]:
        raise MachineError(f"it does not answer Prometheus ({prometheus.url})")
    silence, lag = known.get("spark_bridge_silence_seconds"), known.get("spark_bridge_lag_seconds")
    if silence is not None and silence > ALIVE_SECONDS:
        raise MachineError(f"it hangs: its loop last came round {silence:.0f} s ago ({prometheus.url})")
    return "up" if lag is None else f"up, {lag:.0f} s behind what is written"


def arrivals(settings: Settings, *, down: set[str], seconds: float) -> list[Check]:
    """Sends a probe, and follows each part of it to the store where it must arrive."""
    backends = settings.backends
    if backends.otlp is None:
        return [Check(way.part, "left out", f"not sent: backends.otlp {_NULL}") for way in WAYS]
    version = importlib.metadata.version("spark-app")
    sent = probe.send(
        process_environment(), endpoint=backends.otlp, service_version=version, environment=settings.environment
    )
    taken = {name: finder for name, finder in finders(backends, sent).items() if name not in _refused(sent)}
    arrived = awaited(taken, seconds=seconds)
    return [_arrival(way, backends, sent, arrived, down=down, seconds=seconds) for way in WAYS]


def finders(backends: Backends, sent: Sent) -> dict[str, Callable[[], bool]]:
    """What looks for each part of a probe in the store that it must be in, of the stores that are not left out."""
    found: dict[str, Callable[[], bool]] = {}
    if backends.jaeger is not None:
        found["trace"] = partial(_has_trace, Jaeger(backends.jaeger), sent)
    if backends.prometheus is not None:
        found["metric"] = partial(_has_metric, Prometheus(backends.prometheus), sent)
    if backends.elasticsearch is not None:
        found["log"] = partial(_has_log, Elasticsearch(backends.elasticsearch), sent)
    return found


def awaited(wanted: Mapping[str, Callable[[], bool]], *, seconds: float) -> dict[str, float]:
    """After how many seconds each thing was found; what was not found in time is absent."""
    began = time.monotonic()
    found: dict[str, float] = {}
    while True:
        for name in [name for name in wanted if name not in found]:
            if _is_there(wanted[name]):
                found[name] = time.monotonic() - began
        if len(found) == len(wanted) or time.monotonic() - began > seconds:
            return found
        time.sleep(EVERY_SECONDS)


def _health(hop: Hop, url: str | None) -> Check:
    if url is None:
        return Check(hop.name, "left out", f"backends.{hop.backend} {_NULL}")
    try:
        found = hop.health(url)
    except MachineError as error:
        return Check(hop.name, "down", str(error), hop.look_at)
    if found is None:
        return Check(hop.name, "left out", f"not scraped ({url})")
    return Check(hop.name, "ok", f"{found} ({url})")


def _arrival(
    way: Way, backends: Backends, sent: Sent, arrived: Mapping[str, float], *, down: set[str], seconds: float
) -> Check:
    if way.part in _refused(sent):
        refused = f"the collector did not take it: {sent.refused[way.signal]}"
        return Check(way.part, "lost", refused, LOOK_AT["collector"])
    if getattr(backends, way.store) is None:
        return Check(way.part, "left out", f"sent; backends.{way.store} {_NULL}")
    if way.part in arrived:
        return Check(way.part, "ok", f"in {way.store} after {arrived[way.part]:.1f} s")
    lost = f"the collector took it; it is not in {way.store} after {seconds:.0f} s"
    if way.store in down:
        return Check(way.part, "lost", f"{lost}, which is down", LOOK_AT[way.store])
    look_at = f"{LOOK_AT['collector']} (exporter {way.exporter}), {LOOK_AT[way.store]}"
    return Check(way.part, "lost", f"{lost}{_waiting(way, backends)}", look_at)


def _waiting(way: Way, backends: Backends) -> str:
    """What the collector holds back for a store, if that can be known."""
    query = f'sum(otelcol_exporter_queue_size{{exporter="{way.exporter}"}})'
    try:
        values = Prometheus(backends.prometheus).values(query) if backends.prometheus else {}
    except MachineError:
        return ""
    return "".join(f"; {value:.0f} batches wait in the collector" for value in values.values())


def _is_there(finder: Callable[[], bool]) -> bool:
    try:
        return finder()
    except MachineError:  # that the store does not answer is told by its health
        return False


def _refused(sent: Sent) -> set[str]:
    return {way.part for way in WAYS if way.signal in sent.refused}


def _has_trace(jaeger: Jaeger, sent: Sent) -> bool:
    return bool(jaeger.spans(sent.trace_id))


def _has_metric(prometheus: Prometheus, sent: Sent) -> bool:
    """Whether the series has the very point that was sent; its value falls back with a restart of the collector."""
    query = f'timestamp({series(names.PROBES)}{{job="{names.PROBE_SERVICE_NAME}"}})'
    return any(value >= sent.at - _MILLISECOND for value in prometheus.values(query, at=sent.at + 1).values())


def _has_log(elasticsearch: Elasticsearch, sent: Sent) -> bool:
    return bool(elasticsearch.logs(sent.trace_id))
