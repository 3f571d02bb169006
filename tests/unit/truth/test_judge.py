"""What spark-app finds is said in the words of the vocabulary."""

from pathlib import Path

import msgspec

from spark_app.eventlog.findings import RULES
from truth import judge
from truth.declared import LOGS, pairs, vocabulary
from truth.scores import Output

NO_CAUSES = {
    "failed_application",
    "stopped_driver",
    "huge_partitions",
    "idle_cores",
    "memory_over",
    "memory_under",
    "missing_executors",
    "excluded_executors",
    "lost_executors",
}
"""Rules about a risk, an idle cost or a cluster, for which no run is planted yet; `lost_executors` has another name."""


def test_each_rule_stands_for_a_cause_or_for_none_that_is_planted() -> None:
    """A rule that is added, or renamed, is decided here."""
    assert {
        name for name in RULES if judge.CAUSES.get(name, name) not in vocabulary()
    } == NO_CAUSES - judge.CAUSES.keys()
    assert set(judge.CAUSES) <= set(RULES)
    assert set(judge.CAUSES.values()) <= set(vocabulary())


def test_findings_of_a_log_are_in_the_order_of_the_report(tmp_path: Path) -> None:
    """With the queries and stages that they are about."""
    pair = pairs()["spill-sql"]
    (tmp_path / "spilling.zst").write_bytes((LOGS / f"{pair.run('planted')}.zst").read_bytes())
    output = msgspec.json.decode(judge.output(tmp_path), type=Output)
    (found,) = output.runs["spilling"]
    assert (found.cause, bool(found.place.stages), found.cost_ms is not None) == ("spill", True, True)
    assert found.has_range
