from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.eventlog import reader
from spark_app.eventlog.diagnoses import diagnose
from spark_app.eventlog.diagnoses.judgement import (
    MAX_GROUPS,
    MAX_PLACES,
    FindingGroups,
    duration_of,
    least_cost,
    ranked,
)
from spark_app.eventlog.diagnoses.rule import rules
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.document import StageKey
from spark_app.eventlog.findings import Finding, Place
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.parse.events import QueryProgress
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import DEFAULTS, EVERY_COST
from tests.unit.eventlog.diagnoses.stream_cases import batch
from truth.declared import pairs

MINUTE = 60_000
SMALL: Final = EVERY_COST.changed(unfiltered_partitions=2, unfiltered_bytes=1)
EVENT_LOGS: Final = Path(__file__).parents[3] / "eventlogs"
RECORDED: Final = ("causes", "clusters", "diagnoses", "streaming")


def application(ms: int) -> Application:
    """An application that takes so long."""
    return log.application([log.started(1000), log.ended(1000 + ms)])


def place(stage: int, cost_ms: float, *, query: int | None = None) -> Place:
    """Where a finding about a stage is."""
    return Place(StageKey(stage, 0), query, None, cost_ms)


def spill(stage: int, cost_ms: float | None, **fields: Any) -> Finding:
    """A finding about a stage."""
    numbers = {"disk_spilled_bytes": 7, "longest_task_ms": 9, "gc_ratio": 0.5}
    return Finding("spill", "warning", f"Stage {stage}: spilled", "", numbers, cost_ms, stage=(stage, 0), **fields)


@pytest.mark.parametrize(
    ("minutes", "least"),
    [(1, 5000), (10, 30_000), (60, 180_000), (6000, 180_000)],
    ids=["short", "usual", "long", "days"],
)
def test_a_cause_must_cost_a_share_of_the_application(minutes: int, least: float) -> None:
    """A twentieth; at least five seconds, and at most three minutes are asked for."""
    app = application(minutes * MINUTE)
    assert least_cost(app, DEFAULTS) == least
    assert FindingGroups([spill(1, least)]).ranked(app, DEFAULTS)
    assert not FindingGroups([spill(1, least - 1)]).ranked(app, DEFAULTS)


def test_a_cause_with_a_fifth_of_a_short_application_is_an_info() -> None:
    """No warning, which would raise an alert: it has little to gain. Below a second, runs differ by as much."""
    app = application(12_000)
    assert [each.severity for each in FindingGroups([spill(1, 2400)]).ranked(app, DEFAULTS)] == ["info"]
    assert [each.severity for each in FindingGroups([spill(1, 5000)]).ranked(app, DEFAULTS)] == ["warning"]
    assert not FindingGroups([spill(1, 2399)]).ranked(app, DEFAULTS)
    assert not FindingGroups([spill(1, 999)]).ranked(application(3000), DEFAULTS)


def test_costs_together_are_at_most_the_time_of_the_application() -> None:
    """What comes later claims what is left: the seconds are the same."""
    app = application(MINUTE)
    join = Finding("cross_join", "warning", "Joins", "", {}, 40_000, query=1)
    wait = Finding("cpu_starvation", "warning", "Waits", "", {}, 30_000, stage=(1, 0), subject="host")
    found = FindingGroups([wait, join]).ranked(app, DEFAULTS)
    assert [(each.rule, each.cost_ms, each.cost_ratio) for each in found] == [
        ("cross_join", 40_000, 2 / 3),
        ("cpu_starvation", 20_000, 1 / 3),
    ]
    costs = [(sum(each.cost_ms or 0 for each in findings), length) for length, findings in of_recorded()]
    assert [(cost, length) for cost, length in costs if cost > length + 1] == []


def test_a_late_query_is_a_symptom_of_what_costs_half_as_much_in_its_batches() -> None:
    """The cause comes first, as an info, too; neither that of another query, nor another symptom."""
    late = Finding("batch_longer_than_trigger", "warning", "Late", "", {"late_batches": 9}, 60_000, stream="orders")
    behind = replace(late, rule="falling_behind")
    wait = Finding("external_wait", "info", "Waits", "", {}, 30_000, stage=(1, 0), batch_of="orders")
    assert [each.rule for each in ranked([late, wait, behind])] == [
        "external_wait", "batch_longer_than_trigger", "falling_behind",
    ]  # fmt: skip
    others = (replace(wait, batch_of="visits"), replace(wait, cost_ms=29_000), replace(wait, batch_of=None))
    assert all(ranked([late, each])[0].rule == "batch_longer_than_trigger" for each in others)


