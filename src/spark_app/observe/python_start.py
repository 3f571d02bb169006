"""Has the Python programs of others name their call sites, and collects what they log, without a change to them.

Python imports `sitecustomize` from `PYTHONPATH` when it starts, also below `spark-submit` (decision 11). The one that
is written here installs `spark_app.spark.call_sites` and `spark_app.telemetry.python_logs`, copies of which lie beside
it, and then gives way to the program's own.

`spark-app observe` writes it for one command, and `python -m spark_app.observe.python_start DIR` for good: the image of
the stack has it for every program in its containers.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from spark_app import redaction
from spark_app.spark import call_sites, connect_sessions
from spark_app.stack_samples import python_sampler
from spark_app.telemetry import python_logs

PYTHONPATH: Final = "PYTHONPATH"
COPY: Final = "spark_app_call_sites"
COPIES: Final = {
    COPY: call_sites.__file__,
    "spark_app_connect_sessions": connect_sessions.__file__,
    "spark_app_python_logs": python_logs.__file__,
    "spark_app_redaction": redaction.__file__,
}
"""What the hook imports, by the name of the copy: no name of a program's own modules."""
SAMPLER: Final = "spark_app_python_sampler"
BEGIN: Final = f'''"""Written by `spark_app/observe/python_start.py`: names call sites, collects the log."""

import os
import sys

_folder = os.path.dirname(os.path.abspath(__file__))
try:
    # Workers of Spark start no jobs; before Python 3.10 nothing distinguishes them, and the hook does nothing in them.
    if not any(word in ("pyspark.daemon", "pyspark.worker") for word in getattr(sys, "orig_argv", ())):
        import {COPY}

        {COPY}.install()
        if os.environ.get("{python_logs.FOLDER}"):
            import spark_app_connect_sessions
            import spark_app_python_logs

            spark_app_connect_sessions.note({COPY}.when_imported, os.environ["{python_logs.FOLDER}"])

            try:
                from spark_app_redaction import redacted
            except Exception:  # its patterns need Python 3.11; who reads the file masks it, too
                redacted = str
            spark_app_python_logs.collect(redacted)
except Exception:
    pass
'''
SAMPLE: Final = f"""try:
    _words = getattr(sys, "orig_argv", ())
    if "pyspark.daemon" in _words or "pyspark.worker" in _words:
        import {SAMPLER}

        {SAMPLER}.start_in_workers(is_daemon="pyspark.daemon" in _words)
    else:
        import {COPY}
        import {SAMPLER}

        {COPY}.when_imported("pyspark.java_gateway", lambda _: {SAMPLER}.start_in_driver())
        for _name in ("pyspark.core.context", "pyspark.context"):  # from Spark 4.0 on, and before
            {COPY}.when_imported(_name, lambda module: {SAMPLER}.in_workers_of(module.SparkContext))
except Exception:
    pass
"""
"""Only drivers and workers of Spark are sampled; a driver, once it has PySpark."""
END: Final = """sys.path[:] = [entry for entry in sys.path if entry != _folder]
del sys.modules["sitecustomize"]
import sitecustomize  # of the program; without one, Python takes the ImportError for what it is
"""


def with_hook(
    environment: Mapping[str, str], folder: Path, logs: Path, *, samples_stacks: bool = False
) -> dict[str, str]:
    """The environment of a command whose Python programs name their call sites, and whose log is collected.

    Args:
        environment: The environment of the command.
        folder: A folder that does not exist yet, for as long as the command runs.
        logs: The folder of what drivers log, a file for each launch of Spark.
        samples_stacks: Whether drivers and workers are sampled.
    """
    write_hook(folder, samples_stacks=samples_stacks)
    path = os.pathsep.join(filter(None, (str(folder), environment.get(PYTHONPATH))))
    return {**environment, PYTHONPATH: path, python_logs.FOLDER: str(logs)}


def write_hook(folder: Path, *, samples_stacks: bool = False) -> None:
    """Writes the module that Python imports when it starts.

    Args:
        folder: A folder that does not exist yet, for `PYTHONPATH`.
        samples_stacks: Whether drivers and workers are sampled.
    """
    folder.mkdir()
    start = BEGIN + (SAMPLE if samples_stacks else "") + END
    (folder / "sitecustomize.py").write_text(start, encoding="utf-8")
    copies = COPIES | ({SAMPLER: python_sampler.__file__} if samples_stacks else {})
    for name, file in copies.items():
        shutil.copyfile(str(file), folder / f"{name}.py")


if __name__ == "__main__":
    write_hook(Path(sys.argv[1]))
