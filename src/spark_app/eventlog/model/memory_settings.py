"""The settings for the memory and the cores of tasks: those of executors, or of the driver in local mode."""

import re
from collections.abc import Mapping
from typing import Final

from spark_app.vocabulary.spark_settings import is_local

EXECUTOR_MEMORY: Final = "spark.executor.memory"
DRIVER_MEMORY: Final = "spark.driver.memory"
DEFAULT: Final = "1g"
"""Of both, in Spark 3.5 to 4.3."""
UNITS: Final = {"": 1 << 20, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
"""Bytes of the units of Spark's memory settings; without a unit they are MiB."""


def memory(settings: Mapping[str, str]) -> str:
    """The setting for the heap that tasks share."""
    return DRIVER_MEMORY if is_local(settings) else EXECUTOR_MEMORY


def cores(settings: Mapping[str, str]) -> str:
    """The setting for the number of tasks that share a heap."""
    return "threads in spark.master" if is_local(settings) else "spark.executor.cores"


def heap(settings: Mapping[str, str]) -> int | None:
    """The heap that tasks share, in bytes; None where the setting is no size."""
    return size_of(settings.get(memory(settings), DEFAULT))


def size_of(text: str) -> int | None:
    """The bytes of a memory setting, such as `512m` or `2GB`; None where it is no size."""
    found = re.fullmatch(r"\s*(\d+)\s*([bkmgtp]?)b?\s*", text.lower())
    return int(found[1]) * UNITS[found[2]] if found else None
