"""A rule that raises costs a remark with its name, and no finding of another rule."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.eventlog.diagnoses import diagnose
from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import Rule, rules
from spark_app.eventlog.diagnoses.stage import StageView
from spark_app.eventlog.diagnoses.stream import StreamView
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.failed_parts import FailedParts
from spark_app.eventlog.reader import read, remarks

LOGS: Final = Path(__file__).parents[3] / "eventlogs"
LOG_OF: Final[dict[type, str]] = {
    StageView: "causes/spill-planted.zst",
    QueryView: "causes/small_files_read-planted.zst",
    StreamView: "streaming/many_state_partitions-planted.zst",
    Application: "causes/spill-planted.zst",
}
"""Where each kind of rule has something to judge."""
KEEN: Final = Thresholds(cost_ms=0, cost_ratio=0)


@pytest.fixture(scope="module")
def applications() -> dict[str, Application]:
    """The applications of the logs."""
    return {log: read(LOGS / log).app for log in set(LOG_OF.values())}


def keys(findings: list[Finding]) -> set[tuple[str, str]]:
    """Rule and place of each finding."""
    return {(finding.rule, str(finding.place)) for finding in findings}


@pytest.mark.parametrize("rule", rules().values(), ids=rules())
def test_a_rule_that_raises_hurts_no_other(
    applications: dict[str, Application], monkeypatch: pytest.MonkeyPatch, rule: Rule
) -> None:
    """Also one that raises after its first finding; the remark says class, place and version."""
    app, name = applications[LOG_OF[rule.view]], rule.name
    before = keys(diagnose.diagnose(app, KEEN))
    app.failed_parts = FailedParts()

    def raising(*_: Any) -> Iterator[Finding]:
        yield Finding(name, "info", "before it raises", "")
        raise LookupError("of its own")

    raising.__name__ = name
    broken = replace(rule, check=raising)
    instead = [broken if each is rule else each for each in diagnose.rules_of(rule.view)]
    real = diagnose.rules_of
    monkeypatch.setattr(diagnose, "rules_of", lambda view: instead if view is rule.view else real(view))
    after = keys(diagnose.diagnose(app, KEEN))
    assert {key for key in before if key[0] != name} <= after
    assert name not in {rule for rule, _ in after}
    (remark,) = app.failed_parts.remarks
    assert f"the rule {name} raised LookupError at {Path(__file__).name}:" in remark
    assert remark.startswith("A bug of spark-app 0.")


def test_what_a_rule_raised_is_a_remark_of_the_log() -> None:
    """Where the page, the document and the terminal show what a reader must know."""
    reading = read(LOGS / "causes" / "spill-planted.zst")
    reading.app.failed_parts.get("rule x", lambda: 1 // 0, 0)
    (remark,) = (each for each in reading.remarks if "rule x" in each)
    assert "ZeroDivisionError" in remark
    assert list(remarks(reading.app, reading.read_errors, 0)) == reading.remarks
