"""Generates the dashboards that Grafana reads: run `python -m grafana.build`, then commit the JSON that changed.

One module of `grafana.boards` is one dashboard. Metric names come from the catalogue, so that a renamed metric is drawn
under its new name or not at all.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from grafana.board import Board
from grafana.boards import (
    data_quality,
    machine_learning,
    pipeline_runs,
    platform_overview,
    spark_cluster,
    spark_performance,
    streaming,
    telemetry_path,
)

MARK: Final = "by python -m grafana.build; do not edit"
FOLDER: Final = Path(__file__).resolve().parent / "dashboards"


def boards() -> list[Board]:
    """All dashboards."""
    pipelines = (pipeline_runs, data_quality, streaming, machine_learning)
    modules = (platform_overview, *pipelines, spark_cluster, spark_performance, telemetry_path)
    return [module.board() for module in modules]


def write(folder: Path) -> list[Path]:
    """Writes each dashboard to `<folder>/<its folder>/<its uid>.json`, and removes every other dashboard there."""
    written = []
    for board in boards():
        path = folder / board.folder / f"{board.uid}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document(board), encoding="utf-8")
        written.append(path)
    for path in set(folder.glob("*/*.json")) - set(written):
        path.unlink()
    return written


def document(board: Board) -> str:
    """The JSON of a dashboard: a line for each setting and each panel, so that a changed panel is a changed line."""
    content: dict[str, Any] = json.loads(JSONEncoder(sort_keys=True).encode(board.build()))
    panels = ",\n".join(map(_line, content.pop("panels")))
    settings = [f"{_line(key)}: {_line(value)}" for key, value in ({"__generated": MARK} | content).items()]
    return "{\n" + ",\n".join([*settings, f'"panels": [\n{panels}\n]']) + "\n}\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    for path in write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER):
        sys.stdout.write(f"{path}\n")
