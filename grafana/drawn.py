"""Whether people can read the dashboards as they were drawn: `make pictures` draws them from the running stack.

`python -m grafana.drawn FOLDER` reads the figures of all pictures in a folder (`report-*.json`), prints each panel that
shows too much or nothing that is right, and ends with 1 if there is one.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final

import msgspec

LIMITS: Final[Mapping[str, int]] = {"stat": 6, "bargauge": 10, "timeseries": 10}
"""How many values a tile, and how many bars or series another panel shows at most."""


class Answer(msgspec.Struct):
    """What a data source answered to a query of a panel."""

    error: str | None = None


class Panel(msgspec.Struct):
    """A panel as it was drawn: `shown` are names and texts of tiles and bars, `legend` names of series."""

    board: str
    panel: str
    type: str
    answers: list[Answer]
    failed: str | None = None
    shown: list[tuple[str, str]] = []
    legend: list[str] = []
    nan: Annotated[int, msgspec.Meta(ge=0)] = 0
    inf: Annotated[int, msgspec.Meta(ge=0)] = 0
    negative: Annotated[int, msgspec.Meta(ge=0)] = 0


def faults(panel: Panel) -> Iterator[str]:
    """What a reader cannot read, or must not believe."""
    if panel.failed is not None:
        yield f"cannot be drawn: {panel.failed.splitlines()[0]}"
    yield from (f"has no answer: {answer.error}" for answer in panel.answers if answer.error)
    values = len(panel.shown) + len(panel.legend)
    if values > LIMITS.get(panel.type, values):
        yield f"shows {values} values, more than {LIMITS[panel.type]}"
    if panel.nan or panel.inf:
        yield f"has {panel.nan + panel.inf} points that are no numbers"
    if panel.negative and panel.type == "bargauge":
        yield f"has {panel.negative} bars below 0"
    yield from (f"has a series without a name: {name!r}" for name in panel.legend if not name or name.startswith("{"))


def main(folder: Path) -> int:
    """Prints the faults of all panels that were drawn into a folder.

    Returns:
        The exit code: 2 where nothing was drawn.
    """
    reports = sorted(folder.glob("report-*.json"))
    if not reports:
        sys.stderr.write(f"{folder} has no report-*.json: make pictures draws the dashboards\n")
        return 2
    panels = [each for report in reports for each in msgspec.json.decode(report.read_bytes(), type=list[Panel])]
    found = [f"{panel.board} / {panel.panel} {fault}" for panel in panels for fault in faults(panel)]
    sys.stdout.write("\n".join([*found, f"{len(panels)} panels drawn in {folder}, {len(found)} faults\n"]))
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
