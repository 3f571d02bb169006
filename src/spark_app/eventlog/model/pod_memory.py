"""The memory that Kubernetes lets the pod of an executor use, by the settings of its application.

No event has the limit of a pod. Spark computes it from settings, which the log has; source: Spark's
`ResourceProfile.getResourcesForClusterManager` and `BasicExecutorFeatureStep`, 3.5 to 4.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from spark_app.eventlog.model import kubernetes_pods, memory_settings
from spark_app.eventlog.model.memory_settings import size_of

OVERHEAD: Final = "spark.executor.memoryOverhead"
MIN_OVERHEAD: Final = "spark.executor.minMemoryOverhead"
FACTOR: Final = "spark.executor.memoryOverheadFactor"
KUBERNETES_FACTOR: Final = "spark.kubernetes.memoryOverheadFactor"
"""The older setting; `spark-submit` sets it to 0.4 for the driver of a Python program, from which executors have it."""
PYTHON: Final = "spark.executor.pyspark.memory"
OFF_HEAP: Final = "spark.memory.offHeap.size"
OFF_HEAP_ENABLED: Final = "spark.memory.offHeap.enabled"
LANGUAGE: Final = "spark.kubernetes.resource.type"
PYTHON_PROGRAM: Final = "python"
DEFAULT_FACTOR: Final = 0.1
DEFAULT_MIN_OVERHEAD: Final = "384m"
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class PodMemory:
    """What the pod of an executor may use, in bytes.

    Attributes:
        heap: Of the JVM.
        overhead: For all else in the pod: the JVM beside its heap, Python workers without a share, files in memory.
        off_heap, python: Shares of their own; 0 without.
    """

    heap: int
    overhead: int
    off_heap: int
    python: int

    @property
    def limit(self) -> int:
        """The limit of the pod."""
        return self.heap + self.overhead + self.off_heap + self.python


def pod_memory(settings: Mapping[str, str]) -> PodMemory | None:
    """What the pod of an executor may use; None where it is no pod, or a setting is none that Spark could read."""
    heap, overhead = memory_settings.heap(settings), _overhead(settings)
    has_off_heap = settings.get(OFF_HEAP_ENABLED, "").strip().lower() == "true"
    off_heap = _bytes(settings.get(OFF_HEAP, "0")) if has_off_heap else 0
    python = size_of(settings.get(PYTHON, "0")) if settings.get(LANGUAGE) == PYTHON_PROGRAM else 0
    if kubernetes_pods.namespace(settings) is None or None in (heap, overhead, off_heap, python):
        return None
    return PodMemory(heap or 0, overhead or 0, off_heap or 0, python or 0)


def _overhead(settings: Mapping[str, str]) -> int | None:
    if OVERHEAD in settings:
        return size_of(settings[OVERHEAD])
    heap, least = memory_settings.heap(settings), size_of(settings.get(MIN_OVERHEAD, DEFAULT_MIN_OVERHEAD))
    try:
        factor = float(settings.get(FACTOR, settings.get(KUBERNETES_FACTOR, DEFAULT_FACTOR)))
    except ValueError:
        return None
    return None if heap is None or least is None else max(int(factor * heap / _MIB) * _MIB, least)


def _bytes(text: str) -> int | None:
    """A size whose unit is a byte where it has none."""
    return int(text) if text.strip().isdecimal() else size_of(text)
