"""What cluster managers write about a lost executor becomes one of few kinds."""

import pytest

from spark_app.eventlog.model.executor_loss import KINDS, OTHER, kind_of


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
        ("", OTHER),
        ("<script>", OTHER),
    ],
)
def test_a_reason_is_of_one_kind(reason: str, kind: str) -> None:
    """The texts are Spark's own, with numbers and names that differ each time."""
    assert kind_of(reason) == kind
    assert kind in {OTHER, *(name for name, _ in KINDS)}
