"""Writes the dashboards as Grafana reads them: `python -m grafana.build`, then commit what changed.

One module of `grafana.boards` is one dashboard. Names of our metrics come from the catalogue, so that a renamed one is
drawn under its new name or not at all.
"""

import sys
from pathlib import Path
from typing import Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from grafana.board import Board
from grafana.boards import (
    data_quality,
    pipeline_runs,
    platform_overview,
    spark_cluster,
    spark_performance,
    telemetry_path,
)

FOLDER: Final = Path(__file__).resolve().parent / "dashboards"


def boards() -> list[Board]:
    """All dashboards."""
    modules = (platform_overview, pipeline_runs, data_quality, spark_cluster, spark_performance, telemetry_path)
    return [module.board() for module in modules]


def write(folder: Path) -> list[Path]:
    """Writes each dashboard to `<folder>/<its folder>/<its uid>.json`, and removes those that are no more."""
    written = []
    for board in boards():
        path = folder / board.folder / f"{board.uid}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(JSONEncoder(sort_keys=True, indent=2).encode(board.made()) + "\n", encoding="utf-8")
        written.append(path)
    for path in set(folder.glob("*/*.json")) - set(written):
        path.unlink()
    return written


if __name__ == "__main__":
    for path in write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER):
        sys.stdout.write(f"{path}\n")
