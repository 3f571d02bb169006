"""One self-contained HTML file with the flame graphs of two runs, coloured by how they differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from spark_app.annexes.flames.drawing import View, drawing
from spark_app.eventlog.comparison.compare import FunctionChange
from spark_app.local_files import write_atomic
from spark_app.report.limits import Limits
from spark_app.report.page import environment, script, style
from spark_app.stack_samples.counts import MIN_FUNCTION_SAMPLES
from spark_app.stack_samples.stack_profile import NO_NODE, Label, Node, Part, StackProfile

FOLDER: Final = Path(__file__).parent


def write(
    output: Path,
    title: str,
    now: StackProfile,
    before: StackProfile,
    changes: Sequence[FunctionChange],
    *,
    names: tuple[str, str],
    at: datetime,
) -> None:
    """Writes the page, whole or not at all; its folder is created if it is missing.

    Args:
        output: The file.
        title: What ran.
        now: The samples of the run.
        before: The samples of the run that it is compared with.
        changes: The functions that grew or shrank.
        names: The ids of both runs.
        at: When the page is written.

    Raises:
        OSError: The file cannot be written.
    """
    stacks = merged(now, before)
    views: list[View] = [
        ("the run", [0, 1], [2, 3], False),
        ("the earlier run", [2, 3], [0, 1], True),
        ("the run: tasks only", [0], [2], False),
        ("the earlier run: tasks only", [2], [0], True),
    ]
    content = (
        environment()
        .get_template("flame.html.j2")
        .render(
            title=title,
            names=names,
            at=at.timestamp() * 1000,
            now=now,
            before=before,
            changes=changes,
            least=MIN_FUNCTION_SAMPLES,
            flame_script=script(FOLDER / "flame.js"),
            flame_style=style(FOLDER / "flame.css"),
            data=drawing(stacks.labels, stacks.nodes, [*stacks.now, *stacks.before], views, Limits().stack_nodes),
        )
    )
    write_atomic(output, content.encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Merged:
    """The stacks of two runs in one, whose labels have no lines.

    Attributes:
        labels, nodes: As in `StackProfile`.
        now, before: The samples of tasks of each run, and those of threads that run none.
    """

    labels: list[Label]
    nodes: list[Node]
    now: list[Part]
    before: list[Part]


def merged(now: StackProfile, before: StackProfile) -> Merged:
    """Merges the stacks of two runs."""
    labels, nodes = dict[Label, int](), dict[Node, int]()
    parts = [_parts(stacks, _numbers(stacks, labels, nodes)) for stacks in (now, before)]
    return Merged([*labels], [*nodes], *parts)


def _numbers(stacks: StackProfile, labels: dict[Label, int], nodes: dict[Node, int]) -> list[int]:
    """The number of each node of a run among those of both."""
    numbers: list[int] = []
    for parent, number in stacks.nodes:
        label = labels.setdefault(stacks.labels[number]._replace(line=0), len(labels))
        node = Node(NO_NODE if parent == NO_NODE else numbers[parent], label)
        numbers.append(nodes.setdefault(node, len(nodes)))
    return numbers


def _parts(stacks: StackProfile, numbers: list[int]) -> list[Part]:
    """The samples of tasks, and those of threads that run none."""
    tasks, others = Part(), Part()
    for place, part in stacks.parts.items():
        to = others if place in {"driver", "executor"} else tasks
        for node, tally in part.own.items():
            to.own[numbers[node]] += tally
    return [tasks, others]
