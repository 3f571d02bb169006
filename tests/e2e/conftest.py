import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.doctor.backends import answer
from tests.e2e import backends
from tests.e2e.notebook import notebook
from tests.e2e.signals import Day, Figure, Harmed, Learned, Planted, Streams, Together
from tests.e2e.stack import (
    HURRIED,
    ROOT,
    STORES,
    Stack,
    compose,
    docker,
    ended,
    environment,
    etl,
    records,
    run_in,
    running_job,
    seconds_since_end,
)
from tests.e2e.started import run_in_every_way
from tests.e2e.streams import CORES, RunningStreams, running_streams
from tests.e2e.webhook import alerts, receiver
from tests.polling import poll_until

FOLDER: Final = Path(__file__).parent
PROJECT: Final = "spark-app-e2e"
MONTH_SECONDS: Final = 30 * 86_400
STUCK: Final = "StreamQueryStuck"
ALERTS: Final = {"PipelineRunFailing", STUCK}
ALERT_SECONDS: Final = 420
AWAY_SECONDS: Final = 30
ARCHIVED: Final = """
for maps in $(grep -l '/class-data/.*[.]jsa' /proc/[0-9]*/maps 2>/dev/null); do
    tr '\\0' '\\n' <"${maps%maps}cmdline" | grep '^org.apache.spark'
done
"""
"""Prints the main class of each Java that maps the class-data archive."""
SCHEDULED = (
    "rm -rf /dev/shm/scheduled && cp -r /app/config /dev/shm/scheduled && "
    "sed -i 's/^schedule: null.*/schedule: {every: 86400, grace: 7200, max_age: 129600}/' /dev/shm/scheduled/etl/*.yml"
)


LONG: Final = {"planted", "learned", "hanging", "harmed", "streams", "together"}
"""The fixtures that plant incidents, train, stream, wait for alerts, or take parts of the stack away."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves what needs them to `make e2e-long`: CI starts the stack, and sees a day and programs in it."""
    for item in items:
        if isinstance(item, pytest.Function) and item.path.parent == FOLDER and LONG & set(item.fixturenames):
            item.add_marker(pytest.mark.before_release)


@pytest.fixture(scope="session")
def project() -> Iterator[str | None]:
    """The Compose project of the tests' own stack; None if a stack was running already, which they use then.

    It starts as on a machine that has built nothing. Its volumes are removed in the end: Alertmanager and Prometheus
    remember alerts for hours, and the data of a user's stack must not change.
    """
    if Stack().is_up():
        yield None
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPOSE_PROJECT_NAME", PROJECT)
        Stack().forget()
        yield PROJECT
        compose("down", "--volumes")


@pytest.fixture(scope="session")
def stack(figures: list[str], project: str | None) -> Stack:
    """The full stack, up and healthy."""
    stack = Stack()
    stack.up()
    figures.append(
        f"healthy after {stack.seconds:.0f} s; left out, because their images are missing here: {stack.left_out}"
    )
    if project is None:
        figures.append("the stack was running: alerts of the last hours are not sent again (make docker-clean)")
    return stack


@pytest.fixture(scope="session")
def learned(stack: Stack) -> Learned:
    """A model in production, trained in a hurry on days that are made for it; the last of these days is scored with it.

    The query that answers requests waits for a model.
    """
    assert stack.seconds >= 0
    began = time.time()
    run_in("spark-master", "sh", "-c", HURRIED)
    document = json.loads(run_in("spark-master", "run_ml.sh", "--config", "/dev/shm/hurried", "--json").stdout)
    [trained], [card] = document["runs"], document["models"]
    [scored] = records(run_in("spark-master", "run_ml.sh", "score", "--date", card["as_of"], "--json").stdout)
    return Learned(trained, card, scored, began)


@pytest.fixture(scope="session")
def hanging(learned: Learned) -> Iterator[RunningStreams]:
    """The streaming queries, which hang after their first micro-batches, so that an alert is due.

    They hold two of the four cores: there is room for one job beside them.
    """
    assert learned.scored
    with running_streams() as streams:
        streams.hang()
        yield streams


@pytest.fixture(scope="session")
def day(stack: Stack) -> Day:
    """One day, run once on the cluster, after its figures have arrived in Prometheus."""
    assert stack.seconds >= 0
    began = time.time()
    runs = etl("2024-01-01")
    seconds = seconds_since_end(runs)
    assert [run["outcome"] for run in runs] == ["succeeded", "succeeded"]
    return Day({run["pipeline"]: run for run in runs}, arrived(runs, began), seconds, began)


def arrived(runs: list[dict[str, Any]], since: float) -> dict[Figure, float]:
    """The growth of the figures since a Unix time, when they are those of the runs or after two minutes."""
    with suppress(AssertionError):  # the test of the figure reports what is missing
        poll_until(lambda: backends.grown(since) == backends.recorded(runs), "")
    return backends.grown(since)


