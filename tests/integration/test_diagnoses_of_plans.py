"""Each rule about plans fires on a recorded query, and not on a twin of that query."""

from typing import Final

import pytest

from spark_app.eventlog import reader
from spark_app.eventlog.diagnoses.diagnose import of_application, of_query, rules_of
from spark_app.eventlog.diagnoses.judgement import FindingGroups
from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from tests.eventlogs.plans import CASES, Case
from tests.eventlogs.record_diagnoses import PLANS, recorded

LOW: Final = Thresholds(
    cost_ms=0,
    cost_ratio=0,
    small_files=9,
    unfiltered_partitions=5,
    unfiltered_bytes=1000,
    broadcast_bytes=6_000_000,
    broadcast_tiers=((50_000, 1_000_000),),
    cross_join_pairs=1e5,
    python_udf_rows=1000,
)
"""Both twins are under the same thresholds, so low that no case takes minutes."""
RULES: Final = {rule.name for rule in rules_of(QueryView)} | {"repeated_scan", "unused_cache"}


@pytest.fixture(scope="module")
def app() -> Application:
    """The recorded application that ran all cases."""
    return reader.read(recorded(PLANS)).app


@pytest.fixture(scope="module")
def findings(app: Application) -> list[Finding]:
    """What the rules about plans found in it, in each query by itself."""
    of_queries = (of_query(app, query, LOW) for query in app.queries.values())
    places = [*of_queries, [finding for finding in of_application(app, LOW) if finding.rule in RULES]]
    return [finding for found in places for finding in FindingGroups(found).ranked(app, LOW)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rule_fires_only_on_its_case(app: Application, findings: list[Finding], case: Case) -> None:
    """A case has findings of its rule, with evidence and advice, and of no other; its twin has none."""
    of_case = [finding for finding in findings if _description(app, finding) == case.name]
    assert {finding.rule for finding in of_case} == ({case.rule} if case.rule else set())
    assert all(finding.numbers and finding.text and finding.advice for finding in of_case)


def _description(app: Application, finding: Finding) -> str | None:
    if finding.query is not None:
        return app.queries[finding.query].description
    stage = app.stages[finding.stage] if finding.stage else None
    job = app.jobs[stage.job] if stage and stage.job is not None else None
    return job.properties.description if job else None
