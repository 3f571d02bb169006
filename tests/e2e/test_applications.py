"""The bridge shows every application of the cluster down to its tasks, without any setup."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from spark_app.vocabulary import spark_names
from tests.e2e import backends
from tests.e2e.signals import Day, Together
from tests.e2e.stack import run_in
from tests.e2e.started import CALLS
from tests.polling import poll_until

TOO_LATE: Final = (
    "Executor self-exiting due to : Unable to create executor",
    "Executor self-exiting due to : Cannot register with driver",
)
"""What an executor says whose driver has ended while it started; of a driver that runs, both are errors, too."""
KINDS: Final = {"run", "step", "sql", "job", "stage", "task"}
COUNTS: Final = """
import json, sys
from collections import Counter
from pathlib import Path
from spark_app.eventlog import reader
app = reader.read(Path(sys.argv[1])).app
root = lambda query: root(app.queries[query.root]) if query.root in app.queries else query
ours = lambda traceparent: sys.argv[2] in (traceparent or "")
jobs = {job.id: ours(job.properties.traceparent) for job in app.jobs.values()}
stages = [jobs[stage.job] for stage in app.stages.values()]
queries = [ours(root(query).traceparent) for query in app.queries.values()]
print(json.dumps({"sql": sum(queries), "job": sum(jobs.values()), "stage": sum(stages)}))
"""


def kinds(trace_id: str) -> Counter[str]:
    """How many spans of each kind Jaeger has of a trace."""
    return Counter(span["operationName"].split()[0] for span in backends.JAEGER.spans(trace_id))


def orphans(trace_id: str) -> list[str]:
    """Spans of a trace whose parent is missing."""
    spans = backends.JAEGER.spans(trace_id)
    ids = {span["spanID"] for span in spans}
    return [span["operationName"] for span in spans if not set(backends.parents(span)) <= ids]


def written(run: dict[str, Any]) -> dict[str, int]:
    """The number of queries (nested ones included), jobs and stage attempts of a run in its event log."""
    log = run["event_log"].removeprefix("file://")
    output = run_in("spark-master", "python", "-c", COUNTS, log, run["trace_id"]).stdout
    return dict(json.loads(output))


def is_whole(run: dict[str, Any]) -> bool:
    """Whether Jaeger has everything in the event log of a run, under the steps of the run."""
    found, wanted = kinds(run["trace_id"]), written(run)
    return {kind: found[kind] for kind in wanted} == wanted and orphans(run["trace_id"]) == []


def test_trace_of_a_run_reaches_down_to_its_tasks(day: Day) -> None:
    """Run > step > SQL > job > stage attempt > task, each under its parent, as many as there were."""
    for run in day.runs.values():
        poll_until(lambda: is_whole(run), f"{written(run)} of {run['trace_id']}, not {kinds(run['trace_id'])}")  # noqa: B023
        assert set(kinds(run["trace_id"])) >= KINDS


def test_killed_bridge_continues_where_it_was(together: Together) -> None:
    """Killed in the midst of a job and started in the midst of another: traces are whole, and no span comes twice."""
    for run in together.runs:
        poll_until(lambda: is_whole(run), f"{written(run)} of {run['trace_id']}", seconds=120)  # noqa: B023
        spans = [span["spanID"] for span in backends.JAEGER.spans(run["trace_id"])]
        assert len(spans) == len(set(spans))


def test_an_exemplar_of_tasks_leads_to_its_stage(day: Day) -> None:
    """The exemplars of task times have trace ids that Jaeger knows; those of this day's runs among them."""
    ours = {run["trace_id"] for run in day.runs.values()}
    poll_until(lambda: bool(ours & backends.exemplars("spark_task_duration_seconds_bucket")), f"an exemplar of {ours}")
    found = ours & backends.exemplars("spark_task_duration_seconds_bucket")
    assert all(kinds(trace_id)["stage"] for trace_id in found)


def test_notebook_has_traces_and_metrics(together: Together) -> None:
    """A session in Jupyter is in Jaeger and Prometheus under the name that its user gave it."""
    assert together.runs
    poll_until(lambda: backends.traces("notebook") > 0, "traces of the notebook in Jaeger")
    poll_until(
        lambda: (backends.number('sum(spark_task_duration_seconds_count{spark_app_name="notebook"})') or 0) > 0,
        "task times of the notebook in Prometheus",
    )


