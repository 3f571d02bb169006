"""Each rule about plans speaks of a real query that it is about, and of nothing in a twin of that query."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from app.eventlog import reading
from app.eventlog.application import Application
from app.eventlog.diagnoses.diagnose import APPLICATION_RULES, LASTING_RULES, QUERY_RULES, diagnose
from app.eventlog.diagnoses.reading_again import repeated_scan, unused_cache
from app.eventlog.diagnoses.thresholds import Thresholds
from app.eventlog.findings import Finding
from tests.eventlogs.plans import CASES, Case

LOW: Final = Thresholds(
    cost_ms=0,
    small_files=9,
    unfiltered_partitions=5,
    unfiltered_bytes=1000,
    broadcast_bytes=6_000_000,
    broadcast_tiers=((50_000, 1_000_000),),
    cross_join_pairs=1e5,
    python_udf_rows=1000,
    repeated_scan_bytes=1000,
    cache_fill_ms=0,
)
"""Both twins are under the same thresholds, so low that no case takes minutes."""
RULES: Final = {rule.__name__ for rule in (*QUERY_RULES, *LASTING_RULES, repeated_scan, unused_cache)}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Application:
    """What the event log of an application says that ran all cases."""
    folder = tmp_path_factory.mktemp("plans")
    (folder / "events").mkdir()
    command = [sys.executable, "-m", "tests.eventlogs.plans", str(folder)]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr
    return reading.read(folder / "events").app


@pytest.fixture(scope="module")
def findings(app: Application) -> list[Finding]:
    """What the rules about plans found in it."""
    return [finding for finding in diagnose(app, LOW) if finding.rule in RULES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_rule_speaks_of_what_it_is_about_and_of_nothing_else(
    app: Application, findings: list[Finding], case: Case
) -> None:
    """A case has findings of its rule, with evidence and advice, and of no other; its twin has none."""
    of_case = [finding for finding in findings if _description(app, finding) == case.name]
    assert {finding.rule for finding in of_case} == ({case.rule} if case.rule else set())
    assert all(finding.numbers and finding.text and finding.advice for finding in of_case)


def test_each_rule_has_a_case_and_a_twin() -> None:
    """No rule about plans goes untested."""
    assert {case.rule for case in CASES} == RULES | {None}
    assert {repeated_scan, unused_cache} < set(APPLICATION_RULES)


def _description(app: Application, finding: Finding) -> str | None:
    if finding.query is not None:
        return app.queries[finding.query].description
    stage = app.stages[finding.stage] if finding.stage else None
    job = app.jobs[stage.job] if stage and stage.job is not None else None
    return job.properties.description if job else None
