"""What Spark logs of a pod is read in its parts; the texts are those of recorded logs, and of reports by users."""

import pytest

from spark_app.eventlog.model.pod_exit import PodExit, pod_exit

KILLED = """
The executor with id 2 exited with exit code 137(SIGKILL, possible container OOM).



The API gave the following container statuses:


\t container name: spark-kubernetes-executor
\t container image: docker.io/library/spark-app:k8s
\t container state: terminated
\t container started at: 2026-11-25T17:25:13Z
\t container finished at: 2026-11-25T17:25:39Z
\t exit code: 137
\t termination reason: OOMKilled
      """
LEAKED = 'Usage of EmptyDir volume "scratch" exceeds the limit "100Mi".'
EVICTED = f"""
The executor with id 2 exited with exit code -1(unexpected).
The API gave the following brief reason: Evicted
The API gave the following message: {LEAKED}\x20

The API gave the following container statuses:


\t container name: spark-kubernetes-executor
\t container image: spark-app:k8s
\t container state: waiting
\t pending reason: ContainerCreating
      """
OLDER = """
The executor with id 7 exited with exit code 143.
The API gave the following brief reason: N/A
The API gave the following message: N/A
The API gave the following container statuses:

\t exit code: 143
\t termination reason: Error
      """
DELETED = "The executor with id 1 was deleted by a user or the framework."
MISSING = (
    "The executor with ID 4 (registered at 1795627389688 ms) was not found in the cluster at the polling time "
    "(1795627489688 ms) which is after the accepted detect delta time (30000 ms) configured by "
    "`spark.kubernetes.executor.missingPodDetectDelta`. The executor may have been deleted but the driver missed the "
    "deletion event. Marking this executor as failed."
)


@pytest.mark.parametrize(
    ("text", "expected", "summary"),
    [
        (KILLED, PodExit(137, "OOMKilled"), "exit code 137, OOMKilled"),
        (EVICTED, PodExit(reason="Evicted", message=LEAKED), f"Evicted: {LEAKED}"),
        (OLDER, PodExit(143, "Error"), "exit code 143"),
        (DELETED, PodExit(is_deleted=True), "the pod was deleted"),
        (MISSING, PodExit(is_deleted=True), "the pod was deleted"),
        (KILLED.replace("OOMKilled", "Error"), PodExit(137, "Error"), "exit code 137"),
    ],
    ids=["killed", "evicted", "older", "deleted", "missing", "killed without a reason"],
)
def test_a_reason_is_read_in_its_parts(text: str, expected: PodExit, summary: str) -> None:
    """Without the number of the executor, so that executors that ended in one way have one summary."""
    found = pod_exit(text)
    assert found == expected
    assert found is not None
    assert found.summary == summary


def test_a_container_that_the_kernel_killed_counts_among_others() -> None:
    """A sidecar that ended in order does not hide it."""
    found = pod_exit(KILLED.replace("\t exit code", "\t termination reason: Completed\n\t exit code"))
    assert found is not None
    assert found.container == "OOMKilled"


@pytest.mark.parametrize(
    "text", ["", "Executor killed by driver.", "Command exited with code 137", "Executor heartbeat timed out"]
)
def test_other_cluster_managers_say_nothing_of_pods(text: str) -> None:
    """Their reasons are read as they are."""
    assert pod_exit(text) is None
