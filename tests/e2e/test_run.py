"""A run of the main job on the cluster is seen whole: trace, metrics and logs, each leading to the others."""

import socket
from typing import Any, Final

import pytest

from tests.e2e import asked
from tests.e2e.notebook import notebook
from tests.e2e.signals import COUNTED, SIGNALS, Seen, Signals
from tests.e2e.stack import docker, run_in
from tests.polling import poll_until

ARCHIVED: Final = """
for maps in $(grep -l '/class-data/.*[.]jsa' /proc/[0-9]*/maps 2>/dev/null); do
    tr '\\0' '\\n' <"${maps%maps}cmdline" | grep '^org.apache.spark'
done
"""
"""Prints the main class of each Java that has it."""
pipelines = pytest.mark.parametrize("signals", SIGNALS, ids=lambda signals: signals.pipeline)


@pipelines
def test_the_trace_is_whole(day: Seen, signals: Signals) -> None:
    """Run and steps are in Jaeger, with their attributes, and every parent is there."""
    run = day.runs[signals.pipeline]
    names = [f"run {signals.pipeline}", *(f"step {step}" for step in signals.steps)]
    poll_until(
        lambda: {span["operationName"] for span in asked.JAEGER.spans(run["trace_id"])} >= set(names),
        f"spans {names} of trace {run['trace_id']} in Jaeger",
    )
    spans = asked.JAEGER.spans(run["trace_id"])
    ids = {span["spanID"] for span in spans}
    assert [span["operationName"] for span in spans if not set(asked.parents(span)) <= ids] == []
    root = next(span for span in spans if span["operationName"] == names[0])
    told = asked.tags(root)
    assert told["pipeline.run.id"] == run["run_id"]
    assert told["pipeline.run.outcome"] == "succeeded"
    assert told["pipeline.rows.read"] == run["rows_read"]


@pipelines
@pytest.mark.parametrize("figure", COUNTED)
def test_the_counters_grew_by_the_figures_of_the_run(day: Seen, signals: Signals, figure: str) -> None:
    """What Prometheus adds up is what the run's own record says."""
    assert day.grown[figure, signals.pipeline] == day.runs[signals.pipeline][figure]


@pipelines
def test_driver_and_executors_write_logs_with_the_trace_id(day: Seen, signals: Signals) -> None:
    """A trace leads to its log lines, whoever wrote them."""
    trace_id = day.runs[signals.pipeline]["trace_id"]
    poll_until(
        lambda: asked.log_services(trace_id) >= set(signals.log_services),
        f"log lines of {signals.log_services} with trace id {trace_id} in Elasticsearch",
    )


def test_an_exemplar_leads_to_its_trace(day: Seen) -> None:
    """The exemplars of the span metrics have trace ids that Jaeger knows; those of this day's runs among them."""
    ours = {run["trace_id"] for run in day.runs.values()}
    query = 'traces_span_metrics_duration_seconds_bucket{service_name="spark-app"}'
    poll_until(lambda: bool(ours & asked.exemplars(query)), f"an exemplar of {ours}")
    assert all(asked.JAEGER.spans(trace_id) for trace_id in ours & asked.exemplars(query))


@pytest.mark.usefixtures("day")
def test_the_monitor_tab_has_points() -> None:
    """Jaeger finds the span metrics of the job in Prometheus."""
    poll_until(lambda: asked.monitored("spark-app") > 0, "points in Jaeger's Monitor")


@pytest.mark.usefixtures("day")
def test_every_target_is_up() -> None:
    """Nothing that Prometheus scrapes is down between jobs, Spark's own endpoints included."""

    def down() -> list[str]:
        return [f"{target.url}: {target.error}" for target in asked.PROMETHEUS.targets() if target.health != "up"]

    poll_until(lambda: down() == [], f"all targets up, but {down()}")
    assert asked.number("sum(metrics_master_aliveWorkers_Number)") == 2


@pytest.mark.usefixtures("stack")
def test_ports_are_open_on_the_loopback_only() -> None:
    """On every other address of this machine each of them refuses."""
    addresses = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    addresses |= {docker("network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Gateway}}")}
    published = {
        int(port.rsplit(":", 1)[1])
        for name in docker("ps", "--format", "{{.Names}}").splitlines()
        for port in docker("port", name).splitlines()
    }
    assert {4318, 8080, 9090} <= published
    for address in addresses - {"127.0.0.1", "127.0.1.1"}:
        for port in published:
            with socket.socket() as client:
                client.settimeout(2)
                assert client.connect_ex((str(address), port)) != 0, f"{address}:{port} is open"


@pytest.mark.usefixtures("stack")
def test_daemons_and_executors_start_from_the_archive_of_classes() -> None:
    """Java has the archive of the image in its memory; one that does not fit it would have been let go."""
    with notebook():
        held = {name: run_in(name, "sh", "-c", ARCHIVED).stdout.split() for name in ("spark-master", "spark-worker-1")}
    assert "org.apache.spark.deploy.master.Master" in held["spark-master"]
    assert "org.apache.spark.deploy.worker.Worker" in held["spark-worker-1"]
    assert "org.apache.spark.executor.CoarseGrainedExecutorBackend" in held["spark-worker-1"]


@pytest.mark.usefixtures("day")
def test_the_notebook_runs_on_the_cluster() -> None:
    """Every cell of it, in the kernel that needs no set-up."""
    run_in("jupyter", "jupyter", "execute", "--kernel_name=spark", "/notebooks/look-at-a-run.ipynb")


def test_a_job_starts_beside_a_notebook_and_another_job(together: list[dict[str, Any]], day: Seen) -> None:
    """Neither waits until the others are gone, and each comes to its figures."""
    assert [run["outcome"] for run in together] == ["succeeded"] * 4
    assert together[1]["rows_read"] == day.runs["etl.daily_sales"]["rows_read"]


@pytest.mark.usefixtures("together")
def test_all_runs_are_one_series_that_counts_each() -> None:
    """Whether one after the other or at once, no run makes a series of its own; each is in `increase()`."""
    series = 'pipeline_runs_total{pipeline_name="etl.daily_sales", pipeline_run_outcome="succeeded"}'
    poll_until(
        lambda: round(asked.number(f"increase({series}[15m])") or 0) >= 3, f"three runs more of {series}", seconds=120
    )


@pytest.mark.usefixtures("stack")
@pytest.mark.parametrize("script", ["run_streaming.sh", "run_ml.sh"])
def test_what_is_not_there_yet_says_so(script: str) -> None:
    """In one line, with exit code 2."""
    done = run_in("spark-master", script, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith("are not there yet\n")
