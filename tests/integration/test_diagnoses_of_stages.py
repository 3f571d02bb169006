"""Each rule about stages and applications fires on a recorded application, and not on a twin of it."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from spark_app.eventlog import reader
from spark_app.eventlog.diagnoses import diagnose
from spark_app.eventlog.diagnoses.judgement import FindingGroups
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from tests.eventlogs import stages
from tests.eventlogs.record_diagnoses import recorded

MIB: Final = 1024**2
STAGE_THRESHOLDS: Final = Thresholds(
    cost_ms=500,
    cost_ratio=0,
    skew_longest_ms=1000,
    skew_ratio=5,
    tiny_tasks=500,
    few_tasks_stage_ms=1500,
    disk_bytes_per_second=MIB,
    gc_ratio=0.5,
    cpu_ratio=0.01,
    cpu_unmeasured_ratio=0.01,
    external_wait_ratio=1,
    huge_bytes=6 * MIB,
)
"""So low that a stage of seconds is in trouble; but for collections, which a busy machine stretches in any stage, for
processors, which the machine had too few of when this was recorded, and for waits: tasks sleep here instead of work."""
DRIVER_THRESHOLDS: Final = Thresholds(
    driver_gap_ms=5000,
    driver_gap_ratio=0.5,
    memory_over_ratio=0.45,
    memory_over_bytes=0,
    memory_under_ratio=0.75,
    memory_samples=8,
    external_wait_ratio=1,
)
"""So low that an application of seconds on one machine is in trouble."""
CLUSTER_THRESHOLDS: Final = Thresholds(
    cost_ms=700,
    cost_ratio=0,
    skew_ratio=100,
    idle_ratio=0.45,
    idle_core_ms=2000,
    cpu_ratio=0.01,
    cpu_unmeasured_ratio=0.01,
    external_wait_ratio=1,
)
"""The same on a cluster, where executors begin cold: their first tasks are no skew, and load classes slowly."""
PATIENCE_SECONDS: Final = 400
LIVE: Final = ("few tasks", "failure")
"""The cases of the live application."""
STAGE_CASES: Final = [
    ("hot key", "no hot key", "partition_skew", "records, the others"),
    ("slow task", "no slow task", "partition_skew", "with no more data than the others"),
    ("tiny tasks", "no tiny tasks", "tiny_tasks", "600 tasks of"),
    ("few tasks", "enough tasks", "too_few_tasks", "where 2 could run at once"),
    ("huge partitions", "no huge partitions", "huge_partitions", "one of its 2 tasks had"),
    ("spill", "no spill", "spill", "2 of 2 tasks spilled"),
    ("garbage", "no garbage", "gc_pressure", "garbage collection"),
    ("failure", "no failure", "failed_tasks", "1 of 3 task attempts failed"),
    ("lost shuffle", "no lost shuffle", "retried_stage", "it ran 2 tasks again"),
]
"""Two job groups of one application, the rule that speaks for the first, and words of what it says."""
APPLICATION_CASES: Final[list[tuple[str, set[str], str]]] = [
    ("gap", {"driver_gap"}, "No task ran for "),
    ("full", {"memory_under"}, f"of {stages.HEAP_MIB}.0 MiB of heap"),
    ("empty", {"memory_over"}, f"of {stages.HEAP_MIB}.0 MiB of heap"),
    ("healthy", set(), ""),
    ("busy cluster", set(), ""),
    ("idle cluster", {"idle_cores"}, "of core time"),
    ("lost executor", {"lost_executors"}, "Lost 1 of 2 executors and 2 tasks that ran there"),
]
"""An application, the rules that speak for it, and words of what they say."""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The event log of the short application, run now."""
    folder = tmp_path_factory.mktemp("live")
    command = [sys.executable, stages.__file__, str(folder), "short"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert ended.returncode == 0, ended.stderr[-5000:]
    return folder / "logs" / "short"


def found(log: Path, thresholds: Thresholds) -> tuple[Application, list[Finding]]:
    """What is known of an application, and what is found in it."""
    app = reader.read(log).app
    return app, diagnose.diagnose(app, thresholds)


def is_cluster(name: str) -> bool:
    """Whether an application has executors of its own."""
    return "cluster" in stages.APPLICATIONS[name][1]


def findings_by_group(log: Path) -> Mapping[str, list[Finding]]:
    """The findings about stages by job group; an empty list for a group without findings."""
    app = reader.read(log).app
    by_group: dict[str, list[Finding]] = {job.properties.group or "none": [] for job in app.jobs.values()}
    for stage in app.stages.values():
        findings = FindingGroups(diagnose.of_stage(app, stage, STAGE_THRESHOLDS)).ranked(app, STAGE_THRESHOLDS)
        by_group.setdefault((stage.properties.group if stage.properties else None) or "none", []).extend(findings)
    return by_group


@pytest.fixture(scope="module")
def cases() -> Mapping[str, list[Finding]]:
    """The findings of the recorded application with every trouble of a stage."""
    return findings_by_group(recorded("stages"))


def assert_fires_on(case: tuple[str, str, str, str], cases: Mapping[str, list[Finding]]) -> None:
    """Only the rule of a case fires on it, with its numbers; none fires on its twin."""
    trouble, twin, rule, words = case
    assert {finding.rule for finding in cases[trouble]} == {rule}
    assert words in cases[trouble][0].text
    assert cases[twin] == []


@pytest.mark.parametrize("case", STAGE_CASES, ids=lambda case: case[0])
def test_stage_rule_fires_only_on_its_case(cases: Mapping[str, list[Finding]], case: tuple[str, str, str, str]) -> None:
    """In the recorded log, and not on the twin of the case."""
    assert_fires_on(case, cases)


def test_rules_fire_on_a_live_application(live: Path) -> None:
    """The installed Spark writes what the recorded logs hold."""
    by_group = findings_by_group(live)
    for case in STAGE_CASES:
        if case[0] in LIVE:
            assert_fires_on(case, by_group)


@pytest.mark.parametrize(("name", "rules", "words"), APPLICATION_CASES)
def test_application_rule_fires_only_on_its_case(name: str, rules: set[str], words: str) -> None:
    """`healthy` is the twin of those on one machine, `busy cluster` of those on executors."""
    _, findings = found(recorded(name), CLUSTER_THRESHOLDS if is_cluster(name) else DRIVER_THRESHOLDS)
    assert {finding.rule for finding in findings} == rules
    assert all(words in finding.text for finding in findings)


def test_each_case_has_a_twin() -> None:
    """No log is both, and each kind of cluster has a healthy application; `test_judge` says which rules have a pair."""
    assert not {trouble for trouble, *_ in STAGE_CASES} & {twin for _, twin, *_ in STAGE_CASES}
    healthy = {is_cluster(name) for name, rules, _ in APPLICATION_CASES if not rules}
    assert healthy == {is_cluster(name) for name, *_ in APPLICATION_CASES}


def test_task_time_is_the_sum_of_the_tasks(live: Path) -> None:
    """The sum while reading differs only by events that overtook others."""
    for log in (live, *map(recorded, stages.RECORDED)):
        app = reader.read(log).app
        task_ms = sum(sum(stage.durations_ms) for stage in app.stages.values())
        assert app.is_whole
        assert app.usage.task_ms == pytest.approx(task_ms, rel=0.01)
