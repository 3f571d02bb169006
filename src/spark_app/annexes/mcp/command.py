"""`spark-app mcp [DIR]`: answers the questions of assistants about runs, over the Model Context Protocol."""

from typing import Annotated

import typer

from spark_app.commands import options
from spark_app.errors import InputError


def mcp(
    folder: Annotated[
        str | None, typer.Argument(metavar="DIR", help="Folder of event logs, or its URL; by default spark-events/.")
    ] = None,
    *,
    http: Annotated[
        int | None,
        typer.Option(
            "--http",
            metavar="PORT",
            min=0,
            max=65535,
            help="Serve over HTTP on the loopback at this port, instead of standard input and output; 0 is a free one.",
        ),
    ] = None,
    config: options.Config = None,
) -> None:
    """Let assistants ask about runs and Spark applications: a Model Context Protocol server."""
    from spark_app.annexes.mcp import server
    from spark_app.annexes.mcp.library import Library
    from spark_app.annexes.mcp.tools import Tools
    from spark_app.commands.terminal import Terminal
    from spark_app.eventlog.diagnoses.thresholds import load_thresholds
    from spark_app.eventlog.parse.locations import log_path
    from spark_app.settings import load_settings

    settings = load_settings(config)
    events = log_path(folder or str(settings.events_path)).absolute()
    if folder is not None and not events.is_dir():
        raise InputError(f"{events} is no folder: name the folder of the event logs (spark.eventLog.dir)")
    tools = Tools(Library(settings, events, load_thresholds(config)))
    if http is None:
        server.serve_stdio(tools)
    else:
        server.serve_http(tools, http, Terminal().note)
