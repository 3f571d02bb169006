"""Runs a bridge until it shall end: with its state, its port, its exporters and its messages."""

import gc
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.errors import ConfigError
from app.eventlog.bridge.bridge import Bridge, Options
from app.eventlog.bridge.export import Window, metrics_data, resource_of, sdk_spans
from app.eventlog.bridge.journal import State
from app.eventlog.bridge.metrics import Aggregate
from app.eventlog.bridge.selfmetrics import SelfMetrics, Standing
from app.eventlog.bridge.sending import OwnedSpan
from app.settings import process_environment
from app.telemetry.outlet import Outlet, outlet
from app.telemetry.problems import Problems

METRICS_SECONDS: Final = 10.0
"""Between two exports of metrics, unless OTEL_METRIC_EXPORT_INTERVAL (milliseconds) says otherwise."""
DELTA_NANOSECONDS: Final = 1_000_000
"""New counts are dated just before they are sent; see `app.telemetry.export.narrowed`."""
REST_SECONDS: Final = 0.25
"""Between two turns when nothing is left to read."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a bridge serves /metrics and /health."""

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
    meanwhile: Callable[[Outlet, Problems], object],
    ending: threading.Event,
) -> None:
    """Follows a folder of event logs until `ending` is set, and sends what waits then.

    Args:
        folder: The event logs.
        state: The folder of what a restart needs.
        address: Where it serves /metrics and /health.
        options: How it follows.
        environment: The deployment environment, unless an OTEL variable names another.
        say: Prints a line for the operator.
        meanwhile: Is called once, on a thread of its own.
        ending: Ends the bridge when it is set.

    Raises:
        ConfigError: There is no endpoint to send to.
        MachineError: The state cannot be kept, or the port is taken.
    """
    problems, standing = Problems(), Standing()
    with (
        closing(_outlet(problems, say=say)) as out,
        closing(State(state)) as kept,
        closing(SelfMetrics(standing, folder, host=address.host, port=address.port)) as own,
    ):
        export = Otlp(out, environment=environment)
        bridge = Bridge(folder, state=kept, export=export, say=say, options=options, standing=standing)
        say(f"following {folder}; /metrics and /health on {address.host}:{own.port}")
        aside = ("what goes on beside has ended", meanwhile, out, problems)
        threading.Thread(target=problems.guard, args=aside, name="meanwhile", daemon=True).start()
        gc.freeze()  # what is loaded now stays: the collector need not look at it again
        while not ending.is_set():
            if not bridge.turn():
                ending.wait(REST_SECONDS)
            for problem in problems.unreported():
                say(problem)
        bridge.close()


def metrics_seconds() -> float:
    """How often metrics are sent."""
    text = process_environment().get("OTEL_METRIC_EXPORT_INTERVAL", "").strip()
    return int(text) / 1000 if text.isdigit() and int(text) else METRICS_SECONDS


class Otlp:
    """Sends over OTLP; a signal without an endpoint counts as accepted."""

    def __init__(self, out: Outlet, *, environment: str) -> None:
        """Spans and metrics are each sent by one thread."""
        self._out, self._environment = out, environment

    def spans(self, batch: Sequence[OwnedSpan]) -> bool:
        """Sends spans; gives back whether they were accepted."""
        if not self._out.takes_spans:
            return True
        resources = (resource_of(told.application, environment=self._environment) for told in batch)
        made = [sdk_spans([told.span], resource)[0] for told, resource in zip(batch, resources, strict=True)]
        return self._out.send_spans(made)

    def numbers(self, numbers: Aggregate, *, started_ns: int, ended_ns: int) -> bool:
        """Sends totals since a start; gives back whether they were accepted."""
        return self._counted(numbers, Window(started_ns, ended_ns, is_delta=False))

    def new_numbers(self, numbers: Aggregate) -> bool:
        """Sends counts that are sent only once, as deltas; gives back whether they were accepted."""
        now = time.time_ns()
        return self._counted(numbers, Window(now - DELTA_NANOSECONDS, now, is_delta=True))

    def _counted(self, numbers: Aggregate, window: Window) -> bool:
        requests = metrics_data(numbers, window, environment=self._environment)
        return not self._out.takes_metrics or all(self._out.send_metrics(request) for request in requests)


def _outlet(problems: Problems, *, say: Callable[[str], None]) -> Outlet:
    out = outlet(problems=problems)
    if not (out.takes_spans or out.takes_metrics):
        told = "".join(f"; {problem}" for problem in problems)
        raise ConfigError(f"there is nowhere to send to: set OTEL_EXPORTER_OTLP_ENDPOINT{told}")
    for signal, is_taken in (("spans", out.takes_spans), ("metrics", out.takes_metrics)):
        if not is_taken:
            say(f"{signal} are not sent: there is no endpoint for them")
    return out
