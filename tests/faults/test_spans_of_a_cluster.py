"""The spans of a cluster that loses something show it: copies of tasks, lost executors, attempts of stages."""

from collections import Counter

import pytest

from tests.eventlogs import walking
from tests.eventlogs.left import Log, left_by
from tests.eventlogs.standalone import cluster


@pytest.fixture(scope="module")
def of_cluster(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """What a program leaves on a cluster of two hosts."""
    folder = tmp_path_factory.mktemp("cluster")
    with cluster(folder / "cluster") as url:
        return left_by("dying", folder / "job", url)


def test_a_copy_of_a_slow_task_and_the_task_itself_are_told(of_cluster: Log) -> None:
    """The one has run beside the other, which is killed after the stage has ended."""
    walking.assert_is_forest(of_cluster.app, of_cluster.spans)
    tasks = [span for span in of_cluster.of("speculation", "task") if span.attributes["spark.task.index"] == 0]
    by_copy = {span.attributes.get("spark.task.speculative", False): span for span in tasks}
    assert set(by_copy) == {True, False}
    failures = {is_copy: span.failure for is_copy, span in by_copy.items()}
    assert failures.pop(True) is None
    assert [failure.type for failure in failures.values() if failure] == ["TaskKilled"]
    assert by_copy[False].attributes["host.name"] != by_copy[True].attributes["host.name"]


def test_an_executor_that_dies_costs_attempts(of_cluster: Log) -> None:
    """The task that died with it has failed, what the executor held is made again, the job goes well."""
    (job,) = of_cluster.of("lost executor", "job")
    assert job.failure is None
    attempts = Counter(span.attributes["spark.stage.id"] for span in of_cluster.of("lost executor", "stage"))
    assert max(attempts.values()) > 1
    failures = {span.failure.type for span in of_cluster.of("lost executor", "task") if span.failure}
    assert "ExecutorLostFailure" in failures
    assert [executor.removed for executor in of_cluster.app.executors.values() if executor.removed]
