"""Runs programs one after another in one process, and holds each at its end until a line comes on standard input.

While a program is held its UI answers; its address and the id of the application are printed on standard error.
"""

import runpy
import sys
from typing import Final
from unittest import mock

from pyspark.sql import SparkSession

NEXT: Final = "+"
stop: Final = SparkSession.stop


def held(session: SparkSession) -> None:
    """Stops a session when it is asked to."""
    context = session.sparkContext
    sys.stderr.write(f"held {context.uiWebUrl}/api/v1/applications/{context.applicationId}\n")
    sys.stderr.flush()
    sys.stdin.readline()
    stop(session)


with mock.patch.object(SparkSession, "stop", held):
    for words in " ".join(sys.argv[1:]).split(f" {NEXT} "):
        sys.argv = words.split()
        runpy.run_path(sys.argv[0], run_name="__main__")
