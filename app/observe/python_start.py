"""Has the Python programs of others name their call sites, without a change to them (decision 11).

Python imports `sitecustomize` from `PYTHONPATH` when it starts, also below `spark-submit`. The one that is written here
installs `app.spark.call_sites`, a copy of which lies beside it, and then gives way to the program's own.

`spark-app observe` writes it for one command, and `python -m app.observe.python_start DIR` for good: the image of the
stack has it for every program in its containers.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from app.spark import call_sites

PYTHONPATH: Final = "PYTHONPATH"
COPY: Final = "spark_app_call_sites"
START: Final = f'''"""Written by `app/observe/python_start.py` of spark-app: names the lines of a program for Spark."""

import os
import sys

_folder = os.path.dirname(os.path.abspath(__file__))
try:
    # Workers of Spark start no jobs; before Python 3.10 they cannot be told, and the hook does nothing in them.
    if not any(word in ("pyspark.daemon", "pyspark.worker") for word in getattr(sys, "orig_argv", ())):
        import {COPY}

        {COPY}.install()
except Exception:
    pass
sys.path[:] = [entry for entry in sys.path if entry != _folder]
del sys.modules["sitecustomize"]
import sitecustomize  # of the program; without one, Python takes the ImportError for what it is
'''


def with_call_sites(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment of a command whose Python programs name their call sites.

    Args:
        environment: The environment of the command.
        folder: A folder that does not exist yet, for as long as the command runs.
    """
    write_hook(folder)
    path = os.pathsep.join(filter(None, (str(folder), environment.get(PYTHONPATH))))
    return {**environment, PYTHONPATH: path}


def write_hook(folder: Path) -> None:
    """Writes the module that Python imports when it starts.

    Args:
        folder: A folder that does not exist yet, for `PYTHONPATH`.
    """
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(START, encoding="utf-8")
    shutil.copyfile(call_sites.__file__, folder / f"{COPY}.py")


if __name__ == "__main__":
    write_hook(Path(sys.argv[1]))
