"""Two masters: the one that leads is killed in the middle of a stage, and nobody's work is lost: `make e2e-ha`."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.e2e import backends
from tests.e2e.stack import docker, records, run_in, started
from tests.ha.masters import FAIL_OVER_SECONDS, MASTERS, OUTPUT, TASKS, leader, running_job, status, tasks
from tests.polling import poll_until

FILE: Final = "docker-compose.ha.yml"
PROJECT: Final = "spark-app-ha"
WITHOUT: Final = "elasticsearch,grafana,jaeger,jupyter,kafka,kibana,spark-history"
PAGE: Final = "http://localhost:8080"
ALERT: Final = 'ALERTS{alertname="SparkMasterDown", alertstate="firing"}'
LEADS: Final = 'sum by (instance) (metrics_master_aliveWorkers_Number{job="spark-master"}) > bool 0'
"""The panel *Leading master*."""


def leading() -> dict[str, float]:
    """Which masters have workers, as the dashboard shows it."""
    return {dict(labels)["instance"]: value for labels, value in backends.PROMETHEUS.values(LEADS).items()}


@dataclass(frozen=True)
class FailOver:
    """A job whose leading master was killed.

    Attributes:
        killed: The master.
        other: The one that led afterwards.
        output: What the job printed.
        done: Tasks that had ended when it was killed.
        seconds: From the kill until the other one led with all workers.
        days: The records of a day that was run afterwards, while the killed one was away.
    """

    killed: str
    other: str
    output: str
    done: int
    seconds: float
    days: list[dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def stack() -> Iterator[None]:
    """Two masters, two workers, three ZooKeepers, Prometheus and what these need; all of it is removed in the end."""
    with started(FILE, PROJECT, "--without", WITHOUT):
        yield


@pytest.fixture(scope="module")
def fail_over() -> FailOver:
    """A stage of a job that runs in the container of the master that waits; the leading one is killed meanwhile."""
    poll_until(lambda: leader(PAGE) is not None, "no master leads")
    killed = str(leader(PAGE))
    [other] = set(MASTERS) - {killed}
    with running_job(other) as job:
        poll_until(lambda: tasks(other) > 3, "no task has ended")
        began, done = time.monotonic(), tasks(other)
        docker("kill", killed)
        poll_until(lambda: leader(PAGE) == other, "the other does not lead", seconds=FAIL_OVER_SECONDS)
        seconds = time.monotonic() - began
        output, _ = job.communicate(timeout=300)
    days = records(run_in(other, "run_etl.sh", "2024-01-01", "customers", "--json").stdout)
    return FailOver(killed, other, output, done, seconds, days)


def test_a_job_ends_right_when_its_leading_master_is_killed(fail_over: FailOver, figures: list[str]) -> None:
    """It was in the middle of a stage, and it has lost nothing."""
    assert 3 < fail_over.done < TASKS
    assert fail_over.output.strip() == OUTPUT
    figures.append(f"the other master led with all workers {fail_over.seconds:.1f} s after the kill")


def test_days_run_whoever_leads(fail_over: FailOver) -> None:
    """Also while one of the masters is away."""
    assert [run["outcome"] for run in fail_over.days] == ["succeeded"]


def test_the_alert_fires_and_resolves(fail_over: FailOver) -> None:
    """It names the master that is away, and ends when that is back; the dashboard shows which one leads."""
    poll_until(lambda: firing() == {f"{fail_over.killed}:8080"}, firing, seconds=180)
    assert leading()[f"{fail_over.other}:8080"] == 1
    docker("start", fail_over.killed)
    poll_until(lambda: firing() == set(), firing, seconds=180)
    poll_until(
        lambda: status(fail_over.killed, PAGE).get("status") == "STANDBY", lambda: status(fail_over.killed, PAGE)
    )
    poll_until(lambda: leading() == {f"{fail_over.killed}:8080": 0, f"{fail_over.other}:8080": 1}, leading)


def firing() -> set[str]:
    """The masters for which the alert fires."""
    return {dict(labels)["instance"] for labels in backends.PROMETHEUS.values(ALERT)}


def test_the_application_is_known_to_the_master_that_took_over(fail_over: FailOver) -> None:
    """Its history is there, too: as completed."""
    completed = [each["name"] for each in status(fail_over.other, PAGE)["completedapps"]]
    assert "two masters" in completed, json.dumps(completed)
