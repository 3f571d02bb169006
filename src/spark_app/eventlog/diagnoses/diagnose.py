"""Applies all rules to a stage attempt, a query or an application that has ended, and to batches of a stream.

A rule is a plain function with the name of its findings, in a module of its own in `rules`. Its decorator and its
docstring declare it, and `scripts/document_rules.py` makes docs/diagnoses.md and more of that. What the rules find in
single places is judged together: `judgement`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain, islice
from typing import Any

from spark_app.eventlog.diagnoses.judgement import FindingGroups
from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import MAX_FINDINGS, Rule, rules
from spark_app.eventlog.diagnoses.stage import StageView
from spark_app.eventlog.diagnoses.stream import StreamView, view
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding, Place
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import Query, StageAttempt
from spark_app.eventlog.model.stream_queries import StreamQuery
from spark_app.eventlog.model.stream_samples import StreamSample


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
    return _found(app, thresholds, rules_of(StageView), StageView(app, stage, thresholds))


def of_query(app: Application, query: Query, thresholds: Thresholds) -> list[Finding]:
    """The findings about a query, not judged by cost yet; none while it runs."""
    if query.ended is None:
        return []
    return _found(app, thresholds, rules_of(QueryView), QueryView(app, query, thresholds))


def of_stream(
    app: Application, stream: StreamQuery, samples: Sequence[StreamSample], thresholds: Thresholds
) -> list[Finding]:
    """The findings about some batches of a streaming query, not judged by cost yet."""
    batches = view(app, stream, samples, thresholds)
    if batches is None:
        return []
    is_early = batches.total.batches < thresholds.stream_batches
    asked = [each for each in rules_of(StreamView) if each.judges_few_batches or not is_early]
    return _found(app, thresholds, asked, batches)


def of_application(app: Application, thresholds: Thresholds) -> list[Finding]:
    """The findings about an application as a whole, by the events so far, not judged by cost yet."""
    return _found(app, thresholds, rules_of(Application), app, thresholds)


@cache
def rules_of(view: type) -> tuple[Rule, ...]:
    """The rules that judge a view, or an application, in the order of their names."""
    return tuple(each for each in rules().values() if each.view is view)


def _found(app: Application, thresholds: Thresholds, asked: Iterable[Rule], *about: Any) -> list[Finding]:
    """The findings of rules about one place; a rule that raises has none, and a remark."""
    of_rules = (
        app.failed_parts.get(f"rule {each.name}", partial(_list, each, thresholds, about), []) for each in asked
    )
    return list(chain.from_iterable(of_rules))


def _list(rule: Rule, thresholds: Thresholds, about: Iterable[Any]) -> list[Finding]:
    """What a rule finds, of a query at most some of it, with what is declared of the rule."""
    found: Finding | Iterable[Finding] | None = rule.check(*about)
    most = MAX_FINDINGS if rule.view is QueryView else None
    findings = [found] if isinstance(found, Finding) else islice(found or (), most)
    values = thresholds.of(rule)
    return [replace(finding, subject=rule.subject, limits=values) for finding in findings]
