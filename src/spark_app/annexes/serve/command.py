"""`spark-app serve`: all runs of this machine in a browser, and the applications of a folder of event logs."""

import threading
from contextlib import suppress
from typing import Annotated, Final

import typer

from spark_app.commands import options

PORT: Final = 8090

Folder = Annotated[
    str | None,
    typer.Argument(
        metavar="DIR",
        help="Folder of event logs, a path or a URL such as s3://: its applications get reports when they have ended.",
    ),
]


def serve(
    folder: Folder = None,
    *,
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Port on 127.0.0.1; 0 takes any free one.")
    ] = PORT,
    open_: Annotated[bool, typer.Option("--open", metavar="", help="Open the list in the browser.")] = False,
    config: options.Config = None,
) -> None:
    """List all runs in the browser of this machine, with reports, trends and comparisons, until Ctrl-C."""
    from spark_app.annexes.serve import run_files
    from spark_app.annexes.serve.folder_reports import FolderReports
    from spark_app.annexes.serve.pages import Pages
    from spark_app.annexes.serve.runs import Runs
    from spark_app.commands import results
    from spark_app.commands.terminal import Terminal
    from spark_app.eventlog.diagnoses.thresholds import load_thresholds
    from spark_app.eventlog.parse.locations import log_path
    from spark_app.report.served.server import PageServer
    from spark_app.settings import load_settings

    settings, terminal = load_settings(config), Terminal()
    runs = Runs(run_files.configured_files(settings))
    logs, ending = None if folder is None else log_path(folder), threading.Event()
    with (
        PageServer(port, Pages(runs, settings.prices, [*settings.label_properties])) as server,
        suppress(KeyboardInterrupt),
    ):
        terminal.line(f"all runs: {server.url} (until Ctrl-C)", link=server.url)
        if open_:
            results.open_report(terminal, server.url)
        runs.look()
        if logs is not None:
            reports = FolderReports(logs, settings, load_thresholds(config), note=terminal.note)
            threading.Thread(target=reports.follow, args=(ending,), name="reports", daemon=True).start()
        server.serve_forever()
    ending.set()
