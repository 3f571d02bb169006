"""The work that took most of the time and that no finding explains: where it is, and what it costs a row."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct

from spark_app.eventlog.document import Count, Name, StageKey
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.model.occupancy import Kind
from spark_app.eventlog.model.operators import PYTHON, Operator, plan_of, python_functions, value
from spark_app.eventlog.model.plan_names import PYTHON_TIMES
from spark_app.eventlog.model.repeated_reads import ran_in
from spark_app.eventlog.model.stage_groups import group_of
from spark_app.formatting import count, duration, share
from spark_app.redaction import excerpt
from spark_app.report.scope import Scope, stage_name
from spark_app.report.sections.stack_samples import hottest
from spark_app.report.values import whole
from spark_app.stack_samples.stack_profile import StackProfile

MIN_RATIO: Final = 0.2
"""Work with a smaller share of the duration, beyond what findings claim of it, is not named. Source: project."""
LEAST_START_MS: Final = 10_000
"""A shorter time before the first query is the start of Spark, also on a slow host. Source: project."""
DRIVER: Final[Mapping[Kind, str]] = {
    "startup": "the driver, before the first query or job",
    "planning": "the driver, within queries and jobs: it plans, lists and commits files",
    "between": "the driver, between queries and jobs",
    "ending": "the driver, after the last query or job",
}
OF_DRIVER: Final[Mapping[str, tuple[Kind, ...]]] = {
    "driver_gap": tuple(DRIVER),
    "collect_to_driver": ("between", "ending"),
    "slow_planning": ("startup", "planning", "between"),
}
"""The rules whose findings claim time of the driver, and the kinds of it; a driver gap is of the kind of its cause."""
MAX_FUNCTIONS: Final = 3
MAX_NAME: Final = 60
Key = tuple[int, int]


class HotShare(Struct):
    """A function of the program, with the share of the time of a stage in which it is the innermost one of these."""

    name: Name
    file: Name
    line: Count | None
    ratio: float


class Unexplained(Struct):
    """Stages with the same work, or the driver, while no task runs.

    Attributes:
        name: What they do, with the line of the program.
        stage: The longest of them; None of the driver.
        stages: How many there are.
        wall_ms, ratio: Their share of the time in which tasks ran, and that as a share of the duration.
        claimed_ms: What findings say that changes of it would save.
        rows: What they read, of files or of a shuffle; None where Spark counts none.
        row_us: Microseconds of task time for each of these rows.
        functions: The functions of the program with most of the samples of that stage; empty without samples.
        python: The Python functions that the operators of that stage call, by the plan; one without a name is
            `<lambda>`.
        python_ms: What its tasks spent in them; None where Spark does not measure it.
    """

    name: Name
    stage: StageKey | None
    stages: Count
    wall_ms: Count
    ratio: float
    claimed_ms: Count
    rows: Count | None = None
    row_us: float | None = None
    functions: list[HotShare] = []
    python: list[Name] = []
    python_ms: Count | None = None

    def __str__(self) -> str:
        """A sentence: `show at job.py:7 [csv > shuffle]: 61 % of the time (11.5 s), 300,000 rows, 54 µs each`."""
        several = f", {count(self.stages)} stages" if self.stages > 1 else ""
        return f"{self.name}{several}: {', '.join(self._parts())}"

    def _parts(self) -> Iterator[str]:
        yield f"{share(self.ratio)} of the time ({duration(self.wall_ms)})"
        if self.rows is not None and self.row_us is not None:
            yield f"{count(self.rows)} rows, {count(round(self.row_us))} µs of a task each"
        if self.python:
            took = "" if self.python_ms is None else f" for {duration(self.python_ms)} of tasks"
            yield f"calls {' and '.join(self.python)} in Python{took}"
        for function in self.functions:
            line = f":{function.line}" if function.line else ""
            yield f"{share(function.ratio)} in {function.name} ({function.file}{line})"


def unexplained(scope: Scope, findings: Sequence[Finding], stacks: StackProfile | None) -> list[Unexplained]:
    """The work with at least a fifth of the time that findings about the program or its data do not claim, most first.

    What the host adds to the time of work does not explain it.
    """
    groups = defaultdict[str, list[StageAttempt]](list)
    for stage in scope.stages:
        groups[group_of(scope.app, stage)].append(stage)
    owners = [_owner(scope, stages, findings, stacks) for stages in groups.values()]
    found = [*filter(None, owners), *_of_driver(scope, findings)]
    return sorted(found, key=lambda owner: -owner.wall_ms)


def _of_driver(scope: Scope, findings: Sequence[Finding]) -> Iterator[Unexplained]:
    """The time without a task of a whole program, unless a user may have typed, or a stream waited for data."""
    app, whole_ms = scope.app, scope.period.length
    if scope.run is not None or not whole_ms or not app.is_whole or not app.is_batch or app.batches:
        return
    for kind, name in DRIVER.items():
        ms = app.task_free.sums.get(kind, 0)
        claimed_ms = sum(finding.cost_ms or 0.0 for finding in findings if _is_of(finding, kind))
        least = max(MIN_RATIO * whole_ms, LEAST_START_MS if kind == "startup" else 0)
        if ms - claimed_ms >= least:
            claimed = whole(claimed_ms) or 0
            yield Unexplained(name, stage=None, stages=0, wall_ms=ms, ratio=ms / whole_ms, claimed_ms=claimed)


def _is_of(finding: Finding, kind: Kind) -> bool:
    return kind in OF_DRIVER.get(finding.rule, ()) and (finding.rule != "driver_gap" or finding.cause == kind)


def _owner(
    scope: Scope, stages: Sequence[StageAttempt], findings: Sequence[Finding], stacks: StackProfile | None
) -> Unexplained | None:
    task_ms = sum(map(_task_ms, stages))
    wall_ms, whole_ms = scope.occupancy.utilization.wall_of(task_ms) or 0.0, scope.period.length
    least = MIN_RATIO * whole_ms
    if not whole_ms or wall_ms < least:
        return None
    claimed_ms = _claimed_ms(scope, stages, findings)
    if wall_ms - claimed_ms < least:
        return None
    longest = max(stages, key=_task_ms)
    rows = sum(stage.totals.input_records or stage.totals.shuffle_read_records for stage in stages)
    key = (longest.info.id, longest.info.attempt)
    calls = list(_python_operators(scope, longest))
    times = [ms for operator in calls if (ms := value(operator, *PYTHON_TIMES)) is not None]
    return Unexplained(
        name=stage_name(scope, longest),
        stage=StageKey(*key),
        stages=len(stages),
        wall_ms=whole(wall_ms) or 0,
        ratio=wall_ms / whole_ms,
        claimed_ms=whole(claimed_ms) or 0,
        rows=rows or None,
        row_us=1000 * task_ms / rows if rows else None,
        functions=_functions(stacks, key),
        python=list(dict.fromkeys(excerpt(name, MAX_NAME) for each in calls for name in python_functions(each))),
        python_ms=whole(sum(times)) if times else None,
    )


def _python_operators(scope: Scope, stage: StageAttempt) -> Iterator[Operator]:
    """The operators that called Python in a stage; none where the log has no plan."""
    query = scope.app.query_of(scope.app.job_of(stage))
    if query is None:
        return
    with suppress(ValueError):
        for _, operator in plan_of(query, scope.app.numbers).root.walk():
            if PYTHON.search(operator.name) and ran_in(operator, stage):
                yield operator


def _task_ms(stage: StageAttempt) -> float:
    return float(sum(stage.durations_ms))


def _claimed_ms(scope: Scope, stages: Sequence[StageAttempt], findings: Sequence[Finding]) -> float:
    """What findings about the program or its data claim of some stages, or of the queries that these belong to."""
    keys = {StageKey(stage.info.id, stage.info.attempt) for stage in stages}
    queries = {query.id for stage in stages if (query := scope.app.query_of(scope.app.job_of(stage)))}
    claims = (
        finding.cost_ms or 0.0
        for finding in findings
        if finding.subject != "host"
        and any(place.stage in keys or place.query in queries for place in finding.found_in)
    )
    return sum(claims)


def _functions(stacks: StackProfile | None, key: Key) -> list[HotShare]:
    part = stacks.parts.get(key) if stacks is not None else None
    hot = [] if part is None else hottest({key: part})
    return [
        HotShare(each.function.name, each.function.file, each.time.line or None, each.share)
        for each in hot[:MAX_FUNCTIONS]
        if each.share is not None
    ]
