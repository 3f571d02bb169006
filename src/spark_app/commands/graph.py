"""`spark-app graph`: what the pipelines of a project read and write, how they last ended, and how fresh tables are."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from spark_app import formatting
from spark_app.commands import options

if TYPE_CHECKING:
    from spark_app.execution.graph import Asset, Node
    from spark_app.warehouse.freshness import Freshness

PIPELINES: Final = ("pipeline", "reads", "writes", "last run")
ASSETS: Final = ("name", "kind", "published", "written by", "read by")
NAMED: Final = {"source": " (raw)", "topic": " (topic)", "table": "", "model": " (model)"}
"""What stands after the name of what a pipeline reads or writes."""
NEVER: Final = "never published"


def graph(
    *,
    mermaid: Annotated[
        bool, typer.Option("--mermaid", metavar="", help="Print a flow chart of Mermaid, as for a README on GitHub.")
    ] = False,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Show what each pipeline reads and writes, how it last ended, and how fresh tables are; starts no Spark."""
    from spark_app.commands.terminal import Terminal
    from spark_app.execution import graph as graphs
    from spark_app.settings import load_settings

    terminal = Terminal()
    found = graphs.of_project(load_settings(config))
    if json:
        terminal.answer(pipelines=found.pipelines, assets=found.assets)
    elif mermaid:
        terminal.line(graphs.mermaid(found).rstrip("\n"))
    else:
        now = datetime.now(UTC)
        terminal.table(PIPELINES, [_pipeline(node, now) for node in found.pipelines])
        terminal.line()
        terminal.table(ASSETS, [_asset(asset, now) for asset in found.assets])


def published(freshness: "Freshness | None", now: datetime) -> str:
    """When a table was published: the newest day that it has, and how long ago its newest commit is."""
    if freshness is None:
        return NEVER
    parts = [freshness.day and freshness.day.isoformat(), freshness.at and _age(freshness.at, now)]
    return ", ".join(filter(None, parts)) or "not known"


def _pipeline(node: "Node", now: datetime) -> list[str]:
    inputs, outputs = (", ".join(f"{name}{NAMED[kind]}" for kind, name in keys) for keys in (node.inputs, node.outputs))
    last = node.last
    return [
        node.pipeline,
        inputs,
        outputs,
        "never" if last is None else f"{last.outcome}, {_age(last.started_at, now)}",
    ]


def _asset(asset: "Asset", now: datetime) -> list[str]:
    shown = published(asset.freshness, now) if asset.kind == "table" else ""
    return [asset.name, asset.kind, shown, ", ".join(asset.written_by), ", ".join(asset.read_by)]


def _age(instant: datetime, now: datetime) -> str:
    return formatting.age((now - instant).total_seconds())
