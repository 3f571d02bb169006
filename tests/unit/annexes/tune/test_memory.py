from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.annexes.tune.memory import MemoryChange, step
from spark_app.eventlog import reader
from spark_app.eventlog.model.application import Application
from tests.unit.eventlog import log

EVENTLOGS: Final = Path(__file__).parents[3] / "eventlogs"
HOST: Final = 16 << 30
HEAP: Final = "java.lang.OutOfMemoryError: Java heap space"


def application(*lines: dict[str, Any], **settings: str) -> Application:
    """An application with some settings, `spark_executor_memory="1g"`, that has failed."""
    properties = {name.replace("_", "."): value for name, value in settings.items()}
    return log.application([log.started(), log.environment(properties), *lines])


def failed_task(error: str, **settings: str) -> Application:
    """An application whose only task has failed."""
    return application(log.job(1, [1]), log.stage(1), log.task(1, 1, error=error), **settings)


def lost(reason: str, **settings: str) -> Application:
    """An application that has lost its executor."""
    return application(log.executor(), log.removed(time=2000, reason=reason), **settings)


def made(found: MemoryChange | None) -> tuple[str, dict[str, str]] | None:
    """The side and the settings of a step."""
    return None if found is None else (found.side, dict(found.settings))


def test_a_recorded_container_at_its_limit_gets_as_much_again_beside_its_heap() -> None:
    """896 MiB of a pod became 1,792: the heap stays."""
    for name in ("out-of-memory-planted", "python-out-of-memory-planted"):
        found = step(reader.read(EVENTLOGS / "kubernetes" / f"{name}.zst").app)
        assert made(found) == ("beside the heap", {"spark.executor.memoryOverhead": "1280m"})


@pytest.mark.parametrize(
    "name", ["kubernetes/out-of-memory-quiet", "kubernetes/evicted-planted", "diagnoses/lost-executor"]
)
def test_a_recorded_run_that_did_not_lack_memory_gets_no_step(name: str) -> None:
    """Nor one whose executor somebody killed where no container has a limit."""
    assert step(reader.read(EVENTLOGS / f"{name}.zst").app) is None


def test_tasks_without_heap_get_twice_the_heap_of_their_executors() -> None:
    """Of the driver in local mode, where they run."""
    cluster = failed_task(HEAP, spark_master="local-cluster[1,1,600]", spark_executor_memory="600m")
    assert made(step(cluster)) == ("executor heap", {"spark.executor.memory": "1200m"})
    local = failed_task(HEAP, spark_master="local[2]", spark_executor_memory="600m")
    assert made(step(local, host_bytes=HOST)) == ("driver heap", {"spark.driver.memory": "2048m"})


def test_an_executor_that_exits_for_its_heap_gets_twice_as_much() -> None:
    """Exit code 52 is Spark's own."""
    found = step(lost("Command exited with code 52", spark_master="spark://h:7077", spark_executor_memory="512m"))
    assert made(found) == ("executor heap", {"spark.executor.memory": "1024m"})


def test_a_container_of_yarn_at_its_limit_gets_more_overhead() -> None:
    """Its least overhead is 384 MiB."""
    reason = "Container killed by YARN for exceeding physical memory limits. 1.4 GB of 1.4 GB physical memory used."
    found = step(lost(reason, spark_master="yarn", spark_executor_memory="1g"))
    assert made(found) == ("beside the heap", {"spark.executor.memoryOverhead": f"{384 + 1024 + 384}m"})


def test_python_workers_at_their_limit_get_twice_as_much() -> None:
    """The heap stays."""
    app = failed_task("Traceback\nMemoryError\n", spark_executor_pyspark_memory="256m")
    assert made(step(app, host_bytes=HOST)) == ("Python workers", {"spark.executor.pyspark.memory": "512m"})


def test_python_workers_without_a_limit_get_nothing_where_no_container_has_one() -> None:
    """Whatever killed them is not a setting of Spark."""
    assert step(failed_task("Python worker exited unexpectedly (crashed)", spark_master="local[2]")) is None


