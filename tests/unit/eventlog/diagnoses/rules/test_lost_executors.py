from typing import Any

import pytest

from spark_app.eventlog.diagnoses.heap_use import executor_memory
from spark_app.eventlog.model.executor_loss import summary_of
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import BEGAN, GIB, found, peaks, settings, stage, task
from tests.unit.eventlog.log import Line


def test_a_lost_executor_costs_the_tasks_that_were_lost() -> None:
    """A task of 40 s was lost, and ran alone."""
    lines = stage([task(0, 40, loss="gone")], seconds=40)
    gone = log.removed(time=BEGAN + 40_000, reason="Command exited with code 137")
    finding = found([*lines, gone, log.ended(BEGAN + 40_000 + 1)])["lost_executors"]
    assert finding.cost_ms == pytest.approx(40_000, rel=0.01)
    assert finding.severity == "warning"
    assert "Lost 1 of 1 executor and 1 task that ran there (40.0 s of task time)" in finding.text
    assert "SIGKILL" in finding.advice


def out_of_memory(number: int, seconds: float, **fields: Any) -> list[Line]:
    """A task that needs more heap than there is, which ends its executor."""
    begin, end = task(number, seconds, error="Java heap space", **fields)
    reason = end["Task End Reason"] | {"Class Name": "java.lang.OutOfMemoryError"}
    return [begin, end | {"Task End Reason": reason}]


def test_a_task_that_ends_its_executor_is_lost_with_it() -> None:
    """One cause, and its task is no failure beside it; one that fails of its own accord is, also there."""
    tasks = [out_of_memory(0, 30), task(1, 1, begin=29.5, loss="gone"), task(2, 30, executor="1")]
    lines = [log.executor("1", cores=1), *stage(tasks, seconds=31, cores=1), log.ended(BEGAN + 32_000)]
    gone = log.removed(time=BEGAN + 30_600, reason="Command exited with code 52")
    lost = found([*lines[:-2], gone, *lines[-2:]])
    assert lost.keys() == {"lost_executors"}
    assert "Lost 1 of 2 executors and 2 tasks that ran there (31.0 s of task time)" in lost["lost_executors"].text
    assert "a task had failed there: java.lang.OutOfMemoryError: Java heap space" in lost["lost_executors"].text
    assert found(lines).keys() == {"failed_tasks"}, "the executor is still there"
    released = log.removed(time=BEGAN + 30_600, reason="Executor killed by driver.")
    assert found([*lines[:-2], released, *lines[-2:]]).keys() == {"failed_tasks"}
    broken = [task(0, 30, error="broken row"), *tasks[1:]]
    both = [log.executor("1", cores=1), *stage(broken, seconds=31, cores=1), gone, log.ended(BEGAN + 32_000)]
    assert found(both).keys() == {"failed_tasks", "lost_executors"}
    assert "after a task had failed" not in found(both)["lost_executors"].text


def test_a_lost_task_that_runs_last_costs_the_time_of_the_others_too() -> None:
    """Four tasks of 20 s on two slots: with one that is lost at its end, 60 s instead of 40 s and not 10 s more."""
    tasks = [out_of_memory(0, 20), task(1, 20, executor="1"), task(2, 20, begin=20, executor="1")]
    tasks += [task(3, 20, begin=25, executor="2"), task(4, 20, begin=40, executor="1")]
    begin, *rest = stage(tasks, seconds=60, cores=1)
    lines = [begin, log.executor("1", cores=1), *rest[:-1]]
    gone = log.removed(time=BEGAN + 20_000, reason="Command exited with code 52")
    over = log.ended(BEGAN + 60_100)
    place = next(at for at, line in enumerate(lines) if line.get("Task Info", {}).get("Launch Time") == BEGAN + 20_000)
    before, after = lines[:place], lines[place:]
    finding = found([*before, gone, log.executor("2", cores=1, time=BEGAN + 25_000), *after, rest[-1], over])
    cost = finding["lost_executors"]
    assert cost.cost_ms == 20_000
    assert cost.cost_low_ms == pytest.approx(10_000, rel=0.1)
    assert cost.cost_high_ms == 25_000, "and the 5 s until the next executor came"


