"""All rules, over a stage attempt, a query or an application that has ended: findings with their evidence.

A rule is a plain function named as its findings; docs/diagnoses.md has a heading for each.
"""

from collections.abc import Callable
from typing import Final

from app.eventlog.application import Application
from app.eventlog.diagnoses import executors, tasks, timeline, troubles
from app.eventlog.diagnoses.stage import StageView
from app.eventlog.diagnoses.thresholds import Thresholds
from app.eventlog.findings import Finding
from app.eventlog.model import Query, StageAttempt

StageRule = Callable[[StageView], Finding | None]
QueryRule = Callable[[Application, Query, Thresholds], list[Finding]]
ApplicationRule = Callable[[Application, Thresholds], list[Finding]]

STAGE_RULES: Final[tuple[StageRule, ...]] = (
    tasks.partition_skew,
    tasks.tiny_tasks,
    tasks.too_few_tasks,
    tasks.huge_partitions,
    troubles.spill,
    troubles.gc_pressure,
    troubles.failed_tasks,
    troubles.retried_stage,
)
QUERY_RULES: Final[tuple[QueryRule, ...]] = ()
APPLICATION_RULES: Final[tuple[ApplicationRule, ...]] = (
    timeline.driver_gap,
    timeline.idle_cores,
    executors.lost_executors,
    executors.memory_over,
    executors.memory_under,
)


def diagnose(app: Application, thresholds: Thresholds) -> list[Finding]:
    """Everything that is found in what has ended, worst first: warnings before infos, then by what they cost."""
    found = of_application(app, thresholds)
    for stage in app.stages.values():
        found += of_stage(app, stage, thresholds)
    for query in app.queries.values():
        found += of_query(app, query, thresholds)
    return sorted(found, key=lambda finding: (finding.severity != "warning", -(finding.cost_ms or 0)))


def of_stage(app: Application, stage: StageAttempt, thresholds: Thresholds) -> list[Finding]:
    """What is found in an attempt of a stage; nothing as long as it is at work."""
    if stage.info.completed is None:
        return []
    view = StageView(app, stage, thresholds)
    found = [rule(view) for rule in STAGE_RULES]
    return [finding for finding in found if finding is not None]


def of_query(app: Application, query: Query, thresholds: Thresholds) -> list[Finding]:
    """What is found in a query; nothing as long as it is at work."""
    if query.ended is None:
        return []
    return [finding for rule in QUERY_RULES for finding in rule(app, query, thresholds)]


def of_application(app: Application, thresholds: Thresholds) -> list[Finding]:
    """What is found in an application as a whole, so far."""
    return [finding for rule in APPLICATION_RULES for finding in rule(app, thresholds)]
