"""All rules, over a stage attempt, a query or an application that has ended: findings with their evidence.

A rule is a plain function named as its findings; docs/diagnoses.md has a heading for each.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from app.eventlog.application import Application
from app.eventlog.diagnoses import executors, files, joins, python_udfs, reading_again, tasks, timeline, troubles
from app.eventlog.diagnoses.query import QueryView
from app.eventlog.diagnoses.stage import StageView
from app.eventlog.diagnoses.thresholds import Thresholds
from app.eventlog.findings import Finding
from app.eventlog.model import Query, StageAttempt

StageRule = Callable[[StageView], Finding | None]
QueryRule = Callable[[QueryView], Iterator[Finding]]
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
QUERY_RULES: Final[tuple[QueryRule, ...]] = (
    files.small_files_read,
    files.partition_filter_missing,
    joins.large_broadcast,
    joins.sort_merge_join_could_broadcast,
    joins.cross_join,
    python_udfs.row_python_udf,
)
LASTING_RULES: Final[tuple[QueryRule, ...]] = (files.small_files_written,)
"""Rules about what costs only later, however short the query was."""
MOST: Final = 5
"""How many findings of a rule a query has: plans are generated, too."""
APPLICATION_RULES: Final[tuple[ApplicationRule, ...]] = (
    timeline.driver_gap,
    timeline.idle_cores,
    executors.lost_executors,
    executors.memory_over,
    executors.memory_under,
    reading_again.repeated_scan,
    reading_again.unused_cache,
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
    """What is found in a query; nothing as long as it is at work. One that took less than `cost_ms` costs no more."""
    if query.ended is None:
        return []
    view = QueryView(app, query, thresholds)
    rules = LASTING_RULES if view.is_cheap(view.wall_ms) else (*QUERY_RULES, *LASTING_RULES)
    return [finding for rule in rules for finding in islice(rule(view), MOST)]


def of_application(app: Application, thresholds: Thresholds) -> list[Finding]:
    """What is found in an application as a whole, so far."""
    return [finding for rule in APPLICATION_RULES for finding in rule(app, thresholds)]