def test_places_of_one_cause_are_one_finding_with_the_sum_of_their_costs() -> None:
    """Each alone costs too little; the worst gives the words."""
    app = application(MINUTE)
    (finding,) = FindingGroups([spill(1, 2000), spill(2, 3000), spill(3, 1000)]).ranked(app, DEFAULTS)
    assert (finding.cost_ms, finding.cost_ratio, finding.stage) == (6000, 0.1, (2, 0))
    assert finding.text == "Stage 2: spilled; with 2 more places (stage 1, stage 3)"
    assert finding.places == (place(2, 3000), place(1, 2000), place(3, 1000))
    assert finding.numbers == {"disk_spilled_bytes": 21, "longest_task_ms": 9, "gc_ratio": 0.5, "places": 3}
    assert finding.cost == "about 6.0 s, 10 % of the application"


@cache
def of_recorded() -> list[tuple[float, list[Finding]]]:
    """The durations of recorded applications, and what rules find there, whatever it costs."""
    copied = [pairs()[name].log("planted") for name in ("speculation-dataframe", "large-closure")]
    logs = (*copied, *(file for folder in RECORDED for file in (EVENT_LOGS / folder).glob("*.zst")))
    apps = (reader.read(log).app for log in logs)
    return [(duration_of(app), diagnose.diagnose(app, SMALL)) for app in apps]


def test_what_is_added_is_evidence_of_its_rule() -> None:
    """By what rules find in recorded applications, whatever it costs; each rule that adds up finds something there."""
    known: dict[str, set[str]] = {}
    for _, findings in of_recorded():
        for finding in findings:
            known.setdefault(finding.rule, set()).update(finding.numbers)
    added = [(name, number) for name, rule in rules().items() for number in rule.adds]
    assert [(name, number) for name, number in added if number not in known.get(name, ())] == []


def test_a_cost_has_a_range_if_that_of_a_place_has_one() -> None:
    """A place without a range adds its cost to both ends; no end is beyond the application."""
    app = application(MINUTE)
    ranged = spill(1, 10_000).within((2000, 55_000))
    (finding,) = FindingGroups([ranged, spill(2, 10_000)]).ranked(app, DEFAULTS)
    assert (finding.cost_low_ms, finding.cost_ms, finding.cost_high_ms) == (12_000, 20_000, MINUTE)
    assert finding.cost == "about 20.0 s (12.0 s to 1 min 00 s), 33 % of the application"
    (sure,) = FindingGroups([spill(1, 10_000)]).ranked(app, DEFAULTS)
    assert (sure.cost_low_ms, sure.cost_high_ms) == (None, None)


def test_an_estimate_is_within_its_range() -> None:
    """And no cost is negative."""
    finding = spill(1, 10_000).within((-5.0, 9000))
    assert (finding.cost_low_ms, finding.cost_high_ms) == (0, 10_000)
    assert spill(1, None).within((1, 2)).cost_low_ms is None


def unused(query: int = 7) -> Finding:
    """A cache that nothing reads, without a cost."""
    return Finding("unused_cache", "info", "Query fills a cache", "", stage=(0, 0), query=query)


def test_a_cause_comes_before_what_it_explains() -> None:
    """Though it is an info without a cost; another warning that costs less is behind both."""
    after = [spill(1, 9000, query=7), spill(4, 8000, query=9, cause="other")]
    cause, *others = ranked([after[1], after[0], unused()])
    assert [each.rule for each in (cause, *others)] == ["unused_cache", "spill", "spill"]
    assert [each.because for each in (cause, *others)] == [None, "unused_cache", None]
    assert others[0].text == "Stage 1: spilled; a consequence of unused_cache"


def test_a_finding_elsewhere_is_no_consequence() -> None:
    """Not in the query of the cache; of skew, not in its stage; or only in part."""
    skew = Finding("partition_skew", "warning", "Stage 2: skewed", "", cost_ms=100, stage=(2, 0), query=7)
    places = (place(2, 5000, query=7), place(3, 4000, query=7))
    for cause, found in (
        (unused(), spill(1, 9000, query=8)),
        (skew, spill(1, 9000, query=7)),
        (skew, spill(2, 9000, query=7, places=places)),
    ):
        assert [each.because for each in ranked([cause, found])] == [None, None]
    assert ranked([skew, spill(2, 9000, query=7)])[1].because == "partition_skew"


def test_a_consequence_explains_nothing_itself() -> None:
    """So that each has one cause, and the order is plain."""
    assert {name for rule in rules().values() for name in rule.explains} <= set(rules())
    assert [name for rule in rules().values() for name in rule.explains if rules()[name].explains] == []


