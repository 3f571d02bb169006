"""`spark-app bridge`: follows a folder of event logs and exports spans and metrics over OTLP."""

import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from spark_app.commands import options
from spark_app.errors import UsageError

if TYPE_CHECKING:
    from spark_app.eventlog.bridge.bridge import Options
    from spark_app.eventlog.parse.locations import LogPath
    from spark_app.settings import Settings
    from spark_app.telemetry.errors import TelemetryErrors
    from spark_app.telemetry.otlp_client import OtlpClient

KILLED_RUNS_SECONDS: Final = 5.0
"""Time between two searches for runs whose process was killed, or that were not delivered."""

Folder = Annotated[
    str,
    typer.Argument(metavar="DIR", help="Folder of event logs (spark.eventLog.dir): a path, or a URL such as s3://."),
]
State = Annotated[
    Path | None,
    typer.Option(
        "--state", metavar="DIR", help="Folder for the checkpoint of the bridge; by default bridge/ in the home folder."
    ),
]
Port = Annotated[
    int, typer.Option("--metrics-port", metavar="PORT", min=0, max=65535, help="Port of /metrics and /health.")
]
Certificate = Annotated[
    Path | None,
    typer.Option(
        "--metrics-certificate",
        metavar="FILE",
        help="PEM file with a certificate, and its key if no key.pem is beside it: /metrics and /health by HTTPS.",
    ),
]
DeadAfter = Annotated[
    float,
    typer.Option("--dead-after", metavar="S", min=1, help="Idle seconds before an unfinished log is abandoned."),
]
Standby = Annotated[
    bool, typer.Option("--standby", metavar="", help="Wait while another bridge uses the checkpoint; then take over.")
]


def bridge(
    folder: Folder,
    *,
    state: State = None,
    metrics_host: Annotated[
        str, typer.Option("--metrics-host", metavar="HOST", help="Address that serves /metrics and /health.")
    ] = "127.0.0.1",
    metrics_port: Port = 9464,
    metrics_certificate: Certificate = None,
    dead_after: DeadAfter = 3600,
    standby: Standby = False,
    config: options.Config = None,
) -> None:
    """Follow a folder of Spark event logs and export spans and metrics over OTLP while the applications run."""
    # Telemetry is imported only now: --help and a wrong argument answer at once.
    from spark_app.commands.terminal import Terminal
    from spark_app.eventlog.bridge import service
    from spark_app.settings import load_settings

    settings, ending = load_settings(config), threading.Event()
    terminal = Terminal()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: ending.set())
    service.serve(
        _followed(folder),
        state=service.State(state or settings.home / "bridge", is_standby=standby),
        address=service.Address(metrics_host, metrics_port, metrics_certificate),
        options=_options(settings, config, dead_after=dead_after),
        environment=settings.environment,
        print_line=terminal.note,
        meanwhile=partial(_complete_runs, settings, print_line=terminal.note, ending=ending),
        ending=ending,
    )


def _options(settings: "Settings", config: Path | None, *, dead_after: float) -> "Options":
    """What the configuration and the environment say."""
    from spark_app.eventlog.bridge import service
    from spark_app.eventlog.bridge.bridge import Options
    from spark_app.eventlog.diagnoses.thresholds import load_thresholds
    from spark_app.eventlog.labels import LabelSources
    from spark_app.settings import process_environment
    from spark_app.telemetry.export import resource_attributes
    from spark_app.telemetry.flushing import metric_export_seconds

    interval = metric_export_seconds(process_environment(), default=service.METRICS_SECONDS)
    labels = LabelSources.configured(settings, resource_attributes())
    return Options(dead_after, interval, load_thresholds(config), labels)


def _followed(folder: str) -> "LogPath":
    """The folder to follow.

    Raises:
        UsageError: It is an application of a History Server.
        InputError: Its storage is not known.
        MachineError: The driver of its storage is not installed.
    """
    from spark_app.eventlog.bridge.self_metrics import ALIVE_SECONDS
    from spark_app.eventlog.parse import history_server
    from spark_app.eventlog.parse.locations import log_path
    from spark_app.eventlog.parse.storage import without_secrets

    if history_server.application(folder) is not None:
        where = "name the folder that it reads (spark.history.fs.logDirectory)"
        raise UsageError(f"a bridge cannot follow the History Server {without_secrets(folder)}: {where}")
    return log_path(folder, patience=ALIVE_SECONDS / 2)


def _complete_runs(
    settings: "Settings",
    out: "OtlpClient",
    problems: "TelemetryErrors",
    *,
    print_line: Callable[[str], None],
    ending: threading.Event,
) -> None:
    """Marks spark-app runs whose process died, and sends what runs could not deliver; repeats no message."""
    from spark_app.observe import run_copies
    from spark_app.runs import liveness
    from spark_app.telemetry import crash_recovery, resend

    runs = settings.runs_path
    noted, end_spans = set[str](), partial(crash_recovery.end, send=out.send, errors=problems)

    def note(text: str) -> None:
        if text not in noted:
            noted.add(text)
            print_line(text)

    def send_rest(folder: Path) -> None:
        resent = resend.resend(folder, out)
        if not resent.is_complete:
            raise ConnectionError("the endpoint has not accepted everything; the bridge tries again")
        note(f"{folder.name}: {resent}")

    while not ending.is_set():
        try:
            run_copies.keep_runs(settings, liveness.mark_killed_runs(runs, end_spans, note=note), note=note)
            run_copies.send(settings, note=note)
            for folder in resend.undelivered(runs):
                if not problems.guard(f"cannot send what is left of {folder.name}", send_rest, folder):
                    break
        except OSError as error:
            note(f"cannot complete runs in {runs}: {error}")
        ending.wait(KILLED_RUNS_SECONDS)
