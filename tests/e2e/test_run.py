"""A run of the daily job on the cluster leaves a whole trace, metrics and logs that link to each other."""

import json
import secrets
import socket
import subprocess
import time
import urllib.request

import pytest

from tests.e2e import backends
from tests.e2e.signals import COUNTED, SIGNALS, Day, Signals, Together
from tests.e2e.stack import docker, run_in
from tests.polling import poll_until

pipelines = pytest.mark.parametrize("signals", SIGNALS, ids=lambda signals: signals.pipeline)


@pipelines
def test_trace_is_whole(day: Day, signals: Signals) -> None:
    """Run and steps are in Jaeger with their attributes, and no parent is missing."""
    run = day.runs[signals.pipeline]
    names = [f"run {signals.pipeline}", *(f"step {step}" for step in signals.steps)]
    poll_until(
        lambda: {span["operationName"] for span in backends.JAEGER.spans(run["trace_id"])} >= set(names),
        f"spans {names} of trace {run['trace_id']} in Jaeger",
    )
    spans = backends.JAEGER.spans(run["trace_id"])
    ids = {span["spanID"] for span in spans}
    assert [span["operationName"] for span in spans if not set(backends.parents(span)) <= ids] == []
    root = next(span for span in spans if span["operationName"] == names[0])
    tags = backends.tags(root)
    assert tags["pipeline.run.id"] == run["run_id"]
    assert tags["pipeline.run.outcome"] == "succeeded"
    assert tags["pipeline.rows.read"] == run["counts"]["read"]


@pipelines
@pytest.mark.parametrize("figure", COUNTED)
def test_counters_grow_by_the_figures_of_the_run(day: Day, signals: Signals, figure: str) -> None:
    """The sums in Prometheus are those of the run record."""
    assert day.grown[figure, signals.pipeline] == day.runs[signals.pipeline]["counts"][figure]


@pipelines
def test_driver_and_executors_write_logs_with_the_trace_id(day: Day, signals: Signals) -> None:
    """The trace id finds the log lines of every process."""
    trace_id = day.runs[signals.pipeline]["trace_id"]
    poll_until(
        lambda: backends.log_services(trace_id) >= set(signals.log_services),
        f"log lines of {signals.log_services} with trace id {trace_id} in Elasticsearch",
    )


def test_an_exemplar_leads_to_its_trace(day: Day) -> None:
    """Exemplars of the span metrics have the trace ids of the runs, which Jaeger has."""
    traces = {run["trace_id"] for run in day.runs.values()}
    query = 'traces_span_metrics_duration_seconds_bucket{service_name="spark-app"}'
    poll_until(lambda: bool(traces & backends.exemplars(query)), f"an exemplar of {traces}")
    assert all(backends.JAEGER.spans(trace_id) for trace_id in traces & backends.exemplars(query))


@pytest.mark.usefixtures("day")
def test_the_monitor_tab_has_points() -> None:
    """Jaeger finds the span metrics of the job in Prometheus."""
    poll_until(lambda: backends.monitored("spark-app") > 0, "points in Jaeger's Monitor")


@pytest.mark.usefixtures("day")
def test_every_target_is_up() -> None:
    """Prometheus reaches all targets between jobs, Spark's endpoints included."""

    def down() -> list[str]:
        return [f"{target.url}: {target.error}" for target in backends.PROMETHEUS.targets() if target.health != "up"]

    poll_until(lambda: down() == [], f"all targets up, but {down()}")
    alive = "sum(metrics_master_aliveWorkers_Number)"  # the last scrape may be of the start of the master
    poll_until(lambda: backends.number(alive) == 2, lambda: f"two workers, but {backends.number(alive)}")


@pytest.mark.usefixtures("stack")
def test_ports_are_open_on_the_loopback_only() -> None:
    """On every other address of this machine, they refuse connections."""
    output = subprocess.run(["hostname", "--all-ip-addresses"], capture_output=True, text=True, check=True).stdout
    addresses = {address for address in output.split() if ":" not in address}
    assert addresses, "this machine has no address to try"
    published = {
        int(port.rsplit(":", 1)[1])
        for name in docker("ps", "--format", "{{.Names}}").splitlines()
        for port in docker("port", name).splitlines()
    }
    assert {4318, 8080, 9090} <= published
    for address in addresses:
        for port in published:
            with socket.socket() as client:
                client.settimeout(2)
                assert client.connect_ex((address, port)) != 0, f"{address}:{port} is open"


@pytest.mark.usefixtures("stack")
def test_master_takes_no_application_over_http() -> None:
    """Its REST server would start drivers for anybody without a password."""
    done = run_in("spark-worker-1", "curl", "-sS", "http://spark-master:6066/", check=False)
    assert "Failed to connect" in done.stderr or "Could not connect" in done.stderr, done


def test_daemons_drivers_and_executors_map_the_class_data_archive(together: Together) -> None:
    """Java maps the archive of the image into its memory; it would have rejected one that does not fit."""
    assert {"org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.SparkSubmit"} <= set(
        together.archived["spark-master"]
    )
    assert "org.apache.spark.deploy.worker.Worker" in together.archived["spark-worker-1"]
    assert "org.apache.spark.executor.CoarseGrainedExecutorBackend" in together.archived["spark-worker-1"]


@pytest.mark.usefixtures("day")
def test_the_notebook_runs_on_the_cluster() -> None:
    """Every cell runs in the kernel, without any setup."""
    run_in("jupyter", "jupyter", "execute", "--kernel_name=spark", "/notebooks/look-at-a-run.ipynb")


def test_job_runs_beside_a_notebook_and_another_job(together: Together, day: Day) -> None:
    """No job waits until the others end, and each has its figures."""
    assert [run["outcome"] for run in together.runs] == ["succeeded"] * 4
    assert together.runs[1]["counts"]["read"] == day.runs["etl.daily_sales"]["counts"]["read"]


@pytest.mark.usefixtures("together")
def test_all_runs_are_one_series_that_counts_each(day: Day) -> None:
    """Sequential and concurrent runs share one series: `increase()` counts the two that follow the first."""
    series = 'pipeline_runs_total{pipeline_name="etl.daily_sales", pipeline_run_outcome="succeeded"}'

    def increase() -> float:
        return backends.number(f"increase({series}[{time.time() - day.began:.0f}s])") or 0

    poll_until(lambda: round(increase()) >= 2, lambda: f"two more runs of {series}, not {increase()}")


@pytest.mark.usefixtures("stack")
def test_log_line_with_a_value_of_another_type_is_indexed() -> None:
    """An attribute that was a number is a text in another line: Elasticsearch leaves the value out, not the line."""
    mark = secrets.token_hex(8)
    for value in ({"intValue": "1"}, {"stringValue": "one"}):
        record = {
            "timeUnixNano": str(time.time_ns()),
            "body": {"stringValue": f"typed {mark}"},
            "attributes": [{"key": f"typed.{mark}", "value": value}],
        }
        body = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).encode()
        request = urllib.request.Request(
            f"{backends.ADDRESSES['otlp']}/v1/logs", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status == 200
    poll_until(lambda: backends.count_log_lines(f"body.text:{mark}") == 2, f"two lines with {mark}")
