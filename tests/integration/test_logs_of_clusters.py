"""Logs of small clusters in trouble, recorded with `local-cluster`, say what Spark itself said of them."""

import json
from collections import Counter
from typing import Final

import pytest

from spark_app.eventlog import reader
from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.executor_loss import is_lost, kind_of
from spark_app.eventlog.reader import Reading
from spark_app.report.limits import Limits
from spark_app.report.scope import scope
from spark_app.report.sections import executors
from spark_app.report.sections.headline import headline
from tests.eventlogs import clusters, walking
from tests.eventlogs.record_clusters import counted, recorded

EVERY: Final = pytest.mark.parametrize("name", clusters.APPLICATIONS)
RULES: Final = {
    "lost output": {"lost_executors"},
    "fetch failure": {"lost_executors", "retried_stage"},
    "excluded": {"excluded_executors", "failed_tasks"},
    "barrier": set[str](),
    "dynamic allocation": set[str](),
    "speculation": set[str](),
}
"""The rules that speak for an application of seconds if nothing is too short for them."""
FOUND_BY_TIME: Final = {
    "partition_skew",
    "too_few_tasks",
    "driver_gap",
    "idle_cores",
    "gc_pressure",
    "cpu_starvation",
    "external_wait",
}
"""Rules about time, of which small applications have little."""


def application(name: str) -> Application:
    """What the log of an application says."""
    return reader.read(recorded(name)).app


@EVERY
def test_tasks_are_counted_as_spark_counts_them(name: str) -> None:
    """Completed, failed and killed ones of each stage attempt, as its REST API had them at the end."""
    app = application(name)
    ours = {f"{number}.{attempt}": stage for (number, attempt), stage in app.stages.items()}
    assert {key: (stage.completed, stage.failed, stage.killed) for key, stage in ours.items()} == {
        key: tuple(numbers[each] for each in clusters.COUNTED)
        for key, numbers in json.loads(counted(name).read_text(encoding="utf-8")).items()
    }


@EVERY
def test_no_span_is_without_its_parent(name: str) -> None:
    """Nothing is exported twice, or leaves the time of its parent; nothing runs at the end, and no remark is needed."""
    walking.assert_is_forest(*walking.read(recorded(name)))
    read: Reading = reader.read(recorded(name))
    assert (read.remarks, read.app.running, read.app.is_whole) == ([], 0, True)


@EVERY
def test_rules_speak_for_what_happened(name: str) -> None:
    """And for nothing else."""
    findings = diagnose(application(name), Thresholds(cost_ms=0))
    assert {finding.rule for finding in findings} - FOUND_BY_TIME == RULES[name]


def test_output_that_is_lost_with_an_executor_is_written_again() -> None:
    """In the same attempt of the stage, whose tasks are those that were lost, beside the one that ran there."""
    app = application("lost output")
    stage = app.stages[0, 0]
    (lost,) = (executor for executor in app.executors.values() if is_lost(app, executor))
    assert stage.resubmitted > 0
    assert stage.failed == stage.resubmitted + 1
    assert lost.lost_tasks == stage.failed
    assert stage.completed == 16 + stage.resubmitted
    assert len(stage.durations_ms) == stage.completed + 1
    top = headline(scope(app, None))
    assert (top.figures.tasks, top.completed_tasks, top.figures.failed_tasks) == (23, 22, 5)


def test_a_fetch_failure_makes_two_attempts() -> None:
    """Of the stage that lost its output, and of the one that did not find it."""
    app = application("fetch failure")
    attempts = Counter(number for number, _ in app.stages)
    assert sorted(attempts.values()) == [2, 2]
    failures = [stage.info.failure for stage in app.stages.values() if stage.info.failure]
    assert all("FetchFailed" in failure or "fetch" in failure.lower() for failure in failures)


def test_an_exclusion_is_in_the_report() -> None:
    """Of the executor and its host: from a stage, and then from all stages until it ended."""
    shown = executors.executors(scope(application("excluded"), None), Limits())
    kinds = [(each.executor is None, each.stage is None, each.ended is not None) for each in shown.exclusions]
    assert sorted(kinds) == [(False, False, False), (False, True, True), (True, False, False), (True, True, True)]
    assert shown.exclusions_total == len(shown.exclusions)


def test_the_tasks_of_a_barrier_start_together() -> None:
    """All of them in one attempt."""
    stage = application("barrier").stages[0, 0]
    assert len(stage.durations_ms) == stage.info.tasks == 2


def test_executors_that_are_released_are_not_lost() -> None:
    """Their cores are there while they are."""
    app = application("dynamic allocation")
    gone = [executor for executor in app.executors.values() if executor.removed is not None]
    assert gone
    assert {kind_of(executor.reason or "") for executor in gone} == {"released"}
    assert len(app.executors) > 2
    assert app.usage.core_ms < 2 * app.usage.wall_ms


def test_the_slower_copy_of_a_task_is_killed() -> None:
    """It ends after its stage, and is no failure."""
    stage = application("speculation").stages[0, 0]
    assert (stage.failed, stage.killed, stage.speculative >= 1) == (0, stage.killed, True)
    assert stage.completed == stage.info.tasks
    assert stage.killed >= 1