@pytest.fixture(scope="session")
def streams(hanging: RunningStreams, harmed: Harmed) -> Streams:
    """The streaming queries, after they hung, lost a worker, went on and were stopped."""
    assert harmed.alerts
    hanging.go_on()
    return Streams({run["pipeline"]: run for run in hanging.stop()}, hanging.began)


@pytest.fixture(scope="session")
def together(day: Day, streams: Streams) -> Together:
    """Two jobs at once beside a notebook; the bridge dies in the midst of one and is back in the midst of the other."""
    assert day.runs
    assert streams.runs
    run_in("spark-master", "sh", "-c", SCHEDULED)
    with notebook() as count:
        with running_job("run_etl.sh", "2024-01-01") as first:
            archived = {
                name: run_in(name, "sh", "-c", ARCHIVED).stdout.split() for name in ("spark-master", "spark-worker-1")
            }
            docker("kill", "spark-bridge")
            with running_job("spark-app", "etl", "--date", "2024-01-02", "--config", "/dev/shm/scheduled") as second:
                docker("start", "spark-bridge")
                runs = ended(first) + ended(second)
        assert count() == "9"
    return Together(runs, archived)


@pytest.fixture(scope="session")
def started(day: Day) -> dict[str, str]:
    """The output of a program that knows nothing of spark-app, started in every way, by the name of the application."""
    assert day.runs
    poll_until(lambda: backends.cores_used() == 0, "the end of executors of earlier jobs")
    return run_in_every_way()


@pytest.fixture(scope="session")
def refused(stack: Stack) -> None:
    """Prometheus has refused a data point of a month ago, which the collector counts as lost."""
    point = {"timeUnixNano": str(int((time.time() - MONTH_SECONDS) * 1e9)), "asDouble": 1}
    metrics = [{"name": "late", "gauge": {"dataPoints": [point]}}]
    answer(
        f"{backends.ADDRESSES['otlp']}/v1/metrics",
        content={"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]},
    )


@pytest.fixture(scope="session")
def planted(day: Day, figures: list[str]) -> Planted:
    """Each incident of `spark-app incident`, planted in turn into the stack, on which nothing else runs."""
    assert day.runs
    poll_until(lambda: backends.cores_used() == 0, "the end of executors of earlier jobs")
    with receiver():
        command = [sys.executable, "-m", "spark_app", "incident", "--all", "--json"]
        done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
        found = json.loads(done.stdout).get("incidents")
        assert found, done.stderr[-3000:]
        figures += [f"{each['name']}: {each['seconds']}" for each in found]
        return Planted({each["name"]: each for each in found}, alerts())


@pytest.fixture(scope="session")
def harmed(day: Day, hanging: RunningStreams) -> Harmed:
    """A daily job that loses a worker and, for half a minute, the stores; one that has no input.

    Beside them, streaming queries hang until their worker is lost: the executor in the place of a lost one has Python
    workers that do not hang, and repeats the tasks that do.
    """
    assert day.began < hanging.began
    with receiver():
        poll_until(lambda: STUCK in alerts(), missing_alerts, seconds=ALERT_SECONDS)
        try:
            began = time.time()
            runs = without_stores_and_a_worker()
            grown = arrived(runs, began)
            missing = {"SPARK_APP_RAW__PATH": "/data/nothing"}
            failed = run_in("spark-master", "run_etl.sh", "2024-01-01", check=False, **missing)
            assert failed.returncode == 3, failed.stderr
            poll_until(lambda: set(alerts()) >= ALERTS, missing_alerts, seconds=ALERT_SECONDS)
        finally:
            docker("start", "spark-worker-2")
        poll_until(backends.has_two_workers, "two workers", seconds=120)
        return Harmed(runs, grown, alerts())


def without_stores_and_a_worker() -> list[dict[str, Any]]:
    """The records of a job that lost a worker for good and the stores for half a minute.

    It has a core of each worker, as the queries beside it have: with both of one worker it would wait for the other.
    """
    poll_until(lambda: backends.cores_used() == CORES, "the end of executors of earlier jobs")
    with running_job("run_etl.sh", "2024-01-01", "daily_sales") as job:
        docker("kill", "spark-worker-2")
        compose("stop", *STORES)
        stopped = time.monotonic()
        poll_until(lambda: time.monotonic() - stopped > AWAY_SECONDS, f"{AWAY_SECONDS} s without stores")
        compose("start", *STORES)
        runs = ended(job)
    for name in STORES:
        poll_until(lambda: backends.is_up(name), f"{name} is up again", seconds=180)  # noqa: B023
    return runs


def missing_alerts() -> str:
    """The alerts that have not been received, and what Prometheus and Alertmanager know of them."""
    firing = {
        query: backends.PROMETHEUS.values(query) for query in ("ALERTS", "prometheus_notifications_dropped_total")
    }
    log = compose("logs", "--tail", "20", "alertmanager")
    return f"missing: {ALERTS - set(alerts())}; Prometheus: {firing}; Alertmanager: {log}"
