"""What cluster managers write about a lost executor becomes one of few kinds."""

import pytest

from spark_app.eventlog.model.executor_loss import KINDS, OTHER, kind_of, summary_of
from tests.unit.eventlog.model.test_pod_exit import DELETED, EVICTED, KILLED, LEAKED


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("Executor killed by driver.", "released"),
        ("Executor heartbeat timed out after 129381 ms", "heartbeat_lost"),
        ("Command exited with code 137", "out_of_memory"),
        ("Container killed by YARN for exceeding physical memory limits. 5.5 GB of 5.5 GB used.", "out_of_memory"),
        ("Command exited with code 1", "exited"),
        ("Worker shutting down", "worker_lost"),
        ("Remote RPC client disassociated. Likely due to containers exceeding thresholds.", "disconnected"),
        ("Executor decommission: spot", "decommissioned"),
        ("Container container_1 exited from explicit termination request.", "released"),
        ("The executor with id 1 exited with exit code 0(success).", "released"),
        ("Command exited with code 0", "released"),
        ("Executor decommission.", "decommissioned"),
        ("Container container_e33_01_000002 was preempted.", "preempted"),
        (KILLED, "out_of_memory"),
        (
            KILLED.replace("spark-app:k8s", "spot/oom-idle:1").replace("137", "1").replace("OOMKilled", "Error"),
            "exited",
        ),
        (EVICTED, "evicted"),
        (EVICTED.replace(LEAKED, "The node was low on resource: memory."), "evicted"),
        (DELETED, "deleted"),
        ("", OTHER),
        ("<script>", OTHER),
    ],
)
def test_a_reason_is_of_one_kind(reason: str, kind: str) -> None:
    """The texts are Spark's own, with numbers and names that differ each time."""
    assert kind_of(reason) == kind
    assert kind in {OTHER, *(name for name, _ in KINDS)}


@pytest.mark.parametrize(
    ("reason", "summary"),
    [
        ("Worker shutting\n down", "Worker shutting down"),
        (KILLED, "exit code 137, OOMKilled"),
        ("", "no reason given"),
    ],
)
def test_a_reason_has_a_line(reason: str, summary: str) -> None:
    """That of a pod is without the statuses of its containers."""
    assert summary_of(reason) == summary
