"""What is advised about executors whose pods Kubernetes ended."""

import pytest

from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import found, stage, task
from tests.unit.eventlog.model.test_pod_exit import DELETED, EVICTED, KILLED, OLDER

SETTINGS = {
    "spark.master": "k8s://https://host:6443",
    "spark.kubernetes.namespace": "jobs",
    "spark.kubernetes.resource.type": "python",
    "spark.kubernetes.memoryOverheadFactor": "0.4",
    "spark.executor.memory": "2g",
}


def advice(reason: str, **settings: str) -> str:
    """The advice about an executor that was lost so."""
    own = {f"spark.{key.replace('_', '.')}": value for key, value in settings.items()}
    lines = [log.started(), log.environment(SETTINGS | own), log.executor(), log.removed(time=2000, reason=reason)]
    return found(lines)["lost_executors"].advice


def test_a_kill_at_the_memory_limit_has_the_limit_and_its_shares() -> None:
    """With the settings that raise them, and their values."""
    text = advice(KILLED)
    assert "at the memory limit of its pod, by the settings 2.8 GiB (2.0 GiB of heap, 819.0 MiB of overhead" in text
    assert "raise spark.executor.memoryOverhead (not set), or spark.kubernetes.memoryOverheadFactor (now 0.4)" in text
    assert "spark.executor.pyspark.memory (not set) gives Python workers a share of their own" in text


def test_the_advice_about_memory_names_what_is_set() -> None:
    """The newer factor counts where both are there; a JVM program has no Python workers."""
    text = advice(
        KILLED,
        executor_memoryOverheadFactor="0.2",
        executor_memoryOverhead="1g",
        kubernetes_resource_type="java",
    )
    assert "3.0 GiB (2.0 GiB of heap, 1.0 GiB of overhead" in text
    assert "spark.executor.memoryOverhead (now 1g), or spark.executor.memoryOverheadFactor (now 0.2)" in text
    assert "Python" not in text


def test_a_limit_that_is_not_known_is_not_named() -> None:
    """The advice is the same otherwise."""
    assert "the memory limit of its pod: raise" in advice(KILLED, executor_memory="much")


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        (EVICTED, "It filled its local disk"),
        (EVICTED.replace("EmptyDir volume", "ephemeral-storage"), "It filled its local disk"),
        (EVICTED.replace("Usage of EmptyDir volume", "The node was low on resource: memory"), "Its node ran short"),
        (EVICTED.replace("Evicted", "Preempting"), "A critical pod needed its place"),
        (DELETED, "kubectl -n jobs get events"),
        (OLDER, "Its pod was deleted"),
        (KILLED.replace("OOMKilled", "Error"), "Kubernetes does not say that its memory was the reason"),
        (KILLED.replace("137", "52").replace("OOMKilled", "Error"), "raise spark.executor.memory (now 2g)"),
        (KILLED.replace("137", "1").replace("OOMKilled", "Error"), "Read the logs of the executor"),
    ],
)
def test_the_advice_goes_by_what_kubernetes_said(reason: str, word: str) -> None:
    """Memory of the pod is only named where the kernel killed it for that."""
    assert word in advice(reason)


def test_equal_ends_of_different_executors_are_one_reason() -> None:
    """Their texts differ by the number of the executor."""
    gone = [log.removed(str(number), time=2000, reason=KILLED.replace("id 2", f"id {number}")) for number in range(3)]
    lines = [log.started(), log.environment(SETTINGS), *(log.executor(str(number)) for number in range(3)), *gone]
    assert "most frequent reason: exit code 137, OOMKilled" in found(lines)["lost_executors"].text


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (SETTINGS, ["at the memory limit of its pod, by the settings 2.8 GiB", "raise spark.executor.memoryOverhead"]),
        (
            {"spark.master": "spark://host:7077"},
            ["where its host ran out of it", "spark.executor.memoryOverheadFactor"],
        ),
        ({"spark.master": "local[4]"}, ["For memory: run fewer tasks at once (threads in spark.master)."]),
    ],
)
def test_a_python_worker_that_ended_without_an_exception_was_killed_or_crashed(
    settings: dict[str, str], words: list[str]
) -> None:
    """The log does not say which; its executor goes on."""
    ended = "Python worker exited unexpectedly (crashed). Consider setting 'spark.python.worker.faulthandler.enabled'"
    lines = [log.environment(settings), *stage([task(0, 10, error=ended)], seconds=10)]
    told = found(lines)["failed_tasks"].advice
    assert "spark.python.worker.faulthandler.enabled=true" in told
    for word in words:
        assert word in told
