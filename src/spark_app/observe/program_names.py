"""Names the program of a command, for applications that PySpark calls `pyspark-shell`: `flights`, `shop`."""

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
