"""Findings that name the hottest line of the user in their stages, or the hottest function, where there are samples."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.formatting import count, share
from spark_app.stack_samples import library_functions
from spark_app.stack_samples.counts import MIN_FUNCTION_SAMPLES, Tally
from spark_app.stack_samples.spark_work import Work
from spark_app.stack_samples.stack_profile import Part, StackProfile, WorkTime

OF_PROGRAM: Final = frozenset({"row_python_udf", "gc_pressure", "collect_to_driver", "driver_gap between"})
"""Rules about code of the program: its hottest line is named; `driver_gap` has a kind of time as its cause."""
OF_SPARK: Final[Mapping[str, tuple[Work, ...]]] = {
    "tiny_tasks": ("deserialization", "class loading", "code generation"),
    "spill": ("sorting", "serialization", "compression"),
    "driver_gap startup": ("class loading", "planning"),
    "driver_gap planning": ("planning", "code generation"),
    "driver_gap between": ("planning", "code generation"),
    "slow_planning": ("planning", "code generation"),
    "batch_overhead": ("planning", "code generation"),
}
"""Rules about work of Spark: that with the most samples is named, with its hottest function."""
OF_DRIVER: Final = ("collect_to_driver", "driver_gap", "slow_planning", "batch_overhead")
"""Rules about what the driver does. The log does not keep when it did, so that all its samples count, of a run
all in its time."""


def named(findings: Sequence[Finding], stacks: StackProfile | None, app: Application) -> list[Finding]:
    """Findings with the hottest line or function as evidence, in their text; others as they are."""
    if stacks is None:
        return [*findings]
    rules = {*OF_DRIVER, *OF_PROGRAM, *OF_SPARK}
    return [_named(each, stacks, app) if each.rule in rules else each for each in findings]


def _named(finding: Finding, stacks: StackProfile, app: Application) -> Finding:
    hottest = "; ".join(filter(None, _hottest(finding, stacks, app)))
    return replace(finding, text=f"{finding.text}; {hottest}") if hottest else finding


def _hottest(finding: Finding, stacks: StackProfile, app: Application) -> Iterator[str]:
    rule = f"{finding.rule} {finding.cause}" if finding.rule == "driver_gap" else finding.rule
    is_of_driver = finding.rule in OF_DRIVER
    part = stacks.of(["driver"] if is_of_driver else _places(finding, app))
    line = _hottest_line(part, "in the driver the" if is_of_driver else "its") if rule in OF_PROGRAM else ""
    yield line
    if rule in OF_SPARK:
        yield _hottest_work(part, OF_SPARK[rule], "samples of the driver" if is_of_driver else "samples")
    if rule == "gc_pressure" and not line:
        yield _hottest_function(part, stacks)


def _places(finding: Finding, app: Application) -> list[tuple[int, int]]:
    return [finding.stage] if finding.stage is not None else _stages(finding, app)


def _stages(finding: Finding, app: Application) -> list[tuple[int, int]]:
    query = None if finding.query is None else app.queries.get(finding.query)
    stages = [] if query is None else app.stages_of(query)
    return [(stage.info.id, stage.info.attempt) for stage in stages]


def _hottest_work(part: Part, works: Iterable[Work], of: str) -> str:
    """The work of Spark with the most samples, its hottest function, and the line that waits for it."""
    known = ((work, part.works[work]) for work in works if work in part.works)
    work, time = max(known, key=lambda item: item[1].total.ms, default=("", WorkTime()))
    if time.total.samples < MIN_FUNCTION_SAMPLES:
        return ""
    waits = f", called by {time.line}" if time.line else ""
    return f"{work} has {_part(time.total, part.shown, of)}, most in {time.function}{waits}"


def _hottest_line(part: Part, whose: str) -> str:
    """The user's function with the most samples; empty if too few have one."""
    function, time = next(iter(part.hottest), (None, None))
    if function is None or time is None or time.innermost.samples < MIN_FUNCTION_SAMPLES:
        return ""
    line = f"{function.name} ({function.file}:{time.line})"
    return f"{whose} hottest line is of {line}, with {_part(time.innermost, part.shown)}"


def _hottest_function(part: Part, stacks: StackProfile) -> str:
    """The function of Spark or a library that most stacks at work end with; empty if too few end with one."""
    hottest = library_functions.hottest(stacks, part, 1)
    return "".join(
        f"its hottest function is {each.label.text}, with {_part(each.itself, part.shown)}" for each in hottest
    )


def _part(tally: Tally, whole: Tally, of: str = "samples") -> str:
    """A share with its interval: `39 % (33 to 45 %) of 476 samples`."""
    low, high = (round(end / whole.ms * 100) for end in tally.interval_ms())
    return f"{share(tally.ms / whole.ms)} ({low} to {min(high, 100)} %) of {count(whole.samples)} {of}"
