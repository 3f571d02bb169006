"""Findings that name the hottest line of the user in their stages, or the hottest function, where there are samples."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.formatting import quantity, share
from spark_app.stack_samples.counts import LEAST, NOTHING, Tally
from spark_app.stack_samples.stack_profile import Label, Part, StackProfile

RULES: Final = frozenset({"row_python_udf", "gc_pressure"})
"""What is about code that samples show."""


def named(findings: Sequence[Finding], stacks: StackProfile | None, app: Application) -> list[Finding]:
    """Findings with the hottest line or function as evidence, in their text; others as they are."""
    if stacks is None:
        return [*findings]
    return [_named(each, stacks, app) if each.rule in RULES else each for each in findings]


def _named(finding: Finding, stacks: StackProfile, app: Application) -> Finding:
    places = [finding.stage] if finding.stage is not None else _stages(finding, app)
    part = stacks.of(places)
    hottest = _hottest_line(part) or (_hottest_function(part, stacks) if finding.rule == "gc_pressure" else "")
    return replace(finding, text=f"{finding.text}; {hottest}") if hottest else finding


def _stages(finding: Finding, app: Application) -> list[tuple[int, int]]:
    query = None if finding.query is None else app.queries.get(finding.query)
    stages = [] if query is None else app.stages_of(query)
    return [(stage.info.id, stage.info.attempt) for stage in stages]


def _hottest_line(part: Part) -> str:
    """The user's function with the most samples; empty if too few have one."""
    function, time = next(iter(part.hottest), (None, None))
    if function is None or time is None or time.innermost.samples < LEAST:
        return ""
    line = f"{function.name} ({function.file}:{time.line})"
    return f"its hottest line is of {line}, with {_part(time.innermost, part.shown)}"


def _hottest_function(part: Part, stacks: StackProfile) -> str:
    """The function that most stacks end with; empty if too few end with one."""
    sums = dict[Label, Tally]()
    for node, tally in part.own.items():
        label = stacks.labels[stacks.nodes[node].label]
        sums[label] = sums.get(label, NOTHING) + tally
    label, tally = _largest(sums.items())
    return f"its hottest function is {label.text}, with {_part(tally, part.shown)}" if tally.samples >= LEAST else ""


def _largest(sums: Iterable[tuple[Label, Tally]]) -> tuple[Label, Tally]:
    return max(sums, key=lambda item: (item[1].ms, item[0].text), default=(Label("root", ""), NOTHING))


def _part(tally: Tally, whole: Tally) -> str:
    """A share with its interval: `39 % (33 to 45 %) of 476 samples`."""
    low, high = (round(end / whole.ms * 100) for end in tally.interval_ms())
    return f"{share(tally.ms / whole.ms)} ({low} to {min(high, 100)} %) of {quantity(whole.samples, 'sample')}"
