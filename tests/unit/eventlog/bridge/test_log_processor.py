"""What is exported of one log: whole trees, or nothing of them."""

from pathlib import Path
from typing import Any, Final

from spark_app.eventlog.bridge.log_processor import LogProcessor
from spark_app.eventlog.diagnoses.thresholds import load_thresholds
from spark_app.eventlog.parse.log_files import EventLog
from spark_app.eventlog.spans import SparkSpan
from tests.eventlogs import walking
from tests.unit.eventlog.log import (
    SQL,
    Line,
    ended,
    job,
    job_ended,
    label,
    query,
    query_ended,
    resubmitted,
    stage,
    started,
    task,
)
from tests.unit.eventlog.logs import tasks_of, write

SAMPLED: Final = f"00-{'a' * 32}-{'b' * 16}-01"
UNSAMPLED: Final = f"00-{'c' * 32}-{'d' * 16}-00"


def followed(log: Path, lines: list[Line]) -> tuple[LogProcessor, dict[str, SparkSpan]]:
    """A log that is read to its end, and the spans that were exported of it."""
    spans: list[SparkSpan] = []
    found = LogProcessor(
        EventLog(log.name, write(log, lines), 0),
        on_span=lambda _, span: spans.append(span),
        is_crowded=lambda: False,
        thresholds=load_thresholds(),
        was_counted=False,
    )
    found.read(float("inf"))
    found.end()
    return found, {label(span): span for span in spans}


def of_a_step(number: int, traceparent: str | None) -> list[Line]:
    """A query with a part, a job, a stage and a task, all of that number, for a step."""
    inner, properties = 10 + number, {} if traceparent is None else {"traceparent": traceparent}
    properties["spark.sql.execution.id"] = str(inner)
    return [
        query(number), query(inner, root=number), job(number, [number], **properties),
        stage(number), task(number, number), stage(number, end=2900), job_ended(number), query_ended(inner),
        query_ended(number),
    ]  # fmt: skip


def test_what_is_not_sampled_is_left_out_as_a_whole(tmp_path: Path) -> None:
    """W3C's flag says so: no span of that step, and none of another is missing; all tasks are counted."""
    steps = [(0, SAMPLED), (1, UNSAMPLED), (2, None), (3, UNSAMPLED[:-2] + "02"), (4, SAMPLED[:-2] + "03")]
    lines = [line for number, flags in steps for line in of_a_step(number, flags)]
    found, spans = followed(tmp_path / "app-1", [started(), *lines, ended()])
    assert {name for name in spans if name.startswith(("job", "stage", "task"))} == {
        name for number in (0, 2, 4) for name in (f"job {number}", f"stage {number}.0", f"task {number}")
    }
    assert {int(name.split()[1]) for name in spans if name.startswith("sql")} == {0, 2, 4, 10, 12, 14}
    walking.assert_is_forest(found.app, spans.values())
    assert found.counts.spans_suppressed == 2 * 5
    assert tasks_of(found.aggregator.aggregate()) == 5


def test_a_task_that_ends_after_its_stage_is_counted(tmp_path: Path) -> None:
    """As a copy that lost, which is killed when the stage has ended; and so is one of a stage without an end."""
    killed = task(1, 0, seconds=1) | {"Task End Reason": {"Reason": "TaskKilled", "Kill Reason": "another attempt"}}
    killed["Task Info"] |= {"Killed": True, "Speculative": True}
    lines = [job(0, [0, 1]), stage(0), task(0, 0), stage(0, end=2900), killed, task(2, 0), stage(1), task(3, 1)]
    found, spans = followed(tmp_path / "app-1", [started(), *lines])
    assert found.summary.startswith("0 jobs, 4 tasks")
    assert {name for name in spans if name.startswith("task")} == {"task 0", "task 1", "task 3"}
    assert found.counts.tasks_suppressed == 1


