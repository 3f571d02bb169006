"""What a command needs beyond the packages that every installation has, and how to install it."""

from importlib.util import find_spec
from typing import Final

from spark_app.errors import MachineError

MODULES: Final = {
    "etl": ("pyspark", "delta"),
    "streaming": ("pyspark", "delta", "pyarrow", "pandas", "kafka"),
    "ml": ("pyspark", "delta", "numpy", "pyarrow", "pandas", "sklearn"),
    "mcp": ("mcp", "uvicorn"),
    "lineage": ("openlineage",),
}
"""The packages of each extra of pyproject.toml, by the names that Python imports."""
EXTRAS: Final = {
    "check": "etl",
    "etl": "etl",
    "graph": "etl",
    "tables": "etl",
    "show": "etl",
    "stale": "etl",
    "plan": "etl",
    "streaming": "streaming",
    "ml": "ml",
}
"""The extra of each command that needs one."""


def require(command: str, extra: str | None) -> None:
    """Checks that the extra that a command needs, if any, is installed; imports nothing of it.

    Raises:
        MachineError: It is not.
    """
    missing = [name for name in MODULES.get(extra or "", ()) if find_spec(name) is None]
    if missing:
        raise MachineError(
            f"spark-app {command} needs the extra {extra}, of which {', '.join(missing)} is not installed here: "
            f"install spark-app[{extra}], as in `uv tool install 'spark-app[{extra}]'`, or in a clone run make install"
        )
