"""What was planted in a recorded program is reported first, and its quiet twin hears nothing.

Open pairs of the truth, and two of clusters. Programs of seconds stand for those of a minute: the cause takes the same
share of them.
"""

from pathlib import Path
from typing import Final

import pytest

from spark_app.eventlog import reader
from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.diagnoses.rule import rules
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from tests.compare.record import HERE as COMPARED
from tests.eventlogs.record_diagnoses import recorded as of_diagnoses
from truth.declared import pairs

JOIN: Final = "sort_merge_join_could_broadcast"
OF_TRUTH: Final = {
    "collect_to_driver": "collect-pandas",
    "cpu_starvation": "recorded-cpu-starvation",
    "cross_join": "recorded-cross-join",
    "driver_gap": "recorded-busy-driver",
    "evicted_cache": "evicted-cache-sql",
    "explode": "explode-wide-rows",
    "external_wait": "recorded-external-wait",
    "failed_tasks": "recorded-failing-tasks",
    "gc_pressure": "recorded-collections",
    "missing_cache": "missing-cache-outputs",
    "partition_skew": "recorded-hot-key",
    "repeated_scan": "recorded-repeated-scan",
    "row_python_udf": "recorded-row-python-udf",
    "slow_planning": "planning-branches",
    "slow_storage": "slow-storage-rdd",
    "small_files_read": "recorded-small-files-read",
    "small_files_written": "recorded-small-files-written",
    "sort_merge_join_could_broadcast": "recorded-sort-merge-join-could-broadcast",
    "speculation": "speculation-dataframe",
    "spill": "recorded-spill",
    "tiny_tasks": "recorded-tiny-tasks",
    "too_few_tasks": "recorded-too-few-tasks",
    "unused_cache": "recorded-unused-cache",
}
"""Open pairs of the truth, by the rule that must report the cause."""
LOGS: dict[str, tuple[Path, Path]] = {
    "lost_executors": (of_diagnoses("lost executor"), of_diagnoses("busy cluster")),
    "retried_stage": (COMPARED / "killed-executor.zst", of_diagnoses("busy cluster")),
} | {cause: (pairs()[name].log("planted"), pairs()[name].log("quiet")) for cause, name in OF_TRUTH.items()}
"""The log of a program with a planted cause and that of its quiet twin, by the rule that must report the cause."""
ADVICE: Final = {
    "spill": "spark.memory.fraction is 0.05: remove the setting",
    "tiny_tasks": "spark.sql.adaptive.enabled is false: set it to true",
    "row_python_udf": "Look what asked does in each call",
    "sort_merge_join_could_broadcast": "spark.sql.autoBroadcastJoinThreshold is -1, which switches broadcasts off",
}
"""What the advice names, where the log has the answer."""
WAITING: Final = {"too_few_tasks", "unused_cache"}
"""Twins that wait for the same service, without the cause."""
BUSY: Final = {"external_wait"}
"""Twins of which `observe` measured that other programs had the processors while they were recorded."""
DEFAULTS: Final = Thresholds()
LOW: Final = {"spill": Thresholds(cost_ms=500)}
"""The page cache held what was spilled: the quiet twin took 0.8 s less, which the thresholds as shipped leave out."""
QUIET: Final = [of_diagnoses("healthy"), COMPARED / "at-ease.zst", COMPARED / "little-memory.zst"]
"""Other recorded programs that no cause was planted in, or one that costs almost nothing."""


def findings(log: Path, limits: Thresholds = DEFAULTS) -> list[Finding]:
    """What is reported about a log."""
    return diagnose(reader.read(log).app, limits)


@pytest.mark.parametrize("cause", LOGS)
def test_a_planted_cause_is_reported_first(cause: str) -> None:
    """With the setting that is the answer, where there is one."""
    first = findings(LOGS[cause][0], LOW.get(cause, DEFAULTS))[0]
    assert first.rule == cause, first
    assert ADVICE.get(cause, "") in first.advice


@pytest.mark.parametrize("cause", LOGS)
def test_a_quiet_twin_hears_nothing(cause: str) -> None:
    """The same work without the cause; some ask a service as long, or wait for a processor, and that is all."""
    expected = ["external_wait"] if cause in WAITING else ["cpu_starvation"] if cause in BUSY else []
    assert [finding.rule for finding in findings(LOGS[cause][1])] == expected


def test_other_quiet_programs_hear_nothing() -> None:
    """Whatever they were recorded for."""
    assert [finding.text for log in QUIET for finding in findings(log)] == []


def test_each_cause_is_found_by_a_rule() -> None:
    """There is a program for each of a dozen rules and more."""
    assert set(rules()) >= set(LOGS)
    assert len(LOGS) >= 12


def test_a_shuffled_join_costs_what_its_twin_saves() -> None:
    """Spark measures a small part of it; the estimate of the rest is right in its order, and not too high."""
    (cause,) = (each for each in findings(LOGS[JOIN][0]) if each.rule == JOIN)
    planted_ms, quiet_ms = (query_ms(log) for log in LOGS[JOIN])
    assert (planted_ms - quiet_ms) / 2 < (cause.cost_ms or 0) < planted_ms - quiet_ms


def query_ms(log: Path) -> int:
    """The time of all queries of a program."""
    return sum((query.ended or 0) - query.started for query in reader.read(log).app.queries.values())
