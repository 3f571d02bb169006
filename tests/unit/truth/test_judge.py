"""What spark-app finds is said in the words of the vocabulary."""

from pathlib import Path

import msgspec

from spark_app.eventlog.diagnoses.rule import rules
from truth import judge
from truth.declared import LOGS, pairs, vocabulary
from truth.scores import Output

KINDS_OF_SKEW = {"skewed_key", "skewed_join", "unsplittable_file"}
"""Causes that are more exact than what `partition_skew` says."""
WITHOUT_A_PAIR = {
    "excluded_executors", "failed_application", "huge_partitions", "idle_cores", "memory_over", "memory_under",
    "missing_executors", "stopped_driver",
}  # fmt: skip
"""Rules of clusters, and of what cost nothing: `tests/integration/test_diagnoses_of_stages.py` and of clusters."""


def test_each_cause_that_is_planted_has_a_rule() -> None:
    """So a rule that is renamed is found here."""
    said = {rule.cause or name for name, rule in rules().items()}
    assert set(vocabulary()) - said == KINDS_OF_SKEW
    assert {rule.cause for rule in rules().values() if rule.cause} <= set(vocabulary())


def test_each_rule_has_a_pair() -> None:
    """A program with its cause and a quiet twin; but for those that recorded applications of the tests prove."""
    planted = {cause for pair in pairs().values() for cause in pair.causes}
    planted |= {kind for cause in planted if (kind := vocabulary()[cause].get("is_a"))}
    without = {name for name, rule in rules().items() if (rule.cause or name) not in planted}
    assert without == WITHOUT_A_PAIR


def test_findings_of_a_log_are_in_the_order_of_the_report(tmp_path: Path) -> None:
    """With the queries and stages that they are about."""
    pair = pairs()["spill-sql"]
    (tmp_path / "spilling.zst").write_bytes((LOGS / f"{pair.run('planted')}.zst").read_bytes())
    output = msgspec.json.decode(judge.output(tmp_path), type=Output)
    (found,) = output.runs["spilling"]
    assert (found.cause, bool(found.place.stages), found.cost_ms is not None) == ("spill", True, True)
    assert found.has_range
