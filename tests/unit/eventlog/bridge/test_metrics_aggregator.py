"""What is counted of real logs is what their tasks reported, and goes by the same names in each run and each Spark."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median

import pytest

from spark_app.eventlog.bridge.metrics import Aggregate
from spark_app.eventlog.bridge.metrics_aggregator import MetricsAggregator
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.plan_names import PYTHON_TIME
from spark_app.eventlog.model.stage_groups import group_of
from spark_app.eventlog.parse import events
from spark_app.eventlog.parse.events import Event, StageCompleted, TaskEnd
from spark_app.eventlog.parse.log_tailer import LogTailer
from tests.eventlogs.golden import LOGS, log
from tests.eventlogs.record import VERSIONS


def counted(path: Path) -> tuple[Aggregate, list[Event]]:
    """What is counted of a log, and its events."""
    app, taken, tailer = Application("app-1"), list[Event](), LogTailer(path)
    aggregator = MetricsAggregator(app)
    for line in tailer.new():
        event = events.event(line)
        if event is not None:
            app.apply(event)
            aggregator.take(event)
            taken.append(event)
    tailer.close()
    return aggregator.aggregate(), taken


def totals(aggregate: Aggregate) -> dict[str, int]:
    """Sums over all groups, by the metric."""
    found: defaultdict[str, int] = defaultdict(int)
    for (name, *labels), count in aggregate.applications["golden"].counts.items():
        if name.startswith(("spark.task.", "spark.tasks.", "spark.stages.")) and not labels:
            found[name.removeprefix("spark.task.")] += count
    for group in aggregate.applications["golden"].groups.values():
        for name, histogram in group.histograms.items():
            found[name.removeprefix("spark.task.")] += histogram.sum
        for name, count in group.counts.items():
            found[name.removeprefix("spark.task.")] += count
    return dict(found)


@pytest.mark.parametrize(("version", "layout"), LOGS)
def test_totals_are_the_sums_over_the_tasks(version: str, layout: str, tmp_path: Path) -> None:
    """To the last byte, of each kind that the program has; nothing is spilled, so that nothing is said of spill."""
    aggregate, taken = counted(log(version, layout, tmp_path))
    ends = [event for event in taken if isinstance(event, TaskEnd)]
    task_metrics = [task.metrics for task in ends if task.metrics]
    completed = [event.info for event in taken if isinstance(event, StageCompleted)]
    python = [number for stage in completed for number in stage.accumulables if number.name == PYTHON_TIME]
    found = totals(aggregate)
    del found["scheduler_delay"]
    assert found.pop("spark.stage.python_time", None) == (sum(events.counted(python).values()) or None)
    assert found == {
        "spark.stage.longest_task": sum(max(durations) for durations in durations_of_stages(taken)),
        "spark.stage.median_task": sum(round(median(durations)) for durations in durations_of_stages(taken)),
        "duration": sum(task.info.finished - task.info.launched for task in ends),
        "run_time": sum(metrics.run_ms for metrics in task_metrics),
        "cpu_time": sum(metrics.cpu_ns or 0 for metrics in task_metrics),
        "gc_time": sum(metrics.gc_ms for metrics in task_metrics),
        "shuffle.read": sum(each.shuffle_read.local_bytes + each.shuffle_read.remote_bytes for each in task_metrics),
        "shuffle.write": sum(metrics.shuffle_write.bytes for metrics in task_metrics),
        "input": sum(metrics.input.bytes for metrics in task_metrics),
        "output": sum(metrics.output.bytes for metrics in task_metrics),
        "spark.tasks.failed": sum(task.info.has_failed for task in ends),
        "spark.stages.failed": sum(bool(stage.failure) for stage in completed),
    }
    assert found["spark.tasks.failed"] > 0


def durations_of_stages(taken: Iterable[Event]) -> Iterator[list[int]]:
    """The durations of the tasks of each stage attempt that ended, those that ended before it."""
    durations: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for event in taken:
        if isinstance(event, TaskEnd):
            durations[event.stage, event.stage_attempt].append(event.info.finished - event.info.launched)
        elif isinstance(event, StageCompleted) and durations[event.info.id, event.info.attempt]:
            yield durations[event.info.id, event.info.attempt]


def test_each_run_of_a_program_has_the_same_groups(tmp_path: Path) -> None:
    """Ten runs, with five versions of Spark: nothing that differs among them is in a name."""
    runs = [(version, layout) for version in VERSIONS for layout in ("plain", "rolled-zstd")]
    found = [set(counted(log(*run, tmp_path))[0].applications["golden"].groups) for run in runs]
    assert all(groups == found[0] for groups in found)
    assert "reduceByKey at job.py [shuffle]" in found[0]
    assert "parquet files [shuffle > result]" in found[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_group_is_known_when_its_stage_begins(version: str, tmp_path: Path) -> None:
    """What is learned later, as a new plan, changes no name: whoever follows a log and whoever reads it whole agree."""
    app, early, tailer = (
        Application("app-1"),
        dict[tuple[int, int], str](),
        LogTailer(log(version, "plain", tmp_path)),
    )
    for line in tailer.new():
        event = events.event(line)
        if event is not None:
            app.apply(event)
        if isinstance(event, events.StageSubmitted):
            key = (event.info.id, event.info.attempt)
            early[key] = group_of(app, app.stages[key])
    tailer.close()
    assert early == {key: group_of(app, stage) for key, stage in app.stages.items()}
