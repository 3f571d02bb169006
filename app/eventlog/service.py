"""Runs a bridge until it is told to end: its state, its port, its exporters, and who is told what."""

import gc
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from app.errors import ConfigError
from app.eventlog.bridge import POLL_SECONDS, Bridge, Options
from app.eventlog.export import Window, metrics_data, resource_of, sdk_spans
from app.eventlog.journal import State
from app.eventlog.metrics import Aggregate
from app.eventlog.selfmetrics import SelfMetrics
from app.eventlog.sending import Told
from app.settings import process_environment
from app.telemetry.export import Deadline, Exporters, all_done, network_exporters
from app.telemetry.logs import quiet_sdk
from app.telemetry.problems import Problems
from app.telemetry.setup import is_off

METRICS_SECONDS: Final = 10.0
"""Between two exports of metrics, unless OTEL_METRIC_EXPORT_INTERVAL (milliseconds) says otherwise."""
SHUTDOWN_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Address:
    """Where a bridge tells of itself."""

    host: str
    port: int


def serve(
    folder: Path,
    *,
    state: Path,
    address: Address,
    options: Options,
    environment: str,
    say: Callable[[str], None],
    ending: threading.Event,
) -> None:
    """Follows a folder of event logs until `ending` is set, and sends what waits then.

    Raises:
        ConfigError: There is no endpoint to send to.
        MachineError: The state cannot be kept, or the port is taken.
    """
    problems = Problems()
    quiet_sdk(problems)
    exporters = _exporters(problems, say=say)
    kept = State(state)
    bridge = Bridge(folder, state=kept, export=Otlp(exporters, environment, problems), say=say, options=options)
    own = SelfMetrics(bridge.standing, folder, host=address.host, port=address.port)
    say(f"following {folder}; /metrics and /health on {address.host}:{own.port}")
    gc.freeze()  # what is loaded now stays: the collector need not look at it again
    while not ending.is_set():
        if not bridge.turn():
            ending.wait(POLL_SECONDS / 2)
        for problem in problems.unreported():
            say(problem)
    bridge.close()
    all_done([each.shutdown for each in exporters.present()], deadline=Deadline(SHUTDOWN_SECONDS), problems=problems)
    own.close()
    kept.close()


def metrics_seconds() -> float:
    """How often metrics are sent."""
    text = process_environment().get("OTEL_METRIC_EXPORT_INTERVAL", "").strip()
    return int(text) / 1000 if text.isdigit() and int(text) else METRICS_SECONDS


class Otlp:
    """Sends over OTLP; a signal without an endpoint is left out."""

    def __init__(self, exporters: Exporters, environment: str, problems: Problems) -> None:
        """Sends to some exporters, of which each call is made by one thread."""
        self._exporters, self._environment, self._problems = exporters, environment, problems

    def spans(self, batch: Sequence[Told]) -> bool:
        """Whether spans were accepted."""
        exporter = self._exporters.spans
        return exporter is None or self._accepted(lambda: exporter.export(self._made(batch)))

    def numbers(self, numbers: Aggregate, *, started_ns: int, ended_ns: int) -> bool:
        """Whether what was counted since a start was accepted."""
        exporter, window = self._exporters.metrics, Window(started_ns, ended_ns, is_delta=False)
        requests = metrics_data(numbers, window, environment=self._environment)
        return exporter is None or all(self._accepted(partial(exporter.export, request)) for request in requests)

    def _made(self, batch: Sequence[Told]) -> list[object]:
        return [
            made
            for told in batch
            for made in sdk_spans([told.span], resource_of(told.application, environment=self._environment))
        ]

    def _accepted(self, export: Callable[[], object]) -> bool:
        results: list[object] = []
        self._problems.guard("the exporter failed", lambda: results.append(export()))
        return any(getattr(result, "name", None) == "SUCCESS" for result in results)


def _exporters(problems: Problems, *, say: Callable[[str], None]) -> Exporters:
    variables = process_environment()
    exporters = Exporters() if is_off(variables) else network_exporters(variables, problems=problems)
    if exporters.spans is None and exporters.metrics is None:
        told = "".join(f"; {problem}" for problem in problems)
        raise ConfigError(f"there is nowhere to send to: set OTEL_EXPORTER_OTLP_ENDPOINT{told}")
    for signal, exporter in (("spans", exporters.spans), ("metrics", exporters.metrics)):
        if exporter is None:
            say(f"{signal} are not sent: there is no endpoint for them")
    return exporters
