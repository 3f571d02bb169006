"""One self-contained HTML file with the graph of a project: a picture, and a table that says the same in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from spark_app.local_files import write_atomic
from spark_app.report.layers import HEIGHT, WIDTH, Edge, layout
from spark_app.report.page import environment

KINDS: Final = {"pipeline": "step", "source": "run", "topic": "job", "table": "query", "model": "stage"}
"""The kinds of boxes, each with its colour."""


@dataclass(frozen=True, slots=True)
class Box:
    """A pipeline, or what pipelines read and write.

    Attributes:
        id: A word that no other box has.
        kind: A key of `KINDS`.
        name: Its name.
        state: How a pipeline last ended, or when a table was published; empty where nothing is to be said.
        mood: How the state is coloured: good, bad, unsure, or without a colour.
        when: The instant of the state; None without one.
        report: The address of the report of the last run, as the page links to it; None without one.
    """

    id: str
    kind: str
    name: str
    state: str = ""
    mood: str = ""
    when: datetime | None = None
    report: str | None = None


def write(output: Path, title: str, boxes: Sequence[Box], edges: Sequence[Edge], *, at: datetime) -> None:
    """Writes the page, whole or not at all; its folder is created if it is missing.

    Args:
        output: The file.
        title: What the graph is of.
        boxes: The pipelines in their order, and what they read and write.
        edges: From what is written to who reads it, and from who writes to what is written.
        at: When the states were looked up.

    Raises:
        OSError: The file cannot be written.
    """
    placed = layout([box.id for box in boxes], edges)
    content = (
        environment()
        .get_template("graph.html.j2")
        .render(
            title=title,
            at=at.timestamp() * 1000,
            kinds=KINDS,
            boxes=boxes,
            layout=placed,
            width=WIDTH,
            height=HEIGHT,
            lit={edge: _lit(edge, list(placed.paths)) for edge in placed.paths},
            before={box.id: [each for each in boxes if (each.id, box.id) in edges] for box in boxes},
            after={box.id: [each for each in boxes if (box.id, each.id) in edges] for box in boxes},
        )
    )
    write_atomic(output, content.encode("utf-8", "replace"))


def _lit(edge: Edge, edges: Sequence[Edge]) -> list[str]:
    """The boxes that an edge stays visible for: those before it and those after it, near or far."""
    start, end = edge
    return sorted({*_reached(start, [(after, before) for before, after in edges]), *_reached(end, edges)})


def _reached(box: str, edges: Sequence[Edge]) -> set[str]:
    """A box, and all that edges lead to from it."""
    found, left = {box}, [box]
    while left:
        box = left.pop()
        new = [end for start, end in edges if start == box and end not in found]
        found |= {*new}
        left += new
    return found
