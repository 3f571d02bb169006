"""The file for `spark-submit app/__main__.py etl --date 2024-01-01`, which is `spark-app etl --date 2024-01-01`."""

import sys
from pathlib import Path

if not __package__:  # Started as a file, Python looks into this folder first, where `streaming` would hide another.
    sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]

from spark_app.__main__ import main

if __name__ == "__main__":
    main()