def test_a_driver_without_heap_is_known_by_what_it_printed() -> None:
    """It writes no event when it dies."""
    app = application(spark_master="local[2]", spark_driver_memory="512m")
    printed = f'Exception in thread "main" {HEAP}\n\tat java.util.Arrays.copyOf'
    assert made(step(app, printed, HOST)) == ("driver heap", {"spark.driver.memory": "1024m"})
    assert step(app, "ValueError: no such column", HOST) is None


def test_a_step_in_local_mode_stays_within_the_host() -> None:
    """Three quarters of it at most."""
    app = application(spark_master="local[2]", spark_driver_memory="8g")
    assert step(app, HEAP, HOST) is None
    assert step(app, HEAP, 2 * HOST) is not None


def test_a_heap_below_the_least_one_becomes_the_least_one() -> None:
    """Spark says what it needs; there is no event log yet."""
    found = step(None, "System memory 268435456 must be at least 471859200. Please increase heap size", HOST)
    assert made(found) == ("driver heap", {"spark.driver.memory": "540m"})
    found = step(None, "Executor memory 268435456 must be at least 471859200. Please increase", HOST)
    assert made(found) == ("executor heap", {"spark.executor.memory": "540m"})


def test_results_beyond_their_limit_get_what_all_of_them_need() -> None:
    """By the tasks that Spark had counted: 5 of 10 were 60 MiB."""
    error = "Total size of serialized results of 5 tasks (60.0 MiB) is bigger than spark.driver.maxResultSize"
    failed = log.stage(1, tasks=10, end=2500, error=error)
    app = application(log.job(1, [1]), log.stage(1, tasks=10), failed, log.job_ended(1, error=error))
    assert made(step(app, host_bytes=HOST)) == ("results", {"spark.driver.maxResultSize": "144m"})


def test_a_table_that_no_memory_is_enough_for_is_not_broadcast() -> None:
    """8 GiB are the most in any case."""
    app = application(log.query(1), log.query_ended(1, error="Cannot broadcast the table that is larger than 8.0 GiB"))
    assert made(step(app, host_bytes=HOST)) == ("broadcast", {"spark.sql.autoBroadcastJoinThreshold": "-1"})


def collecting(mebibytes: int, error: str, *tags: str, done: int = 4) -> Application:
    """An application with a heap of 512 MiB whose tasks sent so much, some of four, in a job that then failed."""
    tasks = [log.task(number, 1, error=None if number < done else error) for number in range(min(4, done + 1))]
    for task in tasks[:done]:
        task["Task Metrics"]["Result Size"] = (mebibytes << 20) // done
    job = log.job(1, [1], **{"spark.job.tags": ",".join(("spark-session-1", *tags))})
    lines = [job, log.stage(1, tasks=4), *tasks, log.stage(1, end=3000, tasks=4), log.job_ended(1, error=error)]
    return application(*lines, spark_master="local[2]", spark_driver_memory="512m")


@pytest.mark.parametrize(("mebibytes", "done"), [(150, 4), (75, 2)])
def test_a_driver_that_dies_of_a_broadcast_gets_what_the_table_needs(mebibytes: int, done: int) -> None:
    """Of 150 MiB, whether all tasks had sent their rows or two of four: twice the heap would still be too little."""
    found = step(collecting(mebibytes, HEAP, "broadcast exchange (runId 1)", done=done), host_bytes=HOST)
    assert made(found) == ("driver heap", {"spark.driver.memory": "2048m"})
    assert found is not None
    assert found.why.endswith("by a broadcast of 150 MiB")


def test_a_small_broadcast_gets_twice_the_heap_as_anything_else() -> None:
    """A table of 10 MiB is not what the driver died of."""
    found = step(collecting(10, HEAP, "broadcast exchange (runId 1)"), host_bytes=HOST)
    assert made(found) == ("driver heap", {"spark.driver.memory": "1024m"})


@pytest.mark.parametrize(("mebibytes", "memory"), [(200, "1024m"), (50, None)])
def test_a_driver_that_cannot_take_results_gets_more_heap_where_they_are_large(
    mebibytes: int, memory: str | None
) -> None:
    """Spark then says nothing of memory."""
    error = "Exception while getting task result: java.lang.IllegalStateException: unread block data"
    found = made(step(collecting(mebibytes, error), host_bytes=HOST))
    assert found == (memory and ("driver heap", {"spark.driver.memory": memory}))
