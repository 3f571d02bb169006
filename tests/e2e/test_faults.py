"""Parts of the stack are killed and stopped while the main job runs: it goes on, and what need not is not lost."""

import json
import time
from typing import Any, Final

from tests.e2e import asked
from tests.e2e.signals import COUNTED, Harmed, Seen
from tests.e2e.stack import at_work, compose, ended, etl, run_in, to_end
from tests.polling import poll_until

STORES: Final = ("prometheus", "elasticsearch", "jaeger")
AWAY_SECONDS: Final = 30
LATER_SECONDS: Final = 3.0
"""What a run without a collector may take longer to end: the promise of the README."""


def test_a_killed_worker_costs_no_run(harmed: Harmed, day: Seen) -> None:
    """The job goes on with the other worker, to the same figures; the loss is on the dashboard."""
    assert_same(harmed.runs, day)
    assert min(asked.ranged('up{job="spark-worker", instance="spark-worker-2:8082"}', seconds=1800)) == 0
    assert 1 in asked.ranged('sum(metrics_master_aliveWorkers_Number{job="spark-master"})', seconds=1800)


def test_alerts_reach_the_webhook(harmed: Harmed) -> None:
    """A worker that is down and a run without its input are told, with the runbook and where to look."""
    assert all("#" in annotations["runbook_url"] for annotations in harmed.alerts.values())
    assert "operation=run%20etl.customers" in harmed.alerts["PipelineRunFailing"]["trace_url"]
    assert "spark-worker-2" in harmed.alerts["SparkWorkerDown"]["summary"]


def test_what_stores_miss_for_a_while_reaches_them(day: Seen) -> None:
    """All three stores are away in mid-run: afterwards all numbers and all lines of the driver are there."""
    start = time.time()
    with at_work("run_etl.sh", "2024-01-01") as job:
        compose("stop", *STORES)
        began = time.monotonic()
        poll_until(lambda: time.monotonic() - began > AWAY_SECONDS, f"{AWAY_SECONDS} s without them")
        compose("start", *STORES)
        runs = ended(job)
    assert_same(runs, day)
    for name in STORES:
        poll_until(lambda: asked.is_up(name), f"{name} is up again", seconds=180)  # noqa: B023
    wanted = asked.recorded(runs)
    poll_until(lambda: asked.grown(start) == wanted, f"{wanted} in Prometheus", seconds=180)
    for run in runs:
        kept = run_in("spark-master", "cat", f"{run['folder']}/logs.jsonl").stdout.count('"traceId"')
        assert kept
        poll_until(lambda: driver_lines(run) == kept, f"{kept} lines of {run['run_id']}", seconds=180)  # noqa: B023


def test_without_a_collector_a_run_is_as_right_and_ends_as_soon(day: Seen) -> None:
    """Nothing is lost from the tables, its telemetry is in its folder, and it ends at most 3 s later."""
    compose("stop", "otel-collector")
    try:
        runs = etl("2024-01-01")
        seconds = to_end(runs)
    finally:
        compose("start", "otel-collector")
    assert_same(runs, day)
    for run in runs:
        assert run["trace_id"] in run_in("spark-master", "cat", f"{run['folder']}/traces.jsonl").stdout
    assert seconds - day.seconds_to_end < LATER_SECONDS


def assert_same(runs: list[dict[str, Any]], day: Seen) -> None:
    """Runs came to the figures of the undisturbed ones."""
    for run in runs:
        assert run["outcome"] == "succeeded"
        assert {name: run[name] for name in COUNTED} == {name: day.runs[run["pipeline"]][name] for name in COUNTED}


def driver_lines(run: dict[str, Any]) -> int:
    """How many lines of a run are known that its driver has written; one that came twice counts once."""
    lines = asked.ELASTICSEARCH.logs(run["trace_id"])
    ours = [line for line in lines if line["attributes"].get("pipeline.run.id") == run["run_id"]]
    return len({(line["@timestamp"], json.dumps(line["body"])) for line in ours})
