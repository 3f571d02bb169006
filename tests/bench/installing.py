"""How long the wheel takes to install, and an installed program to start."""

import sys
from pathlib import Path
from typing import Final

from spark_app.settings import PROJECT
from tests.bench.measure import ROUNDS, run, spread

UV: Final = str(Path(sys.executable).parent / "uv")
GOAL_INSTALL: Final = 20
GOAL_START: Final = 0.3
STARTS: Final = 5 * ROUNDS


def wheel(scratch: Path) -> list[str]:
    """Seconds of `uv tool install` without any cache, and of `spark-app --version`."""
    run(["make", "--no-print-directory", "wheel"], {})
    (built,) = (PROJECT / "dist").glob("*.whl")
    installed = [install(scratch / f"tool-{turn}", built) for turn in range(ROUNDS)]
    program = str(scratch / "tool-0" / "bin" / "spark-app")
    starts = [run([program, "--version"], {}).wall for _ in range(STARTS)]
    return [
        "| what | s | goal |",
        "|---|---|---|",
        f"| `uv tool install WHEEL`, nothing in a cache | {spread(installed, '.1f')} | <= {GOAL_INSTALL} |",
        f"| `spark-app --version` of it | {spread(starts, '.2f')} | <= {GOAL_START} |",
        "",
        f"The core, without Spark; {ROUNDS} installations and {STARTS} starts, one after another.",
    ]


def install(folder: Path, built: Path) -> float:
    """Seconds to install the wheel in an empty folder."""
    folder.mkdir()
    places = {
        "UV_CACHE_DIR": str(folder / "cache"),
        "UV_TOOL_DIR": str(folder / "environments"),
        "UV_TOOL_BIN_DIR": str(folder / "bin"),
    }
    return run([UV, "tool", "install", "--python", sys.executable, str(built)], places).wall
