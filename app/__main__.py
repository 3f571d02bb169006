"""The file for `spark-submit app/__main__.py etl --date 2024-01-01`, which is `spark-app etl --date 2024-01-01`."""

import sys
from pathlib import Path

if not __package__:  # Started as a file, Python looks into this folder first, where `streaming` would hide another.
    sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != Path(__file__).resolve().parent]

from spark_app.__main__ import main

if __name__ == "__main__":
    main()
