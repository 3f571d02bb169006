"""The memory of a pod is what Spark asks Kubernetes for; pods of the stand-in had the first two limits."""

import pytest

from spark_app.eventlog.model.pod_memory import PodMemory, pod_memory

MIB = 1024**2
POD = {"spark.master": "k8s://https://host:6443", "spark.kubernetes.resource.type": "python"}
SMALL = POD | {"spark.executor.memory": "512m", "spark.kubernetes.memoryOverheadFactor": "0.4"}


@pytest.mark.parametrize(
    ("settings", "shares"),
    [
        (SMALL, (512, 384, 0, 0)),
        (SMALL | {"spark.executor.memoryOverhead": "1g"}, (512, 1024, 0, 0)),
        (SMALL | {"spark.executor.memory": "4g"}, (4096, 1638, 0, 0)),
        (SMALL | {"spark.executor.memory": "4g", "spark.executor.memoryOverheadFactor": "0.2"}, (4096, 819, 0, 0)),
        (SMALL | {"spark.executor.minMemoryOverhead": "100m"}, (512, 204, 0, 0)),
        (SMALL | {"spark.executor.pyspark.memory": "300m"}, (512, 384, 0, 300)),
        (POD, (1024, 384, 0, 0)),
        (POD | {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "209715200"}, (1024, 384, 200, 0)),
        (POD | {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "200m"}, (1024, 384, 200, 0)),
        (POD | {"spark.memory.offHeap.size": "200m"}, (1024, 384, 0, 0)),
        ({"spark.master": POD["spark.master"], "spark.executor.pyspark.memory": "300m"}, (1024, 384, 0, 0)),
    ],
)
def test_the_limit_has_the_shares_of_the_settings(settings: dict[str, str], shares: tuple[int, int, int, int]) -> None:
    """Heap, overhead, off-heap memory, and Python's share, which only a Python program has."""
    found = pod_memory(settings)
    assert found == PodMemory(*(share * MIB for share in shares))
    assert found is not None
    assert found.limit == sum(shares) * MIB


@pytest.mark.parametrize(
    "settings",
    [
        {"spark.master": "spark://host:7077"},
        POD | {"spark.executor.memory": "much"},
        POD | {"spark.executor.memoryOverhead": "much"},
        POD | {"spark.executor.memoryOverheadFactor": "much"},
    ],
)
def test_it_is_not_known_without_a_pod_or_a_size(settings: dict[str, str]) -> None:
    """No value is made up."""
    assert pod_memory(settings) is None
