"""The command `spark-app`: runs the library that was installed with it.

A folder `spark_app` of somebody else may come first on Python's path, as beside a job with `PYTHONPATH=.`; the job
still gets that one.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def main() -> None:
    """Imports `spark_app` from beside this file, and runs the command."""
    folder = Path(__file__).with_name("spark_app")
    spec = spec_from_file_location("spark_app", folder / "__init__.py", submodule_search_locations=[str(folder)])
    if spec is not None and spec.loader is not None:
        sys.modules["spark_app"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
    from spark_app.__main__ import main as command

    command()
