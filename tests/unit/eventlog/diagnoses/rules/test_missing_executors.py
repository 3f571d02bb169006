"""Executors that were asked for and not there: how long jobs waited, and how many came."""

from typing import Any

from spark_app.eventlog.findings import Finding
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import found
from tests.unit.eventlog.log import Line

POD = {
    "spark.master": "k8s://https://host:6443",
    "spark.kubernetes.namespace": "jobs",
    "spark.kubernetes.container.image": "shop:7",
    "spark.kubernetes.executor.request.cores": "0.4",
}


def finding(*lines: Line, settings: dict[str, str] = POD) -> Finding | None:
    """What the rule says of an application."""
    return found([log.started(1000), log.environment(settings), *lines]).get("missing_executors")


def waiting(seconds: int) -> list[Line]:
    """A job that waits for its two executors, and then runs as long, a task on each of their cores."""
    came = 2000 + seconds * 1000
    executors = [log.executor(number, time=came) for number in ("1", "2")]
    end = came + seconds * 1000
    times: dict[str, Any] = {"Launch Time": came, "Finish Time": end}
    ends = [log.task(number, 0, **times) for number in range(1, 5)]
    run = [log.stage(0), *executors, *(each | {"Event": "SparkListenerTaskStart"} for each in ends), *ends]
    return [log.job(0, [0], time=2000), *run, log.stage(0, end=end), log.job_ended(0, time=end), log.ended(end)]


def test_a_job_that_waits_for_executors_costs_the_wait() -> None:
    """With what was asked for, and where the reason is."""
    told = finding(*waiting(40))
    assert told is not None
    assert (told.severity, told.cost_ms, told.numbers["executors_asked"]) == ("warning", 40_000, 2)
    assert told.text == (
        "Jobs waited for 40.0 s of 1 min 21 s (49 %), and no executor was there. The first came after 41.0 s, and at "
        "most 2 of 2 executors that the settings ask for were there at once."
    )
    assert "`kubectl -n jobs describe pods -l spark-app-selector=app-1,spark-role=executor`" in told.advice
    assert "has 0.4 CPU and 1.4 GiB of memory free" in told.advice
    assert "nodes cannot pull shop:7" in told.advice


def test_a_short_wait_is_no_finding() -> None:
    """Each start of pods takes some seconds."""
    assert finding(*waiting(28)) is None


def test_an_application_that_never_got_an_executor_says_so() -> None:
    """Somebody has ended it."""
    told = finding(log.job(0, [0], time=2000), log.ended(62_000))
    assert told is not None
    assert "None of 2 executors that the settings ask for ever came" in told.text


def test_fewer_executors_than_were_asked_for_are_an_info_of_longer_applications() -> None:
    """One of two came, and there was always one."""
    one = [log.executor("1", time=1500), log.job(0, [0], time=2000)]
    told = finding(*one, log.job_ended(0, time=90_000), log.ended(90_000))
    assert told is not None
    assert (told.severity, told.cost_ms) == ("info", None)
    assert told.text.startswith("The first came after 500 ms, and at most 1 of 2 executors")
    assert finding(*one, log.job_ended(0, time=30_900), log.ended(30_900)) is None


def test_no_number_is_asked_for_with_dynamic_allocation() -> None:
    """A wait is one all the same."""
    dynamic = POD | {"spark.dynamicAllocation.enabled": "true"}
    told = finding(*waiting(40), settings=dynamic)
    assert told is not None
    assert "asked" not in "".join(told.numbers)
    assert "at most 2 were there at once" in told.text
    one = [log.executor("1", time=1500), log.job(0, [0], time=2000)]
    assert finding(*one, log.job_ended(0, time=90_000), log.ended(90_000), settings=dynamic) is None


def test_other_cluster_managers_are_asked_for_the_reason() -> None:
    """They have no pods."""
    told = finding(*waiting(40), settings={"spark.master": "spark://host:7077"})
    assert told is not None
    assert "cluster manager" in told.advice


def test_a_driver_that_runs_the_tasks_waits_for_nobody() -> None:
    """In local mode there are no others."""
    assert finding(*waiting(40), settings={"spark.master": "local[4]"}) is None