def test_an_executor_that_is_lost_while_idle_is_an_info() -> None:
    """It cost nothing."""
    finding = found([log.started(), log.executor(), log.removed(time=2000, reason="worker lost")])["lost_executors"]
    assert (finding.severity, finding.cost_ms) == ("info", 0)


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("Container killed by YARN for exceeding physical memory limits", "memoryOverhead"),
        ("The executor with id 3 exited with exit code 52(JVM OOM)", "Its heap was full: raise spark.executor.memory"),
        ("Executor heartbeat timed out after 152000 ms", "spark.network.timeout"),
    ],
)
def test_the_advice_goes_by_the_reason(reason: str, word: str) -> None:
    """Memory is only named where it was the memory."""
    finding = found([log.started(), log.executor(), log.removed(time=2000, reason=reason)])["lost_executors"]
    assert word in finding.advice
    assert summary_of(reason) in finding.text


@pytest.mark.parametrize(
    "reason",
    [
        "Executor killed by driver.",
        "Executor decommission: spot instance",
        "Finished decommissioning",
        "Container container_1 exited from explicit termination request.",
        "The executor with id 1 exited with exit code 0(success).",
        "Command exited with code 0",
    ],
)
def test_an_executor_that_was_sent_away_is_not_lost(reason: str) -> None:
    """Dynamic allocation, decommissioning, and an end in order."""
    assert not found([log.started(), log.executor(), log.removed(time=2000, reason=reason)])


def test_an_executor_that_goes_after_the_application_is_not_lost() -> None:
    """The cluster takes down what is left of it."""
    assert not found([log.started(), log.executor(), log.ended(3000), log.removed(time=3000, reason="worker lost")])


def test_memory_is_not_judged_by_a_few_reports() -> None:
    """They may have missed the peak."""
    lines = [log.started(), settings(executor_memory="8g"), log.executor(), *([peaks("0", GIB)] * 9)]
    assert not found(lines)


def test_the_most_that_any_executor_used_counts() -> None:
    """One of two needs its memory."""
    lines = [log.started(), settings(executor_memory="8g"), log.executor("0"), log.executor("1")]
    assert not found([*lines, *([peaks("0", GIB)] * 10), peaks("1", 6 * GIB), *([peaks("1", GIB)] * 9)])


def test_tasks_tell_the_heap_too() -> None:
    """With each task of ten seconds or more; zeros mean that nobody looked."""
    lines = [log.started(), settings(executor_memory="8g"), log.executor()]
    for number, heap in enumerate((0, GIB, 2 * GIB)):
        begin, end = task(number, 12)
        lines += [begin, end | {"Task Executor Metrics": {"JVMHeapMemory": heap}}]
    app = log.application(lines)
    assert (app.executors["0"].peak_heap, app.executors["0"].heap_samples) == (2 * GIB, 2)


@pytest.mark.parametrize(
    ("properties", "size"),
    [
        ({"app_name": "shop"}, GIB),
        ({"executor_memory": "512m"}, GIB // 2),
        ({"executor_memory": "2GB"}, 2 * GIB),
        ({"executor_memory": "1024"}, GIB),
        ({"executor_memory": "?"}, None),
    ],
)
def test_the_memory_of_executors_is_read_as_spark_reads_it(properties: dict[str, str], size: int | None) -> None:
    """A number alone is MiB; Spark's default is 1 GiB."""
    assert executor_memory(log.application([log.started(), settings(**properties), log.executor()])) == size


def test_memory_is_not_known_where_the_log_has_no_settings() -> None:
    """It is not Spark's default: nobody knows."""
    assert executor_memory(log.application([log.started(), log.executor()])) is None
