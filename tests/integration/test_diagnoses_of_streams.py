"""Each rule about streams fires on a recorded query, and not on a twin of it, which hears nothing.

The queries run for seconds and stand for those that run for months, so that a cost of half a second counts.
"""

from pathlib import Path
from typing import Final

import pytest

from spark_app.eventlog import reader
from spark_app.eventlog.diagnoses.diagnose import diagnose, rules_of
from spark_app.eventlog.diagnoses.stream import StreamView
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from tests.eventlogs import record
from tests.eventlogs.record_streams import ALWAYS_LATE, EVERY_FIELD, of_version, recorded
from tests.eventlogs.streams import PROGRAMS
from truth.declared import pairs

THRESHOLDS: Final = Thresholds(cost_ms=500)
CASES: Final = {
    "batch_longer_than_trigger": ("longer than the 2.0 s of its trigger, as the starts of its batches show", "cores"),
    "falling_behind": ("records more than it had read", "maxOffsetsPerTrigger"),
    "stalled_watermark": ("no rows came from FileStreamSource", "multipleWatermarkPolicy is min"),
    "tiny_batches": ("its 24 batches read 5 rows each", "a longer trigger"),
    "batch_overhead": ("latestOffset alone took", "asking the sources what is new"),
    "growing_state": ("and lost none, since it has no watermark", "dropDuplicatesWithinWatermark"),
    "skewed_state": ("with state the longest task took", "a salt"),
    "many_state_partitions": ("its state has 40 partitions on", "spark.sql.shuffle.partitions (now 40)"),
}
"""Words of what is said, and of the advice, by the rule."""


def findings(log: Path) -> list[Finding]:
    """What is reported about the streams of a log."""
    return [finding for finding in diagnose(reader.read(log).app, THRESHOLDS) if finding.stream is not None]


@pytest.mark.parametrize("rule", CASES)
def test_a_planted_cause_is_reported_with_its_remedy(rule: str) -> None:
    """It is the only thing that is reported about the query."""
    (finding,) = findings(recorded(rule, "planted"))
    text, advice = CASES[rule]
    assert finding.rule == rule
    assert text in finding.text
    assert advice in finding.advice


def test_a_query_that_never_waits_for_its_trigger_is_late() -> None:
    """A program under the hook of `spark-app observe`: six batches of 3.4 s each second are reported as shipped."""
    (finding,) = (
        each for each in diagnose(reader.read(recorded(ALWAYS_LATE, "planted")).app, Thresholds()) if each.stream
    )
    assert finding.rule == "batch_longer_than_trigger"
    assert "took longer than the 1.0 s of its trigger, the longest" in finding.text
    assert finding.numbers["late_batches"] >= 4


@pytest.mark.parametrize("rule", CASES)
def test_a_quiet_twin_hears_nothing(rule: str) -> None:
    """The same query without the cause."""
    assert [finding.text for finding in findings(recorded(rule, "quiet"))] == []


@pytest.mark.parametrize("version", record.VERSIONS)
def test_a_query_that_is_well_hears_nothing_with_any_spark(version: str) -> None:
    """It has few batches."""
    assert [finding.text for finding in findings(of_version(version))] == []


def test_each_rule_has_a_program() -> None:
    """Here, or as a pair of the open truth; and each program here has a rule."""
    names = {rule.name for rule in rules_of(StreamView)}
    assert set(CASES) == set(PROGRAMS) - {ALWAYS_LATE, EVERY_FIELD}
    assert set(CASES) <= names
    assert names - set(CASES) <= {cause for pair in pairs().values() for cause in pair.causes}
