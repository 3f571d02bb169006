"""What happened when: the tree from the run or the application to attempts of stages, and when no task was at work."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from app.eventlog import identity
from app.eventlog.model import Job, Query, StageAttempt
from app.eventlog.streams import Batch
from app.report import amounts, intervals
from app.report.intervals import Interval
from app.report.limits import Limits
from app.report.otlp import Step
from app.report.scope import Scope

Kind = Literal["run", "application", "step", "batch", "query", "job", "stage"]
_NICE_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000)
_NICE_LONG_MS: Final = (300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000)
MOST_TICKS: Final = 10


@dataclass(slots=True)
class Bar:
    """Something that took time; `left` and `width` are percents of the whole; `anchor` leads to more of it."""

    kind: Kind
    label: str
    started: float
    ended: float
    left: float
    width: float
    is_open: bool = False
    has_failed: bool = False
    anchor: str | None = None
    children: "list[Bar]" = field(default_factory=list)
    left_out: int = 0

    @property
    def duration(self) -> float:
        """How long it took, in milliseconds."""
        return self.ended - self.started

    @property
    def is_long(self) -> bool:
        """Whether what is written about it has no room right of it."""
        return self.left + self.width > 86


@dataclass(frozen=True, slots=True)
class Timeline:
    """The tree, the ticks of its axis (percent, milliseconds), and the gaps (left, width in percent, milliseconds)."""

    root: Bar
    ticks: list[tuple[float, float]]
    gaps: list[tuple[float, float, float]]
    shown: int
    total: int


@dataclass(frozen=True, slots=True)
class _Node:
    kind: Kind
    id: int
    parent: int | None
    label: str
    started: float
    ended: float | None
    has_failed: bool = False
    anchor: str | None = None


def timeline(scope: Scope, limits: Limits) -> Timeline:
    """The longest bars with all that they are a part of; what has no parent in scope hangs on the root."""
    nodes = list(_nodes(scope))
    root = _root(scope)
    kept = _kept(nodes, limits.rows)
    bars = {root.id: _bar(root, scope.period)} | {
        node.id: _bar(node, scope.period) for node in nodes if node.id in kept
    }
    for node in sorted(nodes, key=lambda node: (node.started, node.kind != "step", node.id)):
        parent = bars.get(root.id if node.parent is None else node.parent)
        above = parent if parent is not None else bars[root.id]
        if node.id not in kept:
            above.left_out += 1
        elif bars[node.id] is not above:
            above.children.append(bars[node.id])
    return Timeline(
        bars[root.id], _ticks(scope.period.length), _gaps(scope, limits.gaps), len(kept) + 1, len(nodes) + 1
    )


def _nodes(scope: Scope) -> Iterator[_Node]:
    yield from (_step(step) for step in (scope.run.steps if scope.run else []) if step.parent_id is not None)
    yield from (_batch(scope, batch) for batch in scope.batches)
    yield from (_query(scope, query) for query in scope.queries)
    yield from (_job(scope, job) for job in scope.jobs)
    yield from (_stage(scope, stage) for stage in scope.stages)


def _root(scope: Scope) -> _Node:
    if scope.run is not None:
        span, record = scope.run.root, scope.run.record
        has_failed = record is not None and record.outcome != "succeeded"
        identifier = span.span_id if span else 0
        return _Node("run", identifier, None, scope.run.title, scope.period.start, scope.run.ended, has_failed)
    app = scope.app
    place, label = identity.of_application(app), app.name or "application"
    return _Node("application", place.span_id, None, label, scope.period.start, app.ended, bool(app.exit_code))


def _step(step: Step) -> _Node:
    label = step.name.removeprefix("step ")
    return _Node("step", step.span_id, step.parent_id, label, step.started, step.ended, step.has_failed)


def _batch(scope: Scope, batch: Batch) -> _Node:
    place = identity.of_batch(scope.app, batch.key)
    stream = (batch.progress.name if batch.progress else None) or "stream"
    return _Node(
        "batch", place.span_id, place.parent_id, f"{stream}: batch {batch.key.number}", batch.started, batch.ended
    )


def _query(scope: Scope, query: Query) -> _Node:
    place, label = identity.of_query(scope.app, query), f"{query.id}: {query.description}"
    has_failed, anchor = query.error is not None, f"query-{query.id}"
    return _Node("query", place.span_id, place.parent_id, label, query.started, query.ended, has_failed, anchor)


def _job(scope: Scope, job: Job) -> _Node:
    place = identity.of_job(scope.app, job)
    ran = [scope.app.stages[key].info for key in job.ran if key in scope.app.stages]
    site = max(ran, key=lambda info: info.id).name if ran else "all stages skipped"
    label = f"{job.id}: {job.properties.description or site}"
    return _Node("job", place.span_id, place.parent_id, label, job.submitted, job.completed, job.has_failed)


def _stage(scope: Scope, stage: StageAttempt) -> _Node:
    place, info = identity.of_stage(scope.app, stage), stage.info
    attempt = f" (attempt {info.attempt})" if info.attempt else ""
    tasks = f"{len(stage.durations_ms):,}/{info.tasks:,} tasks"
    label, begun = f"{info.id}{attempt}: {info.name}, {tasks}", info.submitted or min(stage.launched, default=None)
    started = scope.period.start if begun is None else begun
    anchor = f"stage-{info.id}-{info.attempt}"
    return _Node(
        "stage", place.span_id, place.parent_id, label, started, info.completed, info.failure is not None, anchor
    )


def _kept(nodes: list[_Node], most: int) -> set[int]:
    """The steps and the longest of the others, each with all that it is a part of."""
    by_id, kept = {node.id: node for node in nodes}, set[int]()
    ranked = sorted(nodes, key=lambda node: (node.kind != "step", not node.has_failed, node.started - _end(node)))
    for node in ranked:
        if len(kept) >= most:
            break
        found: _Node | None = node
        while found is not None and found.id not in kept:
            kept.add(found.id)
            found = by_id.get(found.parent) if found.parent is not None else None
    return kept


def _end(node: _Node) -> float:
    return float("inf") if node.ended is None else node.ended


def _bar(node: _Node, period: Interval) -> Bar:
    ended = period.end if node.ended is None else node.ended
    left = _percent(node.started, period)
    width = max(0.0, _percent(max(node.started, ended), period) - left)
    return Bar(
        kind=node.kind,
        label=amounts.line(node.label),
        started=node.started,
        ended=max(node.started, ended),
        left=left,
        width=width,
        is_open=node.ended is None,
        has_failed=node.has_failed,
        anchor=node.anchor,
    )


def _percent(time: float, period: Interval) -> float:
    if period.length <= 0:
        return 0.0
    return round(min(100.0, max(0.0, (time - period.start) / period.length * 100)), 3)


def _ticks(length: float) -> list[tuple[float, float]]:
    """Where the axis is labelled: round times, at most ten of them."""
    if length <= 0:
        return []
    step = next((step for step in (*_NICE_MS, *_NICE_LONG_MS) if length / step <= MOST_TICKS), length)
    return [(round(tick * step / length * 100, 3), tick * step) for tick in range(int(length / step) + 1)]


def _gaps(scope: Scope, most: int) -> list[tuple[float, float, float]]:
    """The longest times in which no task was at work, in order."""
    found = intervals.gaps(intervals.of_tasks(scope.stages), scope.period)
    longest = sorted(found, key=lambda gap: -gap.length)[:most]
    least = scope.period.length / 2000
    return list(_placed(sorted(gap for gap in longest if gap.length >= least), scope.period))


def _placed(gaps: Iterable[Interval], period: Interval) -> Iterator[tuple[float, float, float]]:
    for gap in gaps:
        left = _percent(gap.start, period)
        yield left, round(_percent(gap.end, period) - left, 3), gap.length
