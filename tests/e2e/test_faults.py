"""Parts of the stack are killed and stopped while the main job runs: it goes on, and what need not is not lost."""

import json
import time
from typing import Final

from app.backends import spark_health
from app.errors import MachineError
from tests.e2e import asked
from tests.e2e.signals import COUNTED, Seen
from tests.e2e.stack import at_work, compose, docker, ended, etl, run_in, running_in
from tests.polling import poll_until

MASTER: Final = "http://localhost:8080"
PORT: Final = 9999
AWAY_SECONDS: Final = 30
RECEIVER: Final = f"""
import http.server, sys, threading

class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open("/tmp/alerts.jsonl", "ab") as file:
            file.write(body.strip() + b"\\n")
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass

open("/tmp/alerts.jsonl", "wb").close()
server = http.server.HTTPServer(("", {PORT}), Hook)
print("listening", flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
"""
ALERT_SECONDS: Final = 240


def stays_away(name: str) -> None:
    """Stops a service and starts it again after a while."""
    compose("stop", name)
    began = time.monotonic()
    poll_until(lambda: time.monotonic() - began > AWAY_SECONDS, f"{AWAY_SECONDS} s without {name}")
    compose("start", name)
    poll_until(lambda: asked.is_up(name), f"{name} is up again", seconds=180)


def test_a_killed_worker_costs_no_run(day: Seen) -> None:
    """The job goes on with the other worker, to the same figures; the loss is on the dashboard."""
    try:
        with at_work("run_etl.sh", "2024-01-01") as job:
            docker("kill", "spark-worker-2")
            runs = ended(job)
        for run in runs:
            assert run["rows_read"] == day.runs[run["pipeline"]]["rows_read"]
        lost = 'up{job="spark-worker", instance="spark-worker-2:8082"}'
        poll_until(lambda: asked.number(lost) == 0, f"{lost} == 0")
        poll_until(
            lambda: asked.number('sum(metrics_master_aliveWorkers_Number{job="spark-master"})') == 1,
            "the master counts one worker",
            seconds=180,
        )
    finally:
        docker("start", "spark-worker-2")
    poll_until(two_workers, "two workers", seconds=120)


def test_what_stores_miss_for_a_while_reaches_them(day: Seen) -> None:
    """Prometheus, Elasticsearch and Jaeger stop in turn while days are run: all numbers and lines are there."""
    sums = {metric: f'sum({metric}{{pipeline_name="etl.daily_sales"}})' for metric in COUNTED.values()}
    before = {metric: asked.number(query) for metric, query in sums.items()}
    assert None not in before.values()
    assert day.runs
    with at_work("spark-app", "etl", "--from", "2024-02-01", "--to", "2024-02-02") as job:
        for name in ("prometheus", "elasticsearch", "jaeger"):
            stays_away(name)
        runs = ended(job)
    assert [run["outcome"] for run in runs] == ["succeeded"] * 4
    for figure, metric in COUNTED.items():
        wanted = (before[metric] or 0) + sum(run[figure] for run in runs if run["pipeline"] == "etl.daily_sales")
        poll_until(lambda: asked.number(sums[metric]) == wanted, f"{sums[metric]} == {wanted}", seconds=180)  # noqa: B023
    for run in runs:
        lines = (run["folder"] + "/logs.jsonl",)
        kept = run_in("spark-master", "cat", *lines).stdout.count('"traceId"')
        poll_until(lambda: driver_lines(run["trace_id"]) == kept, f"{kept} lines of {run['run_id']}", seconds=180)  # noqa: B023


def driver_lines(trace_id: str) -> int:
    """How many lines of a trace the driver has written."""
    lines = asked.ELASTICSEARCH.logs(trace_id)
    return sum(line["resource"]["attributes"]["service.name"] == "spark-app" for line in lines)


def test_without_a_collector_a_run_is_as_right_and_ends_as_soon(day: Seen) -> None:
    """Nothing is lost from the tables, its telemetry is in its folder, and it ends at most 3 s later."""

    def after_the_last_run(date: str) -> float:
        runs = etl(date)
        end = time.time()
        for run in runs:
            assert run["rows_read"] == day.runs[run["pipeline"]]["rows_read"]
            spans = run_in("spark-master", "cat", f"{run['folder']}/traces.jsonl").stdout
            assert run["trace_id"] in spans
        last = run_in("spark-master", "stat", "--format=%.Y", f"{runs[-1]['folder']}/run.json").stdout
        return end - float(last)

    with_collector = after_the_last_run("2024-01-01")
    compose("stop", "otel-collector")
    try:
        without = after_the_last_run("2024-01-01")
    finally:
        compose("start", "otel-collector")
    assert without - with_collector < 3.0


def test_alerts_fire_and_reach_the_webhook() -> None:
    """A run without its input and a worker that is down: both are told, with the runbook and where to look."""
    with running_in("jupyter", "python", "-c", RECEIVER) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "listening\n"
        docker("stop", "spark-worker-2")
        try:
            failing = run_in(
                "spark-master", "run_etl.sh", "2024-01-01", check=False, SPARK_APP_RAW__PATH="/data/nothing"
            )
            assert failing.returncode == 3, failing.stderr
            wanted = {"PipelineRunFailing", "SparkWorkerDown"}
            poll_until(lambda: set(alerts()) >= wanted, f"{wanted} at the webhook", seconds=ALERT_SECONDS)
        finally:
            docker("start", "spark-worker-2")
        told = alerts()
    assert all("#" in annotations["runbook_url"] for annotations in told.values())
    assert "operation=run%20etl.customers" in told["PipelineRunFailing"]["trace_url"]
    poll_until(two_workers, "two workers", seconds=120)


def alerts() -> dict[str, dict[str, str]]:
    """The annotations of each alert that reached the webhook."""
    lines = docker("exec", "jupyter", "cat", "/tmp/alerts.jsonl").splitlines()
    return {
        alert["labels"]["alertname"]: alert["annotations"]
        for line in lines
        for alert in json.loads(line)["alerts"]
        if alert["status"] == "firing"
    }


def two_workers() -> bool:
    """Whether both workers are there."""
    try:
        return spark_health(MASTER).startswith("2 ")
    except MachineError:
        return False
