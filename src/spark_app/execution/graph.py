"""What the pipelines of a project read and write, how each last ended, and how fresh each table is; starts no Spark."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from spark_app.declarations.pipeline import Pipeline
from spark_app.errors import InputError, MachineError
from spark_app.eventlog.parse.locations import LogPath, log_path
from spark_app.execution import pipelines
from spark_app.runs import liveness, run_record
from spark_app.runs.run_record import RunRecord
from spark_app.settings import Settings
from spark_app.warehouse.freshness import Freshness, freshness
from spark_app.warehouse.tables import Table

Kind = Literal["source", "topic", "table", "model"]
PATIENCE_SECONDS: Final = 10.0
"""How long a storage may take to tell how fresh a table is."""
Key = tuple[Kind, str]
"""What pipelines read or write: its kind and its name."""
SHAPES: Final = {"source": ("[/", "/]"), "topic": (">", "]"), "table": ("[(", ")]"), "model": ("{{", "}}")}
"""How Mermaid draws a node of a kind."""


@dataclass(frozen=True)
class PipelineNode:
    """A pipeline with what it reads and writes.

    Attributes:
        pipeline: `etl.daily_sales`.
        sources: The sources whose raw rows it reads.
        topics: The topics that it reads.
        reads: The tables that it reads.
        models: The models that it reads.
        writes: The tables that it writes.
        sends: The topics that it writes.
        trains: The models that it trains.
        last: Its newest run; None if it has none here.
    """

    pipeline: str
    sources: Sequence[str]
    topics: Sequence[str]
    reads: Sequence[str]
    models: Sequence[str]
    writes: Sequence[str]
    sends: Sequence[str]
    trains: Sequence[str]
    last: RunRecord | None = None

    @property
    def inputs(self) -> list[Key]:
        """What it reads."""
        return [
            *_keys("source", self.sources),
            *_keys("topic", self.topics),
            *_keys("table", self.reads),
            *_keys("model", self.models),
        ]

    @property
    def outputs(self) -> list[Key]:
        """What it writes."""
        return [*_keys("table", self.writes), *_keys("topic", self.sends), *_keys("model", self.trains)]


@dataclass(frozen=True)
class Asset:
    """What pipelines read and write.

    Attributes:
        kind: What it is.
        name: Its name; a table and a topic may have the same.
        written_by: The pipelines that write or train it.
        read_by: The pipelines that read it.
        freshness: Of a table, when it was last published; None for one that never was, and for what is no table.
    """

    kind: Kind
    name: str
    written_by: Sequence[str]
    read_by: Sequence[str]
    freshness: Freshness | None = None


@dataclass(frozen=True)
class Graph:
    """The pipelines of a project.

    Attributes:
        pipelines: Each after those that write what it reads.
        assets: What they read and write.
        trouble: Why it is not known how fresh tables are; None where nothing hinders that.
    """

    pipelines: Sequence[PipelineNode]
    assets: Sequence[Asset]
    trouble: str | None = None


def of_project(settings: Settings) -> Graph:
    """The graph of the current project.

    Raises:
        DeclarationError: A declaration is wrong.
    """
    return graph(
        {name: each for package in pipelines.PACKAGES for name, each in pipelines.load(package).items()}, settings
    )


def graph(loaded: Mapping[str, Pipeline], settings: Settings) -> Graph:
    """The graph of pipelines, which may come in any order."""
    newest = _newest(settings.runs_path)
    nodes = [_node(name, loaded[name], newest.get(name)) for name in pipelines.in_order(loaded)]
    tables = {table.name: table for each in loaded.values() for table in each.writes}
    warehouse = _Warehouse(settings.warehouse_path)
    return Graph(nodes, _assets(nodes, tables, warehouse), warehouse.trouble)


def mermaid(found: Graph) -> str:
    """The graph as a flow chart of Mermaid, which GitHub and many editors draw."""
    lines = ["flowchart LR"]
    for asset in sorted(found.assets, key=lambda each: (each.name, each.kind)):
        before, after = SHAPES[asset.kind]
        lines.append(f"    {_id(asset.kind, asset.name)}{before}{asset.name}{after}")
    for node in found.pipelines:
        own = _id("pipeline", node.pipeline)
        lines.append(f"    {own}[{node.pipeline}]")
        lines += [f"    {_id(*key)} --> {own}" for key in node.inputs]
        lines += [f"    {own} --> {_id(*key)}" for key in node.outputs]
    return "\n".join(lines) + "\n"


def _node(name: str, pipeline: Pipeline, last: RunRecord | None) -> PipelineNode:
    return PipelineNode(
        name,
        list(pipeline.sources),
        list(pipeline.topics),
        list(pipeline.reads),
        list(pipeline.models),
        [table.name for table in pipeline.writes],
        list(pipeline.sends),
        [pipeline.trains.name] if pipeline.trains else [],
        last,
    )


def _assets(nodes: Sequence[PipelineNode], tables: Mapping[str, Table], warehouse: "_Warehouse") -> list[Asset]:
    """What the pipelines read and write, in the order in which it comes about, and topics that none reads."""
    keys = dict.fromkeys(key for node in nodes for key in (*node.inputs, *node.outputs))
    keys |= dict.fromkeys(("topic", topic.name) for topic in pipelines.topics())
    return [
        Asset(
            kind,
            name,
            [node.pipeline for node in nodes if (kind, name) in node.outputs],
            [node.pipeline for node in nodes if (kind, name) in node.inputs],
            warehouse.freshness(name, tables.get(name)) if kind == "table" else None,
        )
        for kind, name in keys
    ]


def warehouse_folder(location: str) -> LogPath:
    """The folder of the tables, which may be on another storage.

    Raises:
        InputError: It cannot be read.
        MachineError: The driver of its storage is not installed.
    """
    return log_path(location.rstrip("/"), patience=PATIENCE_SECONDS)


class _Warehouse:
    """The folder of the tables, which may be on another storage; after it did not answer once, it is not asked again.

    Attributes:
        trouble: Why it cannot be read; None where it can.
    """

    def __init__(self, location: str) -> None:
        self.trouble: str | None = None
        try:
            self._folder = warehouse_folder(location)
        except (InputError, MachineError) as error:
            self.trouble = str(error)

    def freshness(self, name: str, table: Table | None) -> Freshness | None:
        """How fresh a table is."""
        try:
            return Freshness() if self.trouble else freshness(self._folder / name, table.day if table else None)
        except InputError as error:
            self.trouble = str(error)
            return Freshness()


def _newest(runs: Path) -> dict[str, RunRecord]:
    """The newest run of each pipeline."""
    found = dict[str, RunRecord]()
    for pipeline, folder in run_record.folders(runs):
        if pipeline in found:
            continue
        try:
            record = run_record.read(folder)
        except (InputError, OSError):  # a folder of something else
            continue
        found.setdefault(record.pipeline, _as_it_ended(record))
    return found


def _as_it_ended(record: RunRecord) -> RunRecord:
    """The record of a run; one that says that it runs, and whose process has left its lock, was killed."""
    has_lock = record.outcome == "running" and (record.folder / liveness.LIVENESS_LOCK).exists()
    is_dead = has_lock and not liveness.is_running(record.folder)
    return dataclasses.replace(record, outcome="killed") if is_dead else record


def _keys(kind: Kind, names: Sequence[str]) -> list[Key]:
    return [(kind, name) for name in names]


def _id(kind: str, name: str) -> str:
    return f"{kind}_{name.replace('.', '_')}"
