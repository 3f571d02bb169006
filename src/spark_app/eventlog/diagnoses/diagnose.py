"""Applies all rules to a stage attempt, a query or an application that has ended, and to batches of a stream.

A rule is a plain function with the name of its findings. Its decorator and its docstring declare it, and
`scripts/document_rules.py` makes docs/diagnoses.md of that. What the rules find in single places is judged together:
`judgement`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, Final

from spark_app.eventlog.diagnoses import (
    collected_rows,
    exclusions,
    executors,
    external_wait,
    failure,
    files,
    joins,
    missing_caches,
    missing_executors,
    multiplied_rows,
    planning,
    processors,
    python_udfs,
    repeated_reads,
    slow_storage,
    speculation,
    spill_and_failures,
    stream_state,
    streams,
    tasks,
    timeline,
)
from spark_app.eventlog.diagnoses.judgement import FindingGroups
from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.stage import StageView
from spark_app.eventlog.diagnoses.stream import StreamView, view
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding, Place
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import Query, StageAttempt
from spark_app.eventlog.model.stream_queries import StreamQuery
from spark_app.eventlog.model.stream_samples import StreamSample

StageRule = Callable[[StageView], Finding | None]
QueryRule = Callable[[QueryView], Iterator[Finding]]
StreamRule = Callable[[StreamView], Finding | None]
ApplicationRule = Callable[[Application, Thresholds], list[Finding]]

STAGE_RULES: Final[tuple[StageRule, ...]] = (
    tasks.partition_skew,
    tasks.tiny_tasks,
    tasks.too_few_tasks,
    tasks.huge_partitions,
    spill_and_failures.spill,
    spill_and_failures.gc_pressure,
    spill_and_failures.failed_tasks,
    spill_and_failures.retried_stage,
    processors.cpu_starvation,
    external_wait.external_wait,
    slow_storage.slow_storage,
)
QUERY_RULES: Final[tuple[QueryRule, ...]] = (
    files.small_files_read,
    files.small_files_written,
    files.partition_filter_missing,
    joins.large_broadcast,
    joins.sort_merge_join_could_broadcast,
    joins.cross_join,
    python_udfs.row_python_udf,
    multiplied_rows.explode,
)
STREAM_RULES: Final[tuple[StreamRule, ...]] = (
    streams.batch_longer_than_trigger,
    streams.falling_behind,
    streams.stalled_watermark,
    streams.tiny_batches,
    streams.batch_overhead,
    stream_state.growing_state,
    stream_state.skewed_state,
    stream_state.many_state_partitions,
)
EARLY_RULES: Final[tuple[StreamRule, ...]] = (streams.batch_longer_than_trigger,)
"""Those that also judge fewer batches than `stream_batches`: long batches are few."""
MOST: Final = 5
"""How many findings of one rule a query has at most: programs can generate plans with thousands of operators."""
APPLICATION_RULES: Final[tuple[ApplicationRule, ...]] = (
    failure.failed_application,
    failure.stopped_driver,
    timeline.driver_gap,
    collected_rows.collect_to_driver,
    planning.slow_planning,
    timeline.idle_cores,
    speculation.speculation,
    executors.lost_executors,
    missing_executors.missing_executors,
    exclusions.excluded_executors,
    executors.memory_over,
    executors.memory_under,
    repeated_reads.repeated_scan,
    missing_caches.missing_cache,
    repeated_reads.evicted_cache,
    repeated_reads.unused_cache,
)


def diagnose(
    app: Application, thresholds: Thresholds, covers: Callable[[Place], bool] = lambda _: True
) -> list[Finding]:
    """A finding for each cause that costs enough, in an application, its ended stages and queries, and its streams.

    The failure of the application comes first, then warnings, then what costs most.

    Args:
        app: The application.
        thresholds: The thresholds of the rules.
        covers: Whether a place counts; a run in an application leaves out those of the other runs.
    """
    findings = [finding for finding in _in_places(app, thresholds) if covers(finding.place)]
    return app.failed_parts.get(
        "ranking of findings", lambda: FindingGroups(findings).ranked(app, thresholds), findings
    )


def _in_places(app: Application, thresholds: Thresholds) -> Iterator[Finding]:
    """The findings about single places, not judged by cost yet."""
    yield from of_application(app, thresholds)
    for stage in app.stages.values():
        yield from of_stage(app, stage, thresholds)
    for query in app.queries.values():
        yield from of_query(app, query, thresholds)
    for stream in app.streams.queries.values():
        yield from of_stream(app, stream, stream.history.all, thresholds)


def of_stage(app: Application, stage: StageAttempt, thresholds: Thresholds) -> list[Finding]:
    """The findings about an attempt of a stage, not judged by cost yet; none while it runs."""
    if stage.info.completed is None:
        return []
    view = StageView(app, stage, thresholds)
    return _found(app, (partial(rule, view) for rule in STAGE_RULES))


def of_query(app: Application, query: Query, thresholds: Thresholds) -> list[Finding]:
    """The findings about a query, not judged by cost yet; none while it runs."""
    if query.ended is None:
        return []
    view = QueryView(app, query, thresholds)
    return _found(app, (partial(rule, view) for rule in QUERY_RULES), most=MOST)


def of_stream(
    app: Application, stream: StreamQuery, samples: Sequence[StreamSample], thresholds: Thresholds
) -> list[Finding]:
    """The findings about some batches of a streaming query, not judged by cost yet."""
    batches = view(app, stream, samples, thresholds)
    if batches is None:
        return []
    is_early = batches.total.batches < thresholds.stream_batches
    return _found(app, (partial(rule, batches) for rule in (EARLY_RULES if is_early else STREAM_RULES)))


def of_application(app: Application, thresholds: Thresholds) -> list[Finding]:
    """The findings about an application as a whole, by the events so far, not judged by cost yet."""
    return _found(app, (partial(rule, app, thresholds) for rule in APPLICATION_RULES))


def _found(app: Application, rules: "Iterable[partial[Any]]", most: int | None = None) -> list[Finding]:
    """The findings of rules about one place, at most some of each; a rule that raises has none, and a remark."""
    of_rules = (app.failed_parts.get(f"rule {rule.func.__name__}", partial(_list, rule, most), []) for rule in rules)
    return list(chain.from_iterable(of_rules))


def _list(rule: "partial[Any]", most: int | None) -> list[Finding]:
    found: Finding | Iterable[Finding] | None = rule()
    return [found] if isinstance(found, Finding) else list(islice(found or (), most))
