"""The pods of an application that runs on Kubernetes, by its Spark properties: events name hosts, not pods.

Spark knows no nodes. A pod names its own by the variable `SPARK_EXECUTOR_ATTRIBUTE_KUBERNETES_NODE_NAME`, as those of
config/spark/kubernetes-pod.yaml do: Spark logs variables with such names when an executor starts, and for a driver the
entry point of the image makes it a property.
"""

from collections.abc import Mapping
from typing import Final

MASTER: Final = "k8s://"
"""What the address of the master begins with on Kubernetes."""
NAMESPACE: Final = "spark.kubernetes.namespace"
DRIVER: Final = "spark.kubernetes.driver.pod.name"
"""Absent where a driver outside of the cluster has started its executors there."""
PREFIX: Final = "spark.kubernetes.executor.podNamePrefix"
"""Spark sets it before it starts executors, unless the user has."""
NODE: Final = "spark.kubernetes.driverEnv.SPARK_EXECUTOR_ATTRIBUTE_KUBERNETES_NODE_NAME"
ALLOCATOR: Final = "spark.kubernetes.allocation.pods.allocator"
DIRECT: Final = "direct"
"""The allocator that starts executors as pods of its own, which is the default. Others have other names for them."""


def namespace(properties: Mapping[str, str]) -> str | None:
    """The namespace of the pods; None where the application does not run on Kubernetes."""
    is_on_kubernetes = properties.get("spark.master", "").startswith(MASTER)
    return properties.get(NAMESPACE, "default") if is_on_kubernetes else None


def driver(properties: Mapping[str, str]) -> str | None:
    """The pod of the driver, where it is known."""
    return None if namespace(properties) is None else properties.get(DRIVER)


def driver_node(properties: Mapping[str, str]) -> str | None:
    """The node of the driver's pod, where that names it."""
    return None if namespace(properties) is None else properties.get(NODE)


def executor(properties: Mapping[str, str], number: str) -> str | None:
    """The pod of an executor, where it is known."""
    prefix = properties.get(PREFIX)
    if namespace(properties) is None or prefix is None or properties.get(ALLOCATOR, DIRECT) != DIRECT:
        return None
    return f"{prefix}-exec-{number}"
