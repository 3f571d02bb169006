"""The documents of the answers: what the report shows of a run, in the keys of its JSON, for an assistant."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from spark_app.annexes.mcp.answers import Document, PagedRows
from spark_app.eventlog.comparison.compare import Cause, Comparison
from spark_app.eventlog.document import StageKey
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model import task_numbers
from spark_app.eventlog.model.entities import Query, StageAttempt
from spark_app.redaction import setting
from spark_app.report import parts, values
from spark_app.report.formatting import line, metric, text
from spark_app.report.limits import Limits
from spark_app.report.results import build, schema
from spark_app.report.scope import Scope
from spark_app.report.sections import queries, stages
from spark_app.report.sections.queries import PlanNode
from spark_app.report.sections.stack_samples import StackSection

EVERYTHING: Final = Limits(tasks=50, operators_of_one=500)
NO_LISTS: Final = Limits(stages=0, tasks=0, queries=0, operators=0, streams=10_000, operations=10_000, points=1)
WORST: Final = 5
MAX_IDS: Final = 50
"""Stages of a query, or that a stage reads from, that are named."""
MAX_ARGUMENTS: Final = 400
"""Characters of the arguments of an operator."""


def document(struct: Any) -> Document:
    """A struct as JSON has it."""
    shown: Document = msgspec.to_builtins(struct)
    return shown


def brief(compared: Comparison | None) -> Document | None:
    """The durations and the largest causes; `compare` has the rest."""
    if compared is None:
        return None
    names = ("before", "runs", "now_ms", "before_ms", "difference_ratio", "is_significant")
    return {name: getattr(compared, name) for name in names} | {
        "causes": [each.text for each in compared.causes[:WORST]]
    }


def cause_row(cause: Cause) -> Document:
    """A cause of a difference, with the names of a few of its settings."""
    return document(cause) | {"settings": [each.name for each in cause.settings[:WORST]] or None}


def stage_row(about: Scope, stage: StageAttempt) -> Document:
    """A stage attempt among others."""
    return document(values.document(parts.Stage, stages.of_attempt(about, stage, NO_LISTS))) | {"started": None}


def query_row(about: Scope, query: Query) -> Document:
    """A query among others."""
    return document(values.document(parts.Query, queries.of_query(about, query, NO_LISTS))) | {"started": None}


def stack_totals(section: StackSection | None) -> Document | None:
    """How many samples of stacks there are, and the program's hottest functions; `stage` has those of each."""
    shown = build.stack_samples(section)
    if shown is None or section is None:
        return None
    places = sorted(shown.places, key=lambda place: -sum(each.samples for each in place.functions))
    hottest = [{"place": place.place, **document(each)} for place in places for each in place.functions[:1]]
    return document(shown) | {"places": None, "hottest_function_of_places": hottest[:WORST]}


def stage_document(
    about: Scope, attempt: StageAttempt, found: list[Finding], stacks: StackSection | None = None
) -> Document:
    """A stage attempt with its tasks, findings, query and samples of stacks."""
    shown = stages.of_attempt(about, attempt, EVERYTHING)
    key = (attempt.info.id, attempt.info.attempt)
    query = about.app.query_of(about.app.job_of(attempt))
    return document(values.document(parts.Stage, shown)) | {
        "attempts": [each.info.attempt for each in about.stages if each.info.id == attempt.info.id],
        "call_site": line(shown.call_site) or None,
        "reads_from_stages": attempt.info.parents[:MAX_IDS],
        "number_of_stages_read_from": len(attempt.info.parents),
        "job": attempt.job,
        "query": query and {"id": query.id, "name": query_row(about, query)["name"]},
        "task_times_ms": shown.task_times and astuple(shown.task_times),
        "task_seconds": _seconds(attempt),
        "findings": [
            {"rule": each.rule, "text": text(each.text), "advice": text(each.advice)}
            for each in found
            if StageKey(*key) in [place.stage for place in each.found_in]
        ][:WORST],
        "stack_samples": _stack_samples(stacks, key),
        "slowest_tasks": PagedRows(shown.slowest, partial(values.document, stages.Task)),
        "failed_killed_or_repeated_tasks": PagedRows(shown.troubled, partial(values.document, stages.Task)),
    }


def _stack_samples(section: StackSection | None, key: tuple[int, int]) -> schema.PlaceSamples | None:
    row = next((row for row in section.rows if row.place == key), None) if section else None
    return build.place_samples(section, row) if section and row else None


def _seconds(attempt: StageAttempt) -> Document | None:
    return task_numbers.seconds(attempt.totals) if attempt.shuffle_read_bytes else None  # else no task has metrics


def query_document(about: Scope, query: Query) -> Document:
    """A query with its plan."""
    shown = queries.of_query(about, query, EVERYTHING)
    ran = list(dict.fromkeys(each.info.id for each in about.app.stages_of(query)))
    return document(values.document(parts.Query, shown)) | {
        "writes_to": query.target and line(query.target.name),
        "stages": ran[:MAX_IDS],
        "number_of_stages": len(ran),
        "remark": shown.note and line(shown.note),
        "settings": PagedRows([*query.settings.items()], lambda item: f"{line(item[0])}={line(setting(*item))}"),
        "operators": PagedRows([*_operators(shown.nodes or [])]),
    }


def _operators(nodes: list[PlanNode]) -> Iterator[Mapping[str, Any]]:
    for node in nodes:
        arguments = node.text.removeprefix(node.name).strip()
        yield {
            "depth": node.depth,
            "name": line(node.name),
            "arguments": text(arguments, MAX_ARGUMENTS) or None,
            "numbers": {line(name): metric(number) for name, number in node.metrics} or None,
        }
