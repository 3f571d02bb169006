"""Regular expressions that try very many ways to match a row."""

import re
from collections.abc import Iterator
from typing import Final

from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.model.operators import MAX_TEXT, Operator, has_python, rows_of, rows_through
from spark_app.formatting import count, duration
from spark_app.redaction import excerpt

REST_US: Final = 5.0
"""What a row takes at most in the other operators of such a stage. Source: project."""
MIN_SAVED_RATIO: Final = 0.3
MAX_PATTERN: Final = 120
WILDCARDS: Final = 2
_CALL: Final = re.compile(r"\b(regexp_extract_all|regexp_extract|regexp_replace|regexp_count|RLIKE|rlike)\b")
_END: Final = re.compile(r", -?\d+\)(?: |,|\]|\)|$)|\) (?:AS|AND|OR) |\)\]|\)\)?$")
"""Where a pattern ends: at the number of a group, at a name, or at the next condition."""
_WILDCARD: Final = re.compile(r"(?<!\\)\.[*+](?![+])")
"""`.*` and `.+`, unless possessive."""
_NESTED: Final = re.compile(r"[*+]\)[*+{](?![+])")
"""A group that is repeated and ends with something that is repeated: `(a+)+`."""


@rule(
    limits={
        "regex_row_us": Limit(20.0, "Costly regular expressions: processor µs of a row, at least.", ge=0),
    },
)
def costly_regex(view: QueryView) -> Iterator[Finding]:
    """Regular expressions that try very many ways to match a row.

    An info, since the log does not tell how long an expression takes.

    Evidence: the pattern, the rows, and what each takes.
    Why: with several `.*` in a pattern, Java tries each end of the first with each end of the next; with a repetition
        within a repetition, as of `(a+)+`, the ways double with each character.
    Change: begin with the words that stand before what is wanted, and let a group end at the next separator, by
        `[^ ]*` instead of `.*`.
    Threshold: a pattern with two of `.*` or `.+`, or with a repetition within a repetition, in a stage without Python
        and with {regex_row_us} µs of a processor for each row (project).
    Cost: the run time of the stage without 5 µs for each row, divided by the mean number of running tasks; at least
        three tenths of it (project).
    """
    for operator, pattern in _patterns(view):
        counted = view.counted(operator)
        if counted is None:
            continue
        rows, stages = _rows(operator, counted), view.stages_of(counted)
        if not rows or any(has_python(stage.info) for stage in stages):
            continue
        run_ms = float(sum(stage.totals.run_ms for stage in stages))
        row_us = 1000 * _work_ms(stages) / rows
        if row_us < view.limits.regex_row_us:
            continue
        low, cost = (view.wall_of(ratio * (run_ms - rows * REST_US / 1000), counted) for ratio in (MIN_SAVED_RATIO, 1))
        yield view.finding(
            "costly_regex",
            f"matches {pattern} with each of {count(rows)} rows, in a stage whose tasks took {duration(run_ms)}, "
            f"{count(round(row_us))} µs of a processor a row",
            advice=_advice(pattern),
            operator=operator,
            numbers={"rows": rows, "run_task_ms": run_ms},
            cost_ms=cost,
            severity="info",
            cause=pattern,
        ).within((low, cost))


def _patterns(view: QueryView) -> Iterator[tuple[Operator, str]]:
    """Operators that match a pattern which may try many ways, each with the worst pattern."""
    seen = set[str]()
    for operator in view.planned:
        text = operator.text[: 2 * MAX_TEXT]
        calls = [*_CALL.finditer(text)] if not operator.is_wrapper else []
        found = [_pattern(text[call.end() :]) for call in calls]
        worst = max(found, key=_ways, default="")
        if worst and _ways(worst) >= WILDCARDS and worst not in seen:
            seen.add(worst)
            yield operator, excerpt(worst, MAX_PATTERN)


def _pattern(text: str) -> str:
    """The pattern of a call, by the text behind its name: `(message#0, (.*) took=(.*)ms, 2) AS took#5`."""
    text = text.partition(", ")[2] if text.startswith("(") else text
    end = _END.search(text)
    return text[: end.start() if end else None].strip()


def _ways(pattern: str) -> int:
    """How many parts of a pattern try several ends."""
    return len(_WILDCARD.findall(pattern)) + WILDCARDS * len(_NESTED.findall(pattern))


def _rows(operator: Operator, counted: Operator) -> float:
    """The rows that an operator takes, by its own count or that of the first below which counts."""
    return rows_through(operator) if operator is counted else rows_of(counted) or 0.0


def _work_ms(stages: list[StageAttempt]) -> float:
    """The time of the tasks on a processor; their run time where the log has none."""
    return sum(stage.totals.run_ms if not stage.totals.cpu_ns else stage.totals.cpu_ns / 1e6 for stage in stages)


def _advice(pattern: str) -> str:
    """What makes the pattern try fewer ways."""
    if _NESTED.search(pattern):
        return (
            f"Repeat once in {pattern}: (a+)+ matches what a+ does, and (a+b)* what needs a b at each end; or make the "
            "inner repetition possessive (a++), so that it is not tried again."
        )
    words = next(iter(re.findall(r"\w{2,}=?", re.sub(r"\\\w", " ", pattern))), "")
    first = f" ({words} and what follows)" if words else ""
    return (
        f"Shorten {pattern}: leave out what stands before and behind the group that is wanted{first}, since a match "
        "may begin anywhere, and let the group end at the next separator, by [^ ]* or \\w+ instead of .*."
    )
