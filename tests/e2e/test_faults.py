"""Parts of the stack are killed and stopped during the daily job: it goes on, and nothing is lost that need not be."""

import json
import time
from typing import Any, Final

from tests.e2e import backends
from tests.e2e.signals import Day, Harmed
from tests.e2e.stack import compose, etl, run_in, seconds_since_end
from tests.polling import poll_until

LATER_SECONDS: Final = 3.0
"""How much later a run without a collector may end: the README says so."""


def test_killed_worker_fails_no_run(harmed: Harmed, day: Day) -> None:
    """The job continues on the other worker with the same figures; the loss is on the dashboard."""
    assert_same(harmed.runs, day)
    assert min(backends.ranged('up{job="spark-worker", instance="spark-worker-2:8082"}', seconds=1800)) == 0
    assert 1 in backends.ranged('sum(metrics_master_aliveWorkers_Number{job="spark-master"})', seconds=1800)


def test_a_run_without_input_raises_an_alert(harmed: Harmed) -> None:
    """With a link to the traces of the pipeline."""
    assert "operation=run%20etl.customers" in harmed.alerts["PipelineRunFailing"]["trace_url"]


def test_stores_that_were_down_get_everything_later(harmed: Harmed) -> None:
    """All three stores are stopped in the midst of a job: all counts and all log lines of the driver arrive."""
    assert harmed.grown == backends.recorded(harmed.runs)
    for run in harmed.runs:
        kept = run_in("spark-master", "cat", f"{run['folder']}/logs.jsonl").stdout.count('"traceId"')
        assert kept
        poll_until(lambda: driver_lines(run) == kept, f"{kept} lines of {run['run_id']}", seconds=180)  # noqa: B023


def test_run_without_a_collector_is_correct_ends_in_time_and_is_sent_later(day: Day) -> None:
    """Nothing is missing from the tables, it ends at most 3 s later, and the bridge sends what is left, once."""
    compose("stop", "otel-collector")
    began = time.time()
    try:
        runs = etl("2024-01-01", "customers")
        seconds = seconds_since_end(runs)
    finally:
        compose("start", "otel-collector")
    assert_same(runs, day)
    for run in runs:
        assert run["trace_id"] in run_in("spark-master", "cat", f"{run['folder']}/traces.jsonl").stdout
    assert seconds - day.seconds_to_end < LATER_SECONDS
    poll_until(lambda: backends.grown(began) == backends.recorded(runs), lambda: backends.grown(began), seconds=180)
    for run in runs:
        poll_until(lambda: bool(run_spans(run)), f"the span of {run['run_id']} in Jaeger")  # noqa: B023
        assert len(run_spans(run)) == 1
        poll_until(lambda: is_delivered(run), f"no delivery.jsonl in {run['folder']}")  # noqa: B023


def run_spans(run: dict[str, Any]) -> list[str]:
    """The spans of a run itself, and not of its steps, in Jaeger."""
    spans = backends.JAEGER.spans(run["trace_id"])
    return [span["spanID"] for span in spans if span["operationName"] == f"run {run['pipeline']}"]


def is_delivered(run: dict[str, Any]) -> bool:
    """Whether nothing of the telemetry of a run is left to be sent."""
    return "delivery.jsonl" not in run_in("spark-master", "ls", run["folder"]).stdout


def assert_same(runs: list[dict[str, Any]], day: Day) -> None:
    """Runs have the figures of the undisturbed ones."""
    for run in runs:
        assert run["outcome"] == "succeeded"
        assert run["counts"] == day.runs[run["pipeline"]]["counts"]


def driver_lines(run: dict[str, Any]) -> int:
    """The number of stored log lines that the driver of a run wrote; one that arrived twice counts once."""
    lines = backends.ELASTICSEARCH.logs(run["trace_id"])
    from_driver = [line for line in lines if line["attributes"].get("pipeline.run.id") == run["run_id"]]
    return len({(line["@timestamp"], json.dumps(line["body"])) for line in from_driver})
