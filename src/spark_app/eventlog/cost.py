"""What the executors of an application took from a cluster: core-hours and GiB-hours, and their price."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from spark_app.eventlog.model import memory_settings
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.settings import Prices
from spark_app.vocabulary.spark_settings import is_local

HOUR_MS: Final = 3_600_000
GIB: Final = 1 << 30
MIN_OVERHEAD: Final = 384 << 20
OVERHEAD_FACTOR: Final = 0.1


@dataclass(frozen=True, slots=True)
class CoreHours:
    """What executors took while they were registered, or would take; the driver of a cluster is not among them.

    Attributes:
        core_hours: Cores, multiplied by hours.
        gib_hours: Memory that was requested for them in GiB, multiplied by hours; None where a setting is no size.
    """

    core_hours: float
    gib_hours: float | None

    def price(self, prices: Prices) -> Decimal | None:
        """What it costs; None where a price is not configured, or the memory that has one is not known."""
        if not prices.has_any:
            return None
        if prices.gib_hour and self.gib_hours is None:
            return None
        cores = Decimal(self.core_hours) * (prices.core_hour or 0)
        return cores + Decimal(self.gib_hours or 0) * (prices.gib_hour or 0)

    def on(self, cores: int, milliseconds: float) -> "CoreHours":
        """What so many cores, with as much memory each, take in so long."""
        hours = cores * milliseconds / HOUR_MS
        ratio = self.gib_hours / self.core_hours if self.gib_hours is not None and self.core_hours else None
        return CoreHours(hours, None if ratio is None else hours * ratio)


def spent(app: Application, start: float, end: float) -> CoreHours | None:
    """What executors took between two instants, in milliseconds since the epoch; None without any."""
    occupancy, memory = app.occupancy((), (start, end)), requested_memory(app.properties)
    core_hours = occupancy.total(occupancy.cores) / HOUR_MS
    gib_hours = None if memory is None else occupancy.total(occupancy.executors) / HOUR_MS * memory / GIB
    return CoreHours(core_hours, gib_hours) if core_hours else None


def by_user(app: Application, stages: Iterable[StageAttempt], took: CoreHours) -> dict[str, CoreHours]:
    """What the tasks of each user of Spark Connect had of what the executors took, by the time of cores.

    Under the empty name: tasks that no user is known for, and executors without a task.
    """
    times = defaultdict[str, int](int)
    for stage in stages:
        job = app.job_of(stage)
        operation = job.operation if job is not None else None
        times[operation.session.user if operation else ""] += sum(stage.durations_ms) * app.task_cpus
    by_name = {user: took.on(1, milliseconds) for user, milliseconds in times.items() if user}
    rest = took.core_hours - sum(each.core_hours for each in by_name.values())
    return by_name | {"": took.on(1, max(0.0, rest) * HOUR_MS)}


def requested_memory(properties: Mapping[str, str]) -> int | None:
    """The memory that is requested for an executor, in bytes; None where a setting is no size.

    The heap, and on YARN and Kubernetes what Spark requests beside it: `spark.executor.memoryOverhead`, or else a tenth
    of the heap and at least 384 MiB, as `ResourceProfile.calculateOverHeadMemory` has it.
    """
    heap = memory_settings.heap(properties)
    if heap is None or is_local(properties) or not properties.get("spark.master", "").startswith(("yarn", "k8s")):
        return heap
    given = properties.get("spark.executor.memoryOverhead")
    overhead = max(MIN_OVERHEAD, round(heap * OVERHEAD_FACTOR)) if given is None else memory_settings.size_of(given)
    return None if overhead is None else heap + overhead
