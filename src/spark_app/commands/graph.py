"""`spark-app graph`: what the pipelines of a project read and write, how they last ended, and how fresh tables are."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import quote

import typer

from spark_app import formatting
from spark_app.commands import cells, options
from spark_app.errors import MachineError, UsageError

if TYPE_CHECKING:
    from spark_app.execution.graph import Asset, Graph, PipelineNode
    from spark_app.report.graph_page import Box
    from spark_app.runs.run_record import RunRecord
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
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page with a picture, which needs no network."),
    ] = None,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Show what each pipeline reads and writes, how it last ended, and how fresh tables are; starts no Spark."""
    if mermaid + (html is not None) + json > 1:
        raise UsageError("give one of --mermaid, --html and --json")
    from spark_app.commands.terminal import Terminal
    from spark_app.execution import graph as graphs
    from spark_app.settings import load_settings

    terminal, now = Terminal(), datetime.now(UTC)
    found = graphs.of_project(load_settings(config))
    if found.trouble:
        terminal.note(f"how fresh tables are is not known: {found.trouble}")
    if html is not None:
        _write(found, html.absolute(), now)
        terminal.line(cells.shown_path(html), link=cells.uri(html))
    elif json:
        terminal.answer(pipelines=found.pipelines, assets=found.assets)
    elif mermaid:
        terminal.line(graphs.mermaid(found).rstrip("\n"))
    else:
        terminal.table(PIPELINES, [_pipeline(node, now) for node in found.pipelines])
        terminal.line()
        terminal.table(ASSETS, [_asset(asset, now) for asset in found.assets])


def published(freshness: "Freshness | None", now: datetime) -> str:
    """When a table was published: the newest day that it has, and how long ago its newest commit is."""
    if freshness is None:
        return NEVER
    parts = [freshness.day.isoformat()] if freshness.day else []
    parts += [_age(freshness.at, now)] if freshness.at else []
    return ", ".join(parts) or "not known"


def _pipeline(node: "PipelineNode", now: datetime) -> list[str]:
    inputs, outputs = (", ".join(f"{name}{NAMED[kind]}" for kind, name in keys) for keys in (node.inputs, node.outputs))
    return [node.pipeline, inputs, outputs, _ended(node.last, now)]


def _ended(last: "RunRecord | None", now: datetime) -> str:
    return "never ran" if last is None else f"{last.outcome}, {_age(last.started_at, now)}"


def _asset(asset: "Asset", now: datetime) -> list[str]:
    shown = published(asset.freshness, now) if asset.kind == "table" else ""
    return [asset.name, asset.kind, shown, ", ".join(asset.written_by), ", ".join(asset.read_by)]


def _age(instant: datetime, now: datetime) -> str:
    return formatting.age((now - instant).total_seconds())


def _write(found: "Graph", file: Path, now: datetime) -> None:
    from spark_app import project
    from spark_app.report import graph_page

    ids = {key: f"b{number}" for number, key in enumerate(_keys(found))}
    edges = [(ids[key], ids["pipeline", node.pipeline]) for node in found.pipelines for key in node.inputs]
    edges += [(ids["pipeline", node.pipeline], ids[key]) for node in found.pipelines for key in node.outputs]
    boxes = [_pipeline_box(ids["pipeline", node.pipeline], node, file.parent, now) for node in found.pipelines]
    boxes += [_asset_box(ids[asset.kind, asset.name], asset, now) for asset in found.assets]
    try:
        graph_page.write(file, f"Pipelines of {project.required().folder.name}", boxes, edges, at=now)
    except OSError as error:
        raise MachineError(f"cannot write {file}: {error.strerror}") from error


def _keys(found: "Graph") -> Iterator[tuple[str, str]]:
    yield from (("pipeline", node.pipeline) for node in found.pipelines)
    yield from ((asset.kind, asset.name) for asset in found.assets)


def _pipeline_box(name: str, node: "PipelineNode", folder: Path, now: datetime) -> "Box":
    from spark_app.report import graph_page
    from spark_app.report.formatting import mood

    last = node.last
    if last is None:
        return graph_page.Box(name, "pipeline", node.pipeline, _ended(None, now))
    report = _link(last.report, folder)
    return graph_page.Box(
        name, "pipeline", node.pipeline, _ended(last, now), mood(last.outcome), last.started_at, report
    )


def _asset_box(name: str, asset: "Asset", now: datetime) -> "Box":
    from spark_app.report import graph_page

    state = published(asset.freshness, now) if asset.kind == "table" else ""
    return graph_page.Box(name, asset.kind, asset.name, state, when=asset.freshness.at if asset.freshness else None)


def _link(report: str | None, folder: Path) -> str | None:
    """The address of a report for a page in a folder: a served one by its URL, one that was deleted not at all."""
    if report is None or "://" in report:
        return report
    return quote(os.path.relpath(report, folder)) if Path(report).is_file() else None
