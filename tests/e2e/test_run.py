"""A run of the main job on the cluster is seen whole: trace, metrics and logs, each leading to the others."""

import socket
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e import asks
from tests.e2e.signals import COUNTED, SIGNALS, Signals
from tests.e2e.stack import Stack, compose, docker, etl, run_in, running_in
from tests.polling import poll_until

ARRIVAL_SECONDS = 60


@dataclass(frozen=True)
class Seen:
    """A run of the main job: the records of its pipelines, and what the series had before it."""

    runs: dict[str, dict[str, Any]]
    before: dict[tuple[str, str], float]


@pytest.fixture(scope="module")
def day(stack: Stack) -> Seen:
    """One day, run once on the cluster."""
    before = {
        (metric, signals.pipeline): asks.number(f'sum({metric}{{pipeline_name="{signals.pipeline}"}})') or 0.0
        for metric in COUNTED.values()
        for signals in SIGNALS
    }
    runs = etl("2024-01-01")
    assert [run["outcome"] for run in runs] == ["succeeded", "succeeded"]
    return Seen({run["pipeline"]: run for run in runs}, before)


pipelines = pytest.mark.parametrize("signals", SIGNALS, ids=lambda signals: signals.pipeline)


@pipelines
def test_the_trace_is_whole(day: Seen, signals: Signals) -> None:
    """Run and steps are in Jaeger, with their attributes, and every parent is there."""
    run = day.runs[signals.pipeline]
    names = [f"run {signals.pipeline}", *(f"step {step}" for step in signals.steps)]
    poll_until(
        lambda: {span["operationName"] for span in asks.trace(run["trace_id"])} >= set(names),
        f"spans {names} of trace {run['trace_id']} in Jaeger",
        seconds=ARRIVAL_SECONDS,
    )
    spans = asks.trace(run["trace_id"])
    ids = {span["spanID"] for span in spans}
    assert [span["operationName"] for span in spans if not set(asks.parents(span)) <= ids] == []
    root = next(span for span in spans if span["operationName"] == names[0])
    told = asks.tags(root)
    assert told["pipeline.run.id"] == run["run_id"]
    assert told["pipeline.run.outcome"] == "succeeded"
    assert told["pipeline.rows.read"] == run["rows_read"]


@pipelines
@pytest.mark.parametrize("figure", COUNTED)
def test_the_counters_grew_by_the_figures_of_the_run(day: Seen, signals: Signals, figure: str) -> None:
    """What Prometheus adds up is what the run's own record says."""
    metric, run = COUNTED[figure], day.runs[signals.pipeline]
    query = f'sum({metric}{{pipeline_name="{signals.pipeline}"}})'
    wanted = day.before[metric, signals.pipeline] + run[figure]
    poll_until(lambda: asks.number(query) == wanted, f"{query} == {wanted}", seconds=ARRIVAL_SECONDS)


@pipelines
def test_driver_and_executors_write_logs_with_the_trace_id(day: Seen, signals: Signals) -> None:
    """A trace leads to its log lines, whoever wrote them."""
    trace_id = day.runs[signals.pipeline]["trace_id"]
    poll_until(
        lambda: set(asks.logs(trace_id)) >= set(signals.log_services),
        f"log lines of {signals.log_services} with trace id {trace_id} in Elasticsearch",
        seconds=ARRIVAL_SECONDS,
    )


def test_an_exemplar_leads_to_its_trace(day: Seen) -> None:
    """The exemplars of the span metrics have trace ids that Jaeger knows; those of this day's runs among them."""
    ours = {run["trace_id"] for run in day.runs.values()}
    query = 'traces_span_metrics_duration_seconds_bucket{service_name="spark-app"}'
    poll_until(lambda: bool(ours & asks.exemplars(query)), f"an exemplar of {ours}", seconds=ARRIVAL_SECONDS)
    assert all(asks.trace(trace_id) for trace_id in ours & asks.exemplars(query))


@pytest.mark.usefixtures("day")
def test_the_monitor_tab_has_points() -> None:
    """Jaeger finds the span metrics of the job in Prometheus."""

    def points() -> int:
        answer = asks.get(
            f"{asks.JAEGER}/api/metrics/calls",
            service="spark-app",
            spanKind="internal",
            lookback="3600000",
            ratePer="600000",
            step="60000",
        )
        return sum(len(one["metricPoints"]) for one in (answer or {"metrics": []})["metrics"])

    poll_until(lambda: points() > 0, "points in Jaeger's Monitor", seconds=ARRIVAL_SECONDS)


@pytest.mark.usefixtures("day")
def test_every_target_is_up() -> None:
    """Nothing that Prometheus scrapes is down between jobs, Spark's own endpoints included."""
    poll_until(
        lambda: set(asks.targets().values()) == {"up"}, f"all targets up: {asks.targets()}", seconds=ARRIVAL_SECONDS
    )
    assert asks.number("sum(metrics_master_aliveWorkers_Number)") == 2


@pytest.mark.usefixtures("stack")
def test_ports_are_open_on_the_loopback_only() -> None:
    """On every other address of this machine each of them refuses."""
    own = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    published = {
        int(port.rsplit(":", 1)[1])
        for name in docker("ps", "--format", "{{.Names}}").splitlines()
        for port in docker("port", name).splitlines()
    }
    assert {4318, 8080, 9090} <= published
    for address in own:
        for port in published:
            with socket.socket() as client:
                client.settimeout(2)
                assert client.connect_ex((str(address), port)) != 0, f"{address}:{port} is open"


def test_a_run_without_a_collector_is_as_right(day: Seen) -> None:
    """Nothing is lost from the tables, and the run ends well; only its telemetry stays in its folder."""
    compose("stop", "otel-collector")
    try:
        runs = {run["pipeline"]: run for run in etl("2024-01-01")}
    finally:
        compose("start", "otel-collector")
    for pipeline, run in day.runs.items():
        assert runs[pipeline]["rows_read"] == run["rows_read"]
        assert runs[pipeline]["outcome"] == "succeeded"


@pytest.mark.usefixtures("day")
def test_the_notebook_runs_on_the_cluster() -> None:
    """Every cell of it, in the kernel that needs no set-up."""
    run_in("jupyter", "jupyter", "execute", "--kernel_name=spark", "/notebooks/look-at-a-run.ipynb")


def test_a_job_starts_beside_a_notebook_that_holds_a_session(day: Seen) -> None:
    """The main job gets cores while a session of somebody else has its own."""
    held = (
        "from pyspark.sql import SparkSession; spark = SparkSession.builder.getOrCreate();"
        "print(spark.range(9).count(), flush=True); input()"
    )
    with running_in("jupyter", "python", "-c", held) as notebook:
        assert notebook.stdout is not None
        assert notebook.stdout.readline().strip() == "9"
        runs = {run["pipeline"]: run for run in etl("2024-01-01")}
        assert notebook.poll() is None
    assert runs["etl.daily_sales"]["rows_read"] == day.runs["etl.daily_sales"]["rows_read"]
