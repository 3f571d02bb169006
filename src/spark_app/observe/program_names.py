"""The program of a command: its name, for applications that PySpark calls `pyspark-shell`, and who may type into it."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

from spark_app.errors import ConfigError
from spark_app.settings import read_yaml

PIPELINES: Final = "spark-pipelines"
SPECIFICATIONS: Final = ("spark-pipeline.yml", "spark-pipeline.yaml")
"""Where `spark-pipelines` looks for its pipeline in the working folder, unless `--spec` names a file."""
SHELLS: Final = frozenset(
    {
        *("pyspark", "spark-shell", "spark-sql", "sparkR", "ipython", "ipython3", "IPython", "ipykernel_launcher"),
        *("jupyter", "jupyter-lab", "jupyter-notebook", "jupyter-console", "jupyterlab", "notebook", "ipykernel"),
        *("voila", "marimo", "streamlit", "gradio", "panel", "bokeh", "solara", "shiny"),
    }
)
"""Programs that a person types into, or that serve pages that people use."""


def can_type(command: Sequence[str]) -> bool:
    """Whether a user may type into a command: a shell, a notebook, a server of pages, or a Python with `-i`."""
    return "-i" in command or any(Path(word).name in SHELLS for word in command)


def name_of(command: Sequence[str]) -> str:
    """The name of a pipeline, of a module or of a Python file without its folder and ending; empty for any other."""
    words = [*command, ""]
    for word, after in pairwise(words):
        if Path(word).name == PIPELINES:
            return _of_pipeline(command) or PIPELINES
        if word == "-m":
            return after
        if word.endswith(".py"):
            return Path(word).stem
    return ""


def _of_pipeline(command: Sequence[str]) -> str:
    given = [Path(after) for word, after in pairwise(command) if word == "--spec"]
    given += [Path(word.partition("=")[2]) for word in command if word.startswith("--spec=")]
    for file in given or map(Path, SPECIFICATIONS):
        with suppress(ConfigError):
            return str(read_yaml(file).get("name") or "")
    return ""
