"""Two masters with TLS: the one that leads is killed, and who listens cannot read what ZooKeeper is told of it."""

import json
from collections.abc import Iterator
from typing import Final

import pytest

from tests.e2e.stack import docker, run_in, started
from tests.ha.masters import FAIL_OVER_SECONDS, MASTERS, OUTPUT, leader, running_job, status, tasks
from tests.polling import poll_until
from tests.tls.listening import CLIENT_HELLO, Heard, listening

FILE: Final = "docker-compose.ha-tls.yml"
PROJECT: Final = "spark-app-ha-tls"
WITHOUT: Final = "elasticsearch,grafana,jaeger,jupyter,kafka,kibana,spark-history"
PAGE: Final = "https://localhost:8480"
CLIENTS, FOLLOWERS, ELECTION = 2281, 2888, 3888
"""Ports of ZooKeeper."""
SPARK_PORT: Final = 7077
LEADS: Final = 'sum by (instance) (metrics_master_aliveWorkers_Number{job="spark-master"}) > 0'


@pytest.fixture(scope="module", autouse=True)
def stack() -> Iterator[None]:
    """Two masters, two workers, three ZooKeepers and Prometheus; all of it is removed in the end."""
    with started(FILE, PROJECT, "--without", WITHOUT):
        yield


def test_a_job_outlives_its_leading_master_and_nothing_can_be_read(figures: list[str]) -> None:
    """One of the ZooKeepers is started again, too, so that each kind of connection is heard from its beginning.

    A master that leads and was connected with it ends, and starts again: that is Spark's way.
    """
    with listening("spark-app") as heard:
        docker("restart", "zookeeper-3")
        poll_until(lambda: leader(PAGE) is not None, "no master leads", seconds=180)
        killed = str(leader(PAGE))
        [other] = set(MASTERS) - {killed}
        with running_job(other) as job:
            poll_until(lambda: tasks(other) > 3, "no task has ended")
            docker("kill", killed)
            poll_until(lambda: leader(PAGE) == other, "the other does not lead", seconds=FAIL_OVER_SECONDS)
            output, _ = job.communicate(timeout=300)
        docker("start", killed)
        poll_until(lambda: status(killed, PAGE).get("status") == "STANDBY", lambda: status(killed, PAGE))
    assert output.strip() == OUTPUT
    assert heard.readable == {}
    assert heard.sizes[SPARK_PORT] > 1000
    assert begun_without_tls(heard, {CLIENTS, FOLLOWERS, ELECTION}) == set()
    assert {there[3] for there in heard.first} >= {CLIENTS, FOLLOWERS, ELECTION}
    poll_until(lambda: leads() == {f"{other}:8480"}, leads)
    figures.append(f"two masters with TLS: heard {sum(heard.sizes.values()):,} bytes, and could read nothing")


def begun_without_tls(heard: Heard, ports: set[int]) -> set[int]:
    """The ports on which a connection began in another way."""
    return {there[3] for there, said in heard.first.items() if not said.startswith(CLIENT_HELLO)} & ports


def leads() -> set[str]:
    """The masters that have workers, as Prometheus knows it."""
    asked = ["-fsS", "-G", "https://prometheus:9090/api/v1/query", "--data-urlencode", f"query={LEADS}"]
    result = json.loads(run_in("spark-worker-1", "curl", *asked).stdout)["data"]["result"]
    return {each["metric"]["instance"] for each in result}
