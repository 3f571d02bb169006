"""`spark-app serve`: all runs of this machine in a browser, and the applications of a folder of event logs."""

import threading
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer

from spark_app.commands import options
from spark_app.errors import UsageError

PORT: Final = 8090
LOOPBACK: Final = "127.0.0.1"
LOCAL: Final = (LOOPBACK, "localhost", "::1")

Folder = Annotated[
    str | None,
    typer.Argument(
        metavar="DIR",
        help="Folder of event logs, a path or a URL such as s3://: its applications get reports when they have ended.",
    ),
]


Port = Annotated[
    int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Port to listen on; 0 takes any free one.")
]
Host = Annotated[
    str,
    typer.Option(
        "--host",
        metavar="ADDRESS",
        help="Address to listen on (127.0.0.1); another one asks for the password in SPARK_APP_SERVE_PASSWORD.",
    ),
]
Published = Annotated[
    str | None,
    typer.Option(
        "--published",
        metavar="ADDRESS",
        help="Of a container: the address at which the host publishes its port; 127.0.0.1 needs no password.",
    ),
]
Certificate = Annotated[
    Path | None,
    typer.Option(
        "--certificate",
        metavar="FILE",
        help="PEM file with a certificate, and its key if no key.pem is beside it: the pages by HTTPS.",
    ),
]
IsStack = Annotated[
    bool, typer.Option("--stack", help="Show how the services of the stack are, and which alerts fire.")
]
Open = Annotated[bool, typer.Option("--open", metavar="", help="Open the list in the browser.")]


def serve(
    folder: Folder = None,
    *,
    port: Port = PORT,
    host: Host = LOOPBACK,
    published: Published = None,
    certificate: Certificate = None,
    stack: IsStack = False,
    open_: Open = False,
    config: options.Config = None,
) -> None:
    """List all runs in the browser of this machine, with reports, trends and comparisons, until Ctrl-C."""
    from spark_app.annexes.serve import folder_reports, run_files
    from spark_app.annexes.serve.pages import Pages
    from spark_app.annexes.serve.runs import Runs
    from spark_app.annexes.serve.stack import Stack
    from spark_app.commands import results
    from spark_app.commands.terminal import Terminal
    from spark_app.eventlog.parse.locations import log_path
    from spark_app.report.page_server import Listening, PageServer
    from spark_app.settings import load_settings

    settings, terminal = load_settings(config), Terminal()
    password = None if settings.serve_password is None else settings.serve_password.get_secret_value()
    require_password(host if published is None else published, password)
    runs = Runs(run_files.configured_files(settings))
    logs, ending = None if folder is None else log_path(folder), threading.Event()
    pages = Pages(runs, settings.prices, [*settings.label_properties], Stack(settings) if stack else None)
    listening = Listening(port, host, password, certificate)
    with PageServer(listening, pages) as server, suppress(KeyboardInterrupt):
        terminal.line(f"all runs: {server.url} (until Ctrl-C)", link=server.url)
        if open_:
            results.open_report(terminal, server.url)
        runs.look()
        if logs is not None:
            folder_reports.start(logs, settings, ending, note=terminal.note)
        server.serve_forever()
    ending.set()


def require_password(address: str, password: str | None) -> None:
    """Requires a password where others than users of this machine can ask.

    Raises:
        UsageError: There is none.
    """
    if address not in LOCAL and not password:
        raise UsageError(
            f"{address} is not loopback, so that others could read all reports: set SPARK_APP_SERVE_PASSWORD, which "
            "browsers are then asked for, or listen on 127.0.0.1"
        )
