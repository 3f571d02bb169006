import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from app.backends import answer
from tests.e2e import asked
from tests.e2e.notebook import notebook
from tests.e2e.signals import Harmed, Seen
from tests.e2e.stack import Stack, at_work, compose, docker, ended, etl, run_in, to_end
from tests.e2e.webhook import alerts, receiver
from tests.polling import poll_until

SKEWED: Final = Path(__file__).with_name("skewed.py")
PROJECT: Final = "spark-app-e2e"
OTLP: Final = "http://localhost:4318"
MONTH_SECONDS: Final = 30 * 86_400
ALERTS: Final = {"PipelineRunFailing", "SparkWorkerDown", "SparkPartitionSkew"}
ALERT_SECONDS: Final = 240
SCHEDULED = (
    "rm -rf /dev/shm/scheduled && cp -r /app/config /dev/shm/scheduled && "
    "sed -i 's/^schedule: null.*/schedule: {every: 86400, grace: 7200, max_age: 129600}/' /dev/shm/scheduled/etl/*.yml"
)


@pytest.fixture(scope="session")
def project() -> Iterator[str | None]:
    """The Compose project of the tests' own stack, with its own volumes; None if somebody had started one before them.

    The volumes are empty at first and gone in the end: Alertmanager and Prometheus would remember what fired hours ago,
    and nobody's data is touched.
    """
    if Stack().is_up():
        yield None
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPOSE_PROJECT_NAME", PROJECT)
        compose("down", "--volumes")
        yield PROJECT
        compose("down", "--volumes")


@pytest.fixture(scope="session")
def stack(request: pytest.FixtureRequest, project: str | None) -> Stack:
    """The full stack, up and healthy."""
    stack = Stack()
    stack.up()
    out = request.config.get_terminal_writer()
    out.line(f"healthy after {stack.seconds:.0f} s; left out, as their images cannot be had here: {stack.left_out}")
    if project is None:
        out.line("the stack was up: what it told of in the last hours, it does not tell again (make docker-clean)")
    return stack


@pytest.fixture(scope="session")
def day(stack: Stack) -> Seen:
    """One day, run once on the cluster, and what the series have grown by when its figures have arrived."""
    began = time.time()
    runs = etl("2024-01-01")
    seconds = to_end(runs)
    assert [run["outcome"] for run in runs] == ["succeeded", "succeeded"]
    with suppress(AssertionError):  # what does not arrive is told by the test of the figure
        poll_until(lambda: asked.grown(began) == asked.recorded(runs), "")
    return Seen({run["pipeline"]: run for run in runs}, asked.grown(began), seconds)


@pytest.fixture(scope="session")
def together(day: Seen) -> list[dict[str, Any]]:
    """The records of two jobs at once, one with a schedule, while a notebook holds a session."""
    assert day.runs
    run_in("spark-master", "sh", "-c", SCHEDULED)
    with notebook() as held:
        with at_work("spark-app", "etl", "--date", "2024-01-02", "--config", "/dev/shm/scheduled") as job:
            runs = etl("2024-01-01") + ended(job)
        assert held() == "9"
    return runs


@pytest.fixture(scope="session")
def refused(stack: Stack) -> None:
    """Prometheus has refused a point of a month ago, for good: the collector counts it as lost."""
    point = {"timeUnixNano": str(int((time.time() - MONTH_SECONDS) * 1e9)), "asDouble": 1}
    metrics = [{"name": "late", "gauge": {"dataPoints": [point]}}]
    answer(f"{OTLP}/v1/metrics", content={"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]})


@pytest.fixture(scope="session")
def harmed(day: Seen) -> Harmed:
    """A job is skewed, a worker is killed in mid-run, another run has no input, until all are told as alerts."""
    assert day.runs
    with receiver():
        program = SKEWED.read_text(encoding="utf-8")
        run_in("spark-master", "python", "-c", program, SPARK_CONF_DIR="/opt/venv/spark-conf")
        try:
            with at_work("run_etl.sh", "2024-01-01") as job:
                docker("kill", "spark-worker-2")
                runs = ended(job)
            missing = {"SPARK_APP_RAW__PATH": "/data/nothing"}
            failed = run_in("spark-master", "run_etl.sh", "2024-01-01", check=False, **missing)
            assert failed.returncode == 3, failed.stderr
            poll_until(lambda: set(alerts()) >= ALERTS, untold, seconds=ALERT_SECONDS)
        finally:
            docker("start", "spark-worker-2")
        poll_until(asked.has_two_workers, "two workers", seconds=120)
        return Harmed(runs, alerts())


def untold() -> str:
    """Which alerts have not been received, and how far each alert came."""
    fired = {query: asked.PROMETHEUS.values(query) for query in ("ALERTS", "prometheus_notifications_dropped_total")}
    said = compose("logs", "--tail", "20", "alertmanager")
    return f"untold: {ALERTS - set(alerts())}; Prometheus: {fired}; Alertmanager: {said}"
