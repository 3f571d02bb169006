"""Every application of the cluster is seen through its event log, down to its tasks, without a line of set-up."""

import json
import re
from collections import Counter
from typing import Any, Final

from app.telemetry import spark_names
from tests.e2e import asked
from tests.e2e.signals import Harmed, Seen
from tests.e2e.stack import at_work, docker, ended, run_in
from tests.polling import poll_until

KINDS: Final = {"run", "step", "sql", "job", "stage", "task"}
TOLD: Final = """
import json, sys
from collections import Counter
from pathlib import Path
from app.eventlog import reading
app = reading.read(Path(sys.argv[1])).app
root = lambda query: root(app.queries[query.root]) if query.root in app.queries else query
ours = lambda traceparent: sys.argv[2] in (traceparent or "")
jobs = {job.id: ours(job.properties.traceparent) for job in app.jobs.values()}
stages = [jobs[stage.job] for stage in app.stages.values()]
queries = [ours(root(query).traceparent) for query in app.queries.values()]
print(json.dumps({"sql": sum(queries), "job": sum(jobs.values()), "stage": sum(stages)}))
"""


def kinds(trace_id: str) -> Counter[str]:
    """How many spans of each kind Jaeger has of a trace."""
    return Counter(span["operationName"].split()[0] for span in asked.JAEGER.spans(trace_id))


def orphans(trace_id: str) -> list[str]:
    """Spans of a trace whose parent is not in it."""
    spans = asked.JAEGER.spans(trace_id)
    ids = {span["spanID"] for span in spans}
    return [span["operationName"] for span in spans if not set(asked.parents(span)) <= ids]


def written(run: dict[str, Any]) -> dict[str, int]:
    """How many queries (with those inside of them), jobs and stage attempts of a run are in its event log."""
    log = run["event_log"].removeprefix("file://")
    said = run_in("spark-master", "python", "-c", TOLD, log, run["trace_id"]).stdout
    return dict(json.loads(said))


def is_whole(run: dict[str, Any]) -> bool:
    """Whether Jaeger has all that the event log of a run tells, under the steps of the run."""
    found, wanted = kinds(run["trace_id"]), written(run)
    return {kind: found[kind] for kind in wanted} == wanted and orphans(run["trace_id"]) == []


def test_a_run_is_seen_down_to_its_tasks(day: Seen) -> None:
    """Run > step > SQL > job > stage attempt > task, each under its parent, as many as there were."""
    for run in day.runs.values():
        poll_until(lambda: is_whole(run), f"{written(run)} of {run['trace_id']}, not {kinds(run['trace_id'])}")  # noqa: B023
        assert set(kinds(run["trace_id"])) >= KINDS


def test_a_bridge_that_is_killed_goes_on_where_it_was(day: Seen) -> None:
    """Killed in the midst of a run and started again: the trace is whole, and nothing is there twice."""
    with at_work("run_etl.sh", "2024-01-01") as job:
        docker("kill", "spark-bridge")
        runs = ended(job)
    docker("start", "spark-bridge")
    for run in runs:
        poll_until(lambda: is_whole(run), f"{written(run)} of {run['trace_id']}", seconds=120)  # noqa: B023
        spans = [span["spanID"] for span in asked.JAEGER.spans(run["trace_id"])]
        assert len(spans) == len(set(spans))


def test_an_exemplar_of_tasks_leads_to_its_stage(day: Seen) -> None:
    """The exemplars of task times have trace ids that Jaeger knows; those of this day's runs among them."""
    ours = {run["trace_id"] for run in day.runs.values()}
    poll_until(lambda: bool(ours & asked.exemplars("spark_task_duration_seconds_bucket")), f"an exemplar of {ours}")
    found = ours & asked.exemplars("spark_task_duration_seconds_bucket")
    assert all(kinds(trace_id)["stage"] for trace_id in found)


def test_a_notebook_is_seen(together: list[dict[str, Any]]) -> None:
    """Somebody's session in Jupyter is in Jaeger and among the series, under the name that it gave itself."""
    assert together
    poll_until(lambda: asked.traces("notebook") > 0, "traces of the notebook in Jaeger")
    poll_until(
        lambda: (asked.number('sum(spark_task_duration_seconds_count{spark_app_name="notebook"})') or 0) > 0,
        "task times of the notebook in Prometheus",
    )


def test_a_skewed_job_is_told_of(harmed: Harmed) -> None:
    """A stranger's job with a hot key: its diagnosis is an alert that reaches the webhook, and an event of a stage."""
    assert "skewed" in harmed.alerts["SparkPartitionSkew"]["summary"]
    found = (spark_names.FINDING_EVENT, "partition_skew")
    poll_until(lambda: found in asked.findings("skewed", "stage"), "the finding on a stage of the job in Jaeger")


def test_reports_are_served(day: Seen) -> None:
    """Each run says where its report is; the newest is the first of the list."""
    for run in day.runs.values():
        assert run["report"].startswith("http://localhost:8088/")
        assert run["pipeline"] in asked.page(run["report"])
    listed = asked.page("http://localhost:8088/")
    files = {run["started_at"]: run["report"].rsplit("/", 1)[1] for run in day.runs.values()}
    assert all(file in listed for file in files.values())
    newest_first = [files[started] for started in sorted(files, reverse=True)]
    assert sorted(newest_first, key=listed.index) == newest_first
    times = re.findall(r"<small>(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)</small>", listed)
    assert len(times) >= len(files)
    assert times == sorted(times, reverse=True)
