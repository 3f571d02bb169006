"""`spark-app graph`: what the pipelines of a project read and write."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from spark_app import formatting
from spark_app.commands import options

if TYPE_CHECKING:
    from spark_app.execution.graph import Node

HEADERS: Final = ("pipeline", "reads", "writes", "last run")
STYLES: Final = {"succeeded": "green", "failed": "red", "rejected": "red"}


def graph(
    *,
    mermaid: Annotated[
        bool, typer.Option("--mermaid", metavar="", help="Print a flow chart of Mermaid, as for a README on GitHub.")
    ] = False,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Show what each pipeline reads and writes, in their order, and how it last ended; starts no Spark."""
    from spark_app.commands.terminal import Terminal
    from spark_app.execution import graph as graphs
    from spark_app.settings import load_settings

    terminal = Terminal()
    found = graphs.nodes(load_settings(config).runs_path)
    if json:
        terminal.answer(pipelines=found)
    elif mermaid:
        terminal.line(graphs.mermaid(found).rstrip("\n"))
    else:
        terminal.table(HEADERS, [_row(node) for node in found])


def _row(node: "Node") -> list[str]:
    inputs = [*(f"{name} (raw)" for name in node.sources), *(f"{name} (topic)" for name in node.topics), *node.reads]
    last = node.last
    when = "never" if last is None else f"{last.outcome}, {formatting.timestamp(last.started_at)}"
    return [node.pipeline, ", ".join(inputs), ", ".join(node.writes), when]
