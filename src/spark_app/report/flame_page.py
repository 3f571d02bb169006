"""One self-contained HTML file with the flame graphs of two runs, coloured by how they differ."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from spark_app.eventlog.comparison.compare import FunctionChange
from spark_app.local_files import write_atomic
from spark_app.report.limits import Limits
from spark_app.report.page import environment
from spark_app.report.sections.stack_samples import View, drawing
from spark_app.stack_samples.difference import merged
from spark_app.stack_samples.stack_profile import StackProfile


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
            data=drawing(stacks.labels, stacks.nodes, [*stacks.now, *stacks.before], views, Limits().stack_nodes),
        )
    )
    write_atomic(output, content.encode("utf-8", "replace"))
