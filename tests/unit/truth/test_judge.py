"""What spark-app finds is said in the words of the vocabulary."""

from pathlib import Path

import msgspec

from spark_app.eventlog.findings import RULES
from truth import judge
from truth.declared import LOGS, pairs, vocabulary
from truth.scores import Output

KINDS_OF_SKEW = {"skewed_key", "skewed_join", "unsplittable_file"}
"""Causes that are more exact than what `partition_skew` says."""


def test_each_cause_that_is_planted_has_a_rule() -> None:
    """So a rule that is renamed is found here; one that is added needs no cause, until a run of it is planted."""
    said = {judge.CAUSES.get(name, name) for name in RULES}
    assert set(vocabulary()) - said == KINDS_OF_SKEW
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
