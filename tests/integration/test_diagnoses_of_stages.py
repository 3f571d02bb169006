"""Every rule of stages and executors has a real job that triggers it, and a twin under the same thresholds that not."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from app.eventlog import reading
from app.eventlog.application import Application
from app.eventlog.diagnoses import diagnose
from app.eventlog.diagnoses.diagnose import APPLICATION_RULES, STAGE_RULES
from app.eventlog.diagnoses.reading_again import repeated_scan, unused_cache
from app.eventlog.diagnoses.thresholds import Thresholds
from app.eventlog.findings import Finding
from tests.eventlogs import stages

MIB: Final = 1024**2
STAGE_THRESHOLDS: Final = Thresholds(
    cost_ms=500,
    skew_longest_ms=1000,
    skew_ratio=5,
    tiny_tasks=500,
    few_tasks_stage_ms=1500,
    spill_bytes=MIB,
    disk_bytes_per_second=MIB,
    gc_ratio=0.5,
    huge_bytes=6 * MIB,
)
"""So low that a stage of seconds is in trouble; but for collections, which a busy machine stretches in any stage."""
DRIVER_THRESHOLDS: Final = Thresholds(
    driver_gap_ms=5000,
    driver_gap_ratio=0.5,
    memory_over_ratio=0.45,
    memory_over_bytes=0,
    memory_under_ratio=0.75,
    memory_samples=8,
)
"""So low that an application of seconds on one machine is in trouble."""
CLUSTER_THRESHOLDS: Final = Thresholds(cost_ms=700, skew_ratio=100, idle_ratio=0.45, idle_core_ms=2000)
"""The same on a cluster, where executors begin cold: their first tasks are no skew."""
PATIENCE_SECONDS: Final = 400
STAGE_CASES: Final = [
    ("hot key", "no hot key", "partition_skew", "records, the others"),
    ("slow task", "no slow task", "partition_skew", "it had no more data than the others"),
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
    ("gap", {"driver_gap"}, "no task ran"),
    ("full", {"memory_under"}, f"of {stages.HEAP_MIB}.0 MiB of heap"),
    ("empty", {"memory_over"}, f"of {stages.HEAP_MIB}.0 MiB of heap"),
    ("healthy", set(), ""),
    ("busy cluster", set(), ""),
    ("idle cluster", {"idle_cores"}, "of core time"),
    ("lost executor", {"lost_executors"}, "Lost 1 of 2 executors and 2 tasks that ran there"),
]
"""An application, the rules that speak for it, and words of what they say."""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The event logs of all programs in trouble, by their names."""
    folder = tmp_path_factory.mktemp("troubles")
    command = [sys.executable, stages.__file__, str(folder), *stages.APPLICATIONS]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert ended.returncode == 0, ended.stderr[-5000:]
    return folder / "logs"


def found(log: Path, thresholds: Thresholds) -> tuple[Application, list[Finding]]:
    """What is known of an application, and what is found in it."""
    app = reading.read(log).app
    return app, diagnose.diagnose(app, thresholds)


def is_cluster(name: str) -> bool:
    """Whether an application has executors of its own."""
    return "cluster" in stages.APPLICATIONS[name][1]


@pytest.fixture(scope="module")
def cases(logs: Path) -> Mapping[str, list[Finding]]:
    """What is found in stages, by the group of their jobs; nothing in some, but no group that did not run."""
    app, findings = found(logs / "stages", STAGE_THRESHOLDS)
    by_group: dict[str, list[Finding]] = {job.properties.group or "none": [] for job in app.jobs.values()}
    for finding in findings:
        properties = app.stages[finding.stage].properties if finding.stage else None
        by_group.setdefault((properties.group if properties else None) or "none", []).append(finding)
    return by_group


@pytest.mark.parametrize(("trouble", "twin", "rule", "words"), STAGE_CASES)
def test_a_stage_in_trouble_is_told_and_its_twin_is_not(
    cases: Mapping[str, list[Finding]], trouble: str, twin: str, rule: str, words: str
) -> None:
    """The rule speaks for the one, with its numbers; no rule speaks for the other, nor another rule for the one."""
    assert {finding.rule for finding in cases[trouble]} == {rule}
    assert words in cases[trouble][0].text
    assert cases[twin] == []


@pytest.mark.parametrize(("name", "rules", "words"), APPLICATION_CASES)
def test_an_application_in_trouble_is_told_and_its_twin_is_not(
    logs: Path, name: str, rules: set[str], words: str
) -> None:
    """`healthy` is the twin of those on one machine, `busy cluster` of those on executors."""
    _, findings = found(logs / name, CLUSTER_THRESHOLDS if is_cluster(name) else DRIVER_THRESHOLDS)
    assert {finding.rule for finding in findings} == rules
    assert all(words in finding.text for finding in findings)


def test_each_rule_has_a_case_and_a_twin() -> None:
    """No rule about stages and applications goes untested, but for those that are tested with plans."""
    assert {rule for _, _, rule, _ in STAGE_CASES} == {rule.__name__ for rule in STAGE_RULES}
    assert not {trouble for trouble, *_ in STAGE_CASES} & {twin for _, twin, *_ in STAGE_CASES}
    of_plans = {repeated_scan, unused_cache}
    wanted = {rule.__name__ for rule in APPLICATION_RULES if rule not in of_plans}
    assert set().union(*(rules for _, rules, _ in APPLICATION_CASES)) == wanted
    healthy = {is_cluster(name) for name, rules, _ in APPLICATION_CASES if not rules}
    assert healthy == {is_cluster(name) for name, *_ in APPLICATION_CASES}


def test_the_time_of_tasks_is_that_of_the_tasks(logs: Path) -> None:
    """Summed up while reading, it is what the tasks told, but for events that overtook others."""
    for name in stages.APPLICATIONS:
        app = reading.read(logs / name).app
        told = sum(sum(stage.durations_ms) for stage in app.stages.values())
        assert app.is_whole
        assert app.usage.task_ms == pytest.approx(told, rel=0.01)