def newest(service: str) -> dict[str, Any]:
    """The newest trace of a service."""
    return max(backends.latest(service), key=lambda trace: trace["spans"][0]["startTime"])


def is_ended(service: str) -> bool:
    """Whether the newest trace of a service has the span of its application, which comes last."""
    spans = newest(service)["spans"] if backends.traces(service) else []
    return f"application {service}" in {span["operationName"] for span in spans}


def test_every_way_to_start_an_application_is_seen(started: dict[str, str]) -> None:
    """It runs on the cluster and has a trace, which log lines of driver and executors carry; MLlib has LAPACK."""
    for name, output in started.items():
        assert "9 dev.ludovic.netlib.lapack.JNILAPACK" in output
        poll_until(lambda: is_ended(name), f"the span of the application in the trace of {name}\n{output}")  # noqa: B023
        trace = newest(name)
        assert orphans(trace["traceID"]) == []
        poll_until(
            lambda: backends.log_services(trace["traceID"]) >= {"spark-driver", "spark-executor"},  # noqa: B023
            f"log lines of driver and executors of {name}",
        )


def test_queries_have_the_line_of_a_program_that_knows_nothing_of_it(started: dict[str, str]) -> None:
    """However it was started; of a program that is typed in, the line has no file."""
    for name, line in CALLS.items():
        poll_until(lambda: is_ended(name), f"the span of the application in the trace of {name}\n{started[name]}")  # noqa: B023
        queries = [span for span in newest(name)["spans"] if span["operationName"].split()[0] == "sql"]
        assert {backends.tags(span).get(spark_names.CALL_SITE.name) for span in queries} == {line}


def test_what_a_program_logs_in_python_leads_to_its_trace(started: dict[str, str]) -> None:
    """Each record once, with its logger and level; the program prints what it would without it."""
    for name, output in started.items():
        poll_until(lambda: is_ended(name), f"the span of the application in the trace of {name}\n{output}")  # noqa: B023
        poll_until(lambda: bool(logged(name)), f"what {name} has logged\n{output}")  # noqa: B023
        (line,) = logged(name)
        assert (line["severity_text"], line["body"]["text"]) == ("WARN", "rate is 7")
        assert line["resource"]["attributes"]["service.name"] == "spark-driver"
        assert "rate is 7" in output


def logged(name: str) -> list[dict[str, Any]]:
    """The log lines of the logger `mine` in the trace of an application."""
    lines = backends.ELASTICSEARCH.logs(newest(name)["traceID"])
    return [line for line in lines if line["attributes"].get("logger") == "mine"]


def test_log_lines_at_the_end_of_an_executor_are_no_errors(started: dict[str, str]) -> None:
    """Its driver has ended, and the worker ends it: nothing that anybody must look at.

    One that starts only after its driver has ended could not be created or registered, which Spark rightly calls an
    error, as it does why.
    """
    for name in started:
        lines = backends.ELASTICSEARCH.logs(newest(name)["traceID"])
        assert lines
        errors = [line for line in lines if line["severity_text"] == "ERROR"]
        too_late = {file(line) for line in errors if line["body"]["text"].startswith(TOO_LATE)}
        assert [line["body"]["text"] for line in errors if file(line) not in too_late] == []


def file(line: Mapping[str, Any]) -> str | None:
    """The file that a log line was read from: each executor has one. None of one that came over OTLP."""
    name: str | None = line["attributes"].get("log.file.name")
    return name


def test_reports_are_served(day: Day) -> None:
    """Each run has the address of its report; the list starts with the newest."""
    for run in day.runs.values():
        assert run["report"].startswith(backends.ADDRESSES["reports"])
        assert run["pipeline"] in backends.page(run["report"])
    files = {run["started_at"]: run["report"].rsplit("/", 1)[1] for run in day.runs.values()}
    first_page = backends.ADDRESSES["reports"]
    poll_until(lambda: all(file in backends.page(first_page) for file in files.values()), "the page lacks a report")
    listed = backends.page(first_page)
    assert "Spark master" in listed
    newest_first = [files[started] for started in sorted(files, reverse=True)]
    assert sorted(newest_first, key=listed.index) == newest_first
    times = re.findall(r'data-l="started">([^<]+)<', listed)
    assert len(times) >= len(files)
    assert times == sorted(times, reverse=True)
