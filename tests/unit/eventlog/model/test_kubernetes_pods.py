"""The pods of an application are known by what Spark sets, and not where another cluster manager runs it."""

from typing import Final

from spark_app.eventlog.model import kubernetes_pods

ON_KUBERNETES: Final = {
    "spark.master": "k8s://https://kubernetes.default.svc",
    "spark.kubernetes.namespace": "jobs",
    "spark.kubernetes.driver.pod.name": "flights-1a2b-driver",
    "spark.kubernetes.executor.podNamePrefix": "flights-3c4d",
    "spark.kubernetes.driverEnv.SPARK_EXECUTOR_ATTRIBUTE_KUBERNETES_NODE_NAME": "node-1",
}


def test_pods_have_the_names_that_spark_gives_them() -> None:
    """An executor's is its number after the prefix of the application."""
    assert kubernetes_pods.namespace(ON_KUBERNETES) == "jobs"
    assert kubernetes_pods.driver(ON_KUBERNETES) == "flights-1a2b-driver"
    assert kubernetes_pods.executor(ON_KUBERNETES, "2") == "flights-3c4d-exec-2"
    assert kubernetes_pods.driver_node(ON_KUBERNETES) == "node-1"


def test_what_is_not_set_is_the_default_of_spark_or_unknown() -> None:
    """A driver outside of the cluster has no pod; an allocator of the user may name pods as it likes."""
    properties = {"spark.master": "k8s://https://10.0.0.1:6443"}
    assert kubernetes_pods.namespace(properties) == "default"
    assert kubernetes_pods.driver(properties) is None
    assert kubernetes_pods.driver_node(properties) is None
    assert kubernetes_pods.executor(properties, "2") is None
    allocated = ON_KUBERNETES | {"spark.kubernetes.allocation.pods.allocator": "statefulset"}
    assert kubernetes_pods.executor(allocated, "2") is None


def test_an_application_elsewhere_has_no_pods() -> None:
    """Defaults of a cluster may set properties of Kubernetes for applications that run locally."""
    properties = ON_KUBERNETES | {"spark.master": "local[2]"}
    assert kubernetes_pods.namespace(properties) is None
    assert kubernetes_pods.driver(properties) is None
    assert kubernetes_pods.driver_node(properties) is None
    assert kubernetes_pods.executor(properties, "driver") is None
