"""`spark-app serve`: all runs of this machine in a browser."""

from contextlib import suppress
from typing import Annotated, Final

import typer

from spark_app.commands import options

PORT: Final = 8090


def serve(
    *,
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Port on 127.0.0.1; 0 takes any free one.")
    ] = PORT,
    open_: Annotated[bool, typer.Option("--open", metavar="", help="Open the list in the browser.")] = False,
    config: options.Config = None,
) -> None:
    """List all runs in the browser of this machine, with reports, trends and comparisons, until Ctrl-C."""
    from spark_app.commands import results
    from spark_app.commands.terminal import Terminal
    from spark_app.report.served.pages import Pages
    from spark_app.report.served.runs import Runs
    from spark_app.report.served.server import PageServer
    from spark_app.settings import load_settings

    settings, terminal = load_settings(config), Terminal()
    runs = Runs(profiles=settings.profiles_path, runs=settings.runs_path, reports=settings.reports_path)
    with PageServer(port, Pages(runs, settings.prices)) as server, suppress(KeyboardInterrupt):
        terminal.line(f"all runs: {server.url} (until Ctrl-C)", link=server.url)
        if open_:
            results.open_report(terminal, server.url)
        server.serve_forever()