def test_other_causes_are_other_findings() -> None:
    """Two paths, of which each costs enough; the more expensive one is first."""
    causes = FindingGroups([spill(1, 6000, cause="a"), spill(2, 7000, cause="b")])
    assert [finding.cause for finding in causes.ranked(application(MINUTE), DEFAULTS)] == ["b", "a"]


def test_nothing_costs_more_than_the_application() -> None:
    """Stages that run at once have costs whose sum may."""
    (finding,) = FindingGroups([spill(1, MINUTE), spill(2, MINUTE)]).ranked(application(MINUTE), DEFAULTS)
    assert (finding.cost_ms, finding.cost_ratio) == (MINUTE, 1.0)


def test_a_rule_without_a_cost_is_not_judged_by_it() -> None:
    """It has a threshold of its own."""
    (finding,) = FindingGroups([spill(1, None)]).ranked(application(MINUTE), DEFAULTS)
    assert (finding.cost_ms, finding.cost_ratio, finding.cost) == (None, None, "")


@pytest.mark.parametrize(
    ("severity", "cost_ms", "judged"),
    [("info", 10, "info"), ("info", 5000, "warning"), ("warning", 10, "warning")],
    ids=["cheap", "costly", "fatal"],
)
def test_failures_are_reported_at_any_cost(severity: Any, cost_ms: float, judged: str) -> None:
    """As a warning where they cost enough, or where a stage failed."""
    failed = Finding("failed_tasks", severity, "", "", {}, cost_ms)
    assert [finding.severity for finding in FindingGroups([failed]).ranked(application(MINUTE), DEFAULTS)] == [judged]


def test_many_places_and_causes_are_bounded() -> None:
    """Errors have many texts, and streams have many batches."""
    causes = FindingGroups(spill(number, 6000, cause=str(number)) for number in range(MAX_GROUPS + 9))
    assert len(causes.ranked(application(MINUTE), DEFAULTS)) == MAX_GROUPS
    (finding,) = FindingGroups(spill(number, number) for number in range(500)).ranked(application(MINUTE), DEFAULTS)
    assert len(finding.places) == MAX_PLACES
    assert finding.text == "Stage 499: spilled; with 499 more places (stage 498, stage 497, stage 496, stage 495, …)"


def test_a_stream_that_waits_for_data_is_no_longer_for_it() -> None:
    """The share is one of the time in which its batches ran."""
    properties = {"sql.streaming.queryId": "q", "streaming.sql.batchId": "0"}
    batch = [log.job(0, [0], time=2000, **properties), log.job_ended(0, time=202_000)]
    app = log.application([log.started(1000), *batch, log.ended(10**9)])
    assert least_cost(app, Thresholds(cost_most_ms=10**9)) == pytest.approx(10_000)


def test_a_stream_that_waits_for_data_takes_no_time_and_one_that_plans_does() -> None:
    """A minute in which a query had one batch, which read offsets for five seconds and ran nothing in Spark."""
    app = application(MINUTE)
    assert duration_of(app) == MINUTE
    progress = batch(0, seconds=6, durations_ms={"triggerExecution": 6000, "addBatch": 1000, "latestOffset": 5000})
    app.streams.progressed(QueryProgress(progress))
    assert duration_of(app) == 5000


def test_periods_of_a_query_are_one_finding() -> None:
    """The worst of them gives the words; levels are not added."""
    numbers = [{"batches": 10, "lag_records": 7}, {"batches": 20, "lag_records": 9}]
    periods = [
        Finding("falling_behind", "warning", "Streaming query orders: x", "", each, cost, stream="orders")
        for each, cost in zip(numbers, (4000, 5000), strict=True)
    ]
    (finding,) = FindingGroups(periods).ranked(application(MINUTE), DEFAULTS)
    assert finding.text == "Streaming query orders: x; the same in 1 other period"
    assert finding.numbers == {"batches": 30, "lag_records": 9, "places": 2}
    assert finding.cost_ms == 9000


def test_the_host_does_not_hide_the_program() -> None:
    """What is about the host comes last, whatever it costs."""
    host = Finding("cpu_starvation", "warning", "", "", {}, 60_000.0, subject="host")
    job, info = Finding("partition_skew", "warning", "", "", {}, 9000.0), Finding("spill", "info", "", "", {}, 70_000.0)
    assert [each.rule for each in ranked([info, host, job])] == ["partition_skew", "spill", "cpu_starvation"]
