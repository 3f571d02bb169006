"""Which settings size what runs the tasks: those of executors; on one machine, where there are none, the driver's."""

from collections.abc import Mapping


def is_local(settings: Mapping[str, str]) -> bool:
    """Whether the driver runs the tasks itself: `local`, `local[4]`, but not `local-cluster[...]`."""
    master = settings.get("spark.master", "")
    return master == "local" or master.startswith("local[")


def memory(settings: Mapping[str, str]) -> str:
    """The setting that says how much heap the tasks share."""
    return "spark.driver.memory" if is_local(settings) else "spark.executor.memory"


def cores(settings: Mapping[str, str]) -> str:
    """The setting that says how many tasks share that heap."""
    return "threads in spark.master" if is_local(settings) else "spark.executor.cores"
