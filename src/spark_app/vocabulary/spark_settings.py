"""What settings of Spark mean, wherever they are from: a session, a configuration or an event log."""

import re
from collections.abc import Mapping
from typing import Final

INTERVAL_UNITS_MS: Final = {
    "ms": 1, "millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000,
}  # fmt: skip
"""The units of intervals as Spark takes them, each also with an `s`, in milliseconds."""

FLIGHT_RECORDING: Final = "-XX:StartFlightRecording=name=spark-app,"
"""Begins the options of JVMs whose stacks are sampled."""
RECORDER_IS_SILENT: Final = "-Xlog:jfr+startup=off"
"""Ends them."""
_RECORDING: Final = re.compile(rf" ?{re.escape(FLIGHT_RECORDING)}.*?{re.escape(RECORDER_IS_SILENT)}")


def is_local(properties: Mapping[str, str]) -> bool:
    """Whether the driver runs the tasks: `local` and `local[4]` do; `local-cluster[...]` starts executors."""
    master = properties.get("spark.master", "")
    return master == "local" or master.startswith("local[")


def is_local_cluster(master: str) -> bool:
    """Whether the driver starts executors on its own host."""
    return master.startswith("local-cluster[")


def without_recording(options: str) -> str:
    """Options of a JVM without those that sample its stacks, which say nothing about an application."""
    return _RECORDING.sub("", options) if FLIGHT_RECORDING in options else options
