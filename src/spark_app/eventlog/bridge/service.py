"""Runs a bridge until it is stopped: opens its checkpoint, its port and its exporters, and prints its messages."""

import gc
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_app.errors import ConfigError, MachineError
from spark_app.eventlog.bridge.bridge import Bridge, Options
from spark_app.eventlog.bridge.checkpoint import CheckpointInUseError, CheckpointStore
from spark_app.eventlog.bridge.export import Window, metrics_data, resource_of, sdk_spans
from spark_app.eventlog.bridge.metrics import Aggregate
from spark_app.eventlog.bridge.self_metrics import BridgeStatus, SelfMetrics
from spark_app.eventlog.bridge.span_queue import OwnedSpan
from spark_app.eventlog.parse.locations import LogPath
from spark_app.local_files import try_lock_folder
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.otlp_client import OtlpClient, otlp_client

METRICS_SECONDS: Final = 10.0
"""The default interval between two exports of metrics."""
DELTA_NANOSECONDS: Final = 1_000_000
"""The length of the interval of new counts, which ends when they are sent (`spark_app.telemetry.export.with_bases`)."""
STANDBY_SECONDS: Final = 1.0
"""How often a bridge that waits for another one looks whether that is gone."""
REST_SECONDS: Final = 0.25
"""The pause between two turns when nothing is left to read."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a bridge serves /metrics and /health, by HTTPS if it has the file of a key and its certificate."""

    host: str
    port: int
    certificate: Path | None = None


@dataclass(frozen=True, slots=True)
class State:
    """The folder of the checkpoint, and whether to wait while another bridge uses it, and to take over then."""

    folder: Path
    is_standby: bool


def serve(
    folder: LogPath,
    *,
    state: State,
    address: Address,
    options: Options,
    environment: str,
    print_line: Callable[[str], None],
    meanwhile: Callable[[OtlpClient, TelemetryErrors], object],
    ending: threading.Event,
) -> None:
    """Follows a folder of event logs until `ending` is set, and then sends the queued spans.

    Args:
        folder: The event logs.
        state: Where the checkpoint is.
        address: Where the bridge serves /metrics and /health.
        options: The options of the bridge.
        environment: The deployment environment, unless an OTEL variable names another.
        print_line: Prints a line for the operator.
        meanwhile: A background task; the bridge calls it once, on a thread of its own.
        ending: Stops the bridge when it is set.

    Raises:
        ConfigError: No OTLP endpoint is configured.
        MachineError: The checkpoint cannot be written, another bridge uses it or the folder, or the port is in use.
    """
    problems, status = TelemetryErrors(), BridgeStatus()
    with ExitStack() as resources:
        out = resources.enter_context(closing(_outlet(problems, print_line=print_line)))
        listening = SelfMetrics(status, folder, host=address.host, port=address.port, certificate=address.certificate)
        own = resources.enter_context(closing(listening))
        kept = _checkpoint(state, status, print_line=print_line, ending=ending)
        if kept is None:
            return
        resources.enter_context(closing(kept))
        resources.enter_context(_claimed(folder))
        export = Otlp(out, environment=environment)
        bridge = Bridge(folder, state=kept, export=export, print_line=print_line, options=options, status=status)
        print_line(f"following {folder}; /metrics and /health on {address.host}:{own.port}")
        task = ("the background task of the bridge has stopped", meanwhile, out, problems)
        threading.Thread(target=problems.guard, args=task, name="meanwhile", daemon=True).start()
        status.is_standby = False
        gc.freeze()  # modules stay loaded: garbage collections need not visit them
        while not ending.is_set():
            if not bridge.turn():
                ending.wait(REST_SECONDS)
            for problem in problems.unlogged():
                print_line(problem)
        bridge.close()


@contextmanager
def _claimed(folder: LogPath) -> Iterator[None]:
    """Keeps other bridges from a folder of this machine; on an object store it cannot.

    Raises:
        MachineError: Another bridge follows it, with a checkpoint of its own.
    """
    if not isinstance(folder, Path):
        yield
        return
    with try_lock_folder(folder) as is_free:
        if not is_free:
            text = f"another bridge follows {folder} with another checkpoint: each would export everything"
            raise MachineError(f"{text}; give both the same --state, and this one --standby")
        yield


def _checkpoint(
    state: State, status: BridgeStatus, *, print_line: Callable[[str], None], ending: threading.Event
) -> CheckpointStore | None:
    """The checkpoint, when no other bridge uses it; None where the wait is ended before.

    Raises:
        MachineError: It cannot be written, or another bridge uses it and this one is not to wait.
    """
    while not ending.is_set():
        try:
            return CheckpointStore(state.folder)
        except CheckpointInUseError:
            if not state.is_standby:
                raise
        if not status.is_standby:
            print_line(
                f"another bridge uses the checkpoint in {state.folder}; this one takes over when that one has ended"
            )
        status.is_standby, status.last_heartbeat = True, time.monotonic()
        ending.wait(STANDBY_SECONDS)
    return None


class Otlp:
    """Sends over OTLP; a signal without an endpoint counts as accepted."""

    def __init__(self, out: OtlpClient, *, environment: str) -> None:
        """One thread sends spans, and another sends metrics."""
        self._out, self._environment = out, environment

    def spans(self, batch: Sequence[OwnedSpan]) -> bool:
        """Sends spans, and returns whether the collector accepted them."""
        if not self._out.takes_spans:
            return True
        resources = (resource_of(owned.application, environment=self._environment) for owned in batch)
        spans = [sdk_spans([owned.span], resource)[0] for owned, resource in zip(batch, resources, strict=True)]
        return self._out.send_spans(spans)

    def numbers(self, numbers: Aggregate, *, started_ns: int, ended_ns: int) -> bool:
        """Sends cumulative totals, and returns whether the collector accepted them."""
        return self._counted(numbers, Window(started_ns, ended_ns, is_delta=False))

    def new_numbers(self, numbers: Aggregate) -> bool:
        """Sends counts once, as deltas, and returns whether the collector accepted them."""
        now = time.time_ns()
        return self._counted(numbers, Window(now - DELTA_NANOSECONDS, now, is_delta=True))

    def _counted(self, numbers: Aggregate, window: Window) -> bool:
        requests = metrics_data(numbers, window, environment=self._environment)
        return not self._out.takes_metrics or all(self._out.send_metrics(request) for request in requests)


def _outlet(problems: TelemetryErrors, *, print_line: Callable[[str], None]) -> OtlpClient:
    out = otlp_client(errors=problems)
    if not (out.takes_spans or out.takes_metrics):
        reasons = "".join(f"; {problem}" for problem in problems)
        raise ConfigError(f"no OTLP endpoint is configured: set OTEL_EXPORTER_OTLP_ENDPOINT{reasons}")
    for signal, is_taken in (("spans", out.takes_spans), ("metrics", out.takes_metrics)):
        if not is_taken:
            print_line(f"{signal} are not exported: no OTLP endpoint is configured for them")
    return out
