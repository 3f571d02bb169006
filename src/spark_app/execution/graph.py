"""What the pipelines of a project read and write, and how each last ended."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from spark_app.errors import InputError
from spark_app.execution import pipelines
from spark_app.runs import run_record
from spark_app.runs.run_record import RunRecord

Kind = Literal["source", "topic", "table"]
SHAPES = {"source": ("[/", "/]"), "topic": (">", "]"), "table": ("[(", ")]")}
"""How Mermaid draws a node of a kind."""


@dataclass(frozen=True)
class Node:
    """A pipeline with what it reads and writes.

    Attributes:
        pipeline: `etl.daily_sales`.
        sources: The sources whose raw rows it reads.
        topics: The topics that it reads.
        reads: The tables that it reads.
        writes: The tables that it writes.
        last: Its newest run; None if it has none here.
    """

    pipeline: str
    sources: Sequence[str]
    topics: Sequence[str]
    reads: Sequence[str]
    writes: Sequence[str]
    last: RunRecord | None = None


def nodes(runs: Path) -> list[Node]:
    """The pipelines of the current project, each after those that write what it reads, with their newest runs.

    Args:
        runs: The folder of the runs.

    Raises:
        DeclarationError: A declaration is wrong.
    """
    loaded = {name: each for package in pipelines.PACKAGES for name, each in pipelines.load(package).items()}
    newest = _newest(runs)
    return [_node(name, loaded[name], newest.get(name)) for name in pipelines.in_order(loaded)]


def mermaid(found: Sequence[Node]) -> str:
    """The pipelines as a flow chart of Mermaid, which GitHub and many editors draw."""
    lines = ["flowchart LR"]
    things = sorted({thing for node in found for thing in (*_inputs(node), *_outputs(node))})
    lines += [f"    {_id(kind, name)}{SHAPES[kind][0]}{name}{SHAPES[kind][1]}" for name, kind in things]
    for node in found:
        own = _id("pipeline", node.pipeline)
        lines.append(f"    {own}[{node.pipeline}]")
        lines += [f"    {_id(kind, name)} --> {own}" for name, kind in _inputs(node)]
        lines += [f"    {own} --> {_id(kind, name)}" for name, kind in _outputs(node)]
    return "\n".join(lines) + "\n"


def _node(name: str, pipeline: Any, last: RunRecord | None) -> Node:
    return Node(
        name,
        pipelines.sources([pipeline]),
        list(getattr(pipeline, "TOPICS", ())),
        list(pipeline.READS),
        [table.name for table in pipeline.WRITES],
        last,
    )


def _newest(runs: Path) -> dict[str, RunRecord]:
    """The newest run of each pipeline: the names of their folders begin with the time of the start."""
    found = dict[str, RunRecord]()
    for folder in sorted(runs.iterdir() if runs.is_dir() else (), reverse=True):
        pipeline = folder.name.split("-")[1] if folder.name.count("-") > 1 else ""
        if pipeline in found:
            continue
        try:
            record = run_record.read(folder)
        except (InputError, OSError):  # a folder of something else
            continue
        found.setdefault(record.pipeline, record)
    return found


def _inputs(node: Node) -> Iterator[tuple[str, Kind]]:
    yield from ((name, "source") for name in node.sources)
    yield from ((name, "topic") for name in node.topics)
    yield from ((name, "table") for name in node.reads)


def _outputs(node: Node) -> Iterator[tuple[str, Kind]]:
    yield from ((name, "table") for name in node.writes)


def _id(kind: str, name: str) -> str:
    return f"{kind}_{name.replace('.', '_')}"