def test_a_task_whose_output_is_lost_counts_once_and_as_failed(tmp_path: Path) -> None:
    """In the totals too: its time was counted at its first end."""
    again = task(1, 0) | {"Task Info": task(1, 0)["Task Info"] | {"Attempt": 1}}
    lines = [job(0, [0]), stage(0), task(0, 0), resubmitted(task(0, 0)), again, stage(0, end=2900), job_ended(0)]
    found, spans = followed(tmp_path / "app-1", [started(), *lines, ended()])
    assert found.summary.startswith("1 job, 2 tasks")
    shop = found.aggregator.aggregate().applications["shop"]
    (group,) = shop.groups.values()
    assert (sum(group.histograms["spark.task.duration"].counts), shop.counts["spark.tasks.failed",]) == (2, 1)
    assert found.counts.failed_events == 0
    assert {"stage 0.0", "task 0", "task 1"} < spans.keys()


def test_an_exemplar_never_leads_to_a_span_that_is_not_told(tmp_path: Path) -> None:
    """A stage of a trace that is not sampled has none."""
    exemplars = []
    for flags in (SAMPLED, UNSAMPLED):
        found, _ = followed(tmp_path / "app-1", [started(), *of_a_step(0, flags), ended()])
        (group,) = found.aggregator.aggregate().applications["shop"].groups.values()
        exemplars.append(group.histograms["spark.task.duration"].exemplar)
    assert [exemplar is not None for exemplar in exemplars] == [True, False]


def test_a_stage_is_found_by_the_group_of_its_metrics(tmp_path: Path) -> None:
    """The same text, though adaptive execution has made another plan while the stage was at work."""
    plans = [{"nodeName": f"Execute InsertIntoHadoopFsRelationCommand {path}, x"} for path in ("/sold", "/bought")]
    began = query(0) | {"description": "save at NativeMethodAccessorImpl.java:0", "sparkPlanInfo": plans[0]}
    changed = {"Event": f"{SQL}AdaptiveExecutionUpdate", "executionId": 0, "sparkPlanInfo": plans[1]}
    lines = [started(), began, job(0, [0], **{"spark.sql.execution.id": "0"}), stage(0), changed, task(0, 0)]
    found, spans = followed(tmp_path / "app-1", [*lines, stage(0, end=2900), job_ended(0), query_ended(0), ended()])
    (group,) = found.aggregator.aggregate().applications["shop"].groups
    assert group == spans["stage 0.0"].attributes["spark.stage.group"] == "save sold [result]"


def spilling_stage(number: int, *, mib: int) -> list[Line]:
    """A job of 5 s with a stage of one task that spills."""
    at = 10_000 * (number + 1)
    begin, end = stage(number), stage(number, end=at + 5000)
    for line in (begin, end):
        line["Stage Info"]["Submission Time"] = at
    times: dict[str, Any] = {"Launch Time": at, "Finish Time": at + 5000}
    done = task(number, number, **times)
    done["Task Metrics"] |= {"Disk Bytes Spilled": mib * 2**20}
    start = {
        "Event": "SparkListenerTaskStart",
        "Stage ID": number,
        "Stage Attempt ID": 0,
        "Task Info": done["Task Info"],
    }
    return [job(number, [number], time=at), begin, start, done, end, job_ended(number, time=at + 5000)]


def test_a_cause_is_reported_where_its_places_cost_enough_together(tmp_path: Path) -> None:
    """Spills of 2.4 s each: the third makes 7.2 s; the next one adds nothing new, and all are the application's."""
    lines = [line for number in range(4) for line in spilling_stage(number, mib=150)]
    found, spans = followed(tmp_path / "app-1", [started(), *lines, ended(60_000)])
    reported = {name: [finding.rule for finding in span.findings] for name, span in spans.items() if span.findings}
    assert reported == {"stage 2.0": ["spill"], "application app-1": ["spill"]}
    assert spans["application app-1"].findings[0].numbers["places"] == 4
    counts = found.aggregator.aggregate().applications["shop"].counts
    assert {key[1:]: count for key, count in counts.items() if key[0] == "spark.findings"} == {("spill", "warning"): 1}


def test_a_place_that_costs_enough_alone_is_reported_each_time(tmp_path: Path) -> None:
    """An application that lives for months would be silent after its first finding else."""
    lines = [line for number in range(2) for line in spilling_stage(number, mib=400)]
    found, spans = followed(tmp_path / "app-1", [started(), *lines, ended(60_000)])
    assert {name for name, span in spans.items() if span.findings} == {"stage 0.0", "stage 1.0", "application app-1"}
    assert found.aggregator.aggregate().applications["shop"].counts["spark.findings", "spill", "warning"] == 2
