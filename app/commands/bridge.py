"""`spark-app bridge`: follows a folder of event logs and sends what they tell."""

import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.commands import options

if TYPE_CHECKING:
    from app.telemetry.outlet import Outlet
    from app.telemetry.problems import Problems

LOOK_SECONDS: Final = 5.0
"""Between two looks for runs whose process was killed."""

State = Annotated[
    Path | None,
    typer.Option(
        "--state", metavar="DIR", help="Folder of what a restart needs; by default bridge/ in the home folder."
    ),
]
DeadAfter = Annotated[
    float,
    typer.Option(
        "--dead-after", metavar="S", min=1, help="Seconds of silence after which a log that has no end is given up."
    ),
]


def bridge(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of event logs (spark.eventLog.dir).")],
    *,
    state: State = None,
    metrics_host: Annotated[
        str, typer.Option("--metrics-host", metavar="HOST", help="Address that serves /metrics and /health.")
    ] = "127.0.0.1",
    metrics_port: Annotated[
        int, typer.Option("--metrics-port", metavar="PORT", min=0, max=65535, help="Port of /metrics and /health.")
    ] = 9464,
    dead_after: DeadAfter = 3600,
    config: options.Config = None,
) -> None:
    """Follow a folder of Spark event logs, and send spans and metrics over OTLP while the applications run."""
    # Telemetry is imported only now: --help and a wrong argument answer at once.
    from app.commands.terminal import Terminal
    from app.eventlog.bridge import service
    from app.eventlog.bridge.bridge import Options
    from app.eventlog.diagnoses.thresholds import load_thresholds
    from app.settings import load_settings

    settings, ending = load_settings(config), threading.Event()
    terminal = Terminal()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: ending.set())
    service.serve(
        folder,
        state=state or settings.home / "bridge",
        address=service.Address(metrics_host, metrics_port),
        options=Options(dead_after, service.metrics_seconds(), load_thresholds(config)),
        environment=settings.environment,
        say=terminal.note,
        meanwhile=partial(_complete_killed, settings.runs_path, say=terminal.note, ending=ending),
        ending=ending,
    )


def _complete_killed(
    runs: Path, out: "Outlet", problems: "Problems", *, say: Callable[[str], None], ending: threading.Event
) -> None:
    """Completes runs of ours whose process was killed, as long as the bridge lives; what is in the way is said once."""
    from app import records
    from app.telemetry import killed

    said, tell = set[str](), partial(killed.end, send=out.send, problems=problems)

    def note(text: str) -> None:
        if text not in said:
            said.add(text)
            say(text)

    while not ending.is_set():
        try:
            records.complete(runs, tell, note=note)
        except OSError as error:
            note(f"killed runs are not completed: {error}")
        ending.wait(LOOK_SECONDS)
