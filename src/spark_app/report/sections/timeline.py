"""The waterfall: run or application, steps, batches, queries, jobs and stage attempts; and when no task ran."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import starmap
from typing import Final, Literal

from spark_app.eventlog import span_ids, spans
from spark_app.eventlog.model import work_names
from spark_app.eventlog.model.entities import Job, Query, StageAttempt
from spark_app.eventlog.model.outcome import BAD, ending_of
from spark_app.eventlog.model.stage_groups import flow_of
from spark_app.eventlog.model.streams import Batch
from spark_app.report import formatting
from spark_app.report.intervals import Interval
from spark_app.report.limits import Limits
from spark_app.report.scope import Scope, scheduling, stage_name
from spark_app.telemetry.run_files_reader import StepSpan
from spark_app.vocabulary import names

Kind = Literal["run", "application", "step", "batch", "session", "operation", "query", "job", "stage"]
PARTS: Final = ("step", "batch", "session", "operation")

_NICE_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000)
_DAYS_MS: Final = tuple(days * 86_400_000 for days in (2, 5, 10, 20, 50, 100))
_NICE_LONG_MS: Final = (
    300_000,
    600_000,
    1_800_000,
    3_600_000,
    7_200_000,
    21_600_000,
    43_200_000,
    86_400_000,
    *_DAYS_MS,
)
_ROOM_AFTER: Final = 86
MAX_TICKS: Final = 10


@dataclass(frozen=True, slots=True)
class TimelineNode:
    """Something that took time, and the id of its parent; times in milliseconds, `ended` None while it runs."""

    kind: Kind
    id: int
    parent: int | None
    label: str
    started: float
    ended: float | None
    has_failed: bool = False
    anchor: str | None = None


@dataclass(slots=True)
class Bar:
    """A node as drawn: `left` and `width` in percent of the axis; `anchor` is the id of its details in the page."""

    id: int
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
        """From its start to its end, in milliseconds."""
        return self.ended - self.started

    @property
    def has_parts(self) -> bool:
        """Whether steps, batches or what clients asked for are below it, or it is the whole."""
        return self.kind in ("run", "application") or any(child.kind in PARTS for child in self.children)

    @property
    def label_side(self) -> str:
        """Where its duration fits: after the bar, before it, or else within."""
        if self.left + self.width <= _ROOM_AFTER:
            return "after"
        return "before" if self.left >= 100 - _ROOM_AFTER else "within"


@dataclass(frozen=True, slots=True)
class Timeline:
    """The tree of bars; ticks of the axis (percent, milliseconds); gaps (left and width in percent, milliseconds)."""

    root: Bar
    ticks: list[tuple[float, float]]
    gaps: list[tuple[float, float, float]]
    shown: int
    total: int


def timeline(scope: Scope, limits: Limits) -> Timeline:
    """The longest bars with all their ancestors; a bar whose parent is not in scope hangs on the root."""
    nodes = list(_nodes(scope))
    by_id = {node.id: node for node in nodes}
    root = _root(scope)
    kept = _kept(nodes, limits.rows)
    bars = {root.id: _bar(root, scope.period)} | {
        node.id: _bar(node, scope.period) for node in nodes if node.id in kept
    }
    for node in sorted(nodes, key=lambda node: (node.started, node.kind != "step", node.id)):
        parent = bars[_nearest_ancestor(node, by_id, bars, root.id)]
        if node.id in kept:
            parent.children.append(bars[node.id])
        else:
            parent.left_out += 1
    return Timeline(bars[root.id], ticks(scope.period.length), _gaps(scope, limits.gaps), len(kept) + 1, len(nodes) + 1)


def _kept(nodes: list[TimelineNode], most: int) -> set[int]:
    """The steps, the failed nodes and the longest of the rest, each with all its ancestors."""
    by_id, kept = {node.id: node for node in nodes}, set[int]()
    ranked = sorted(nodes, key=lambda node: (node.kind != "step", not node.has_failed, node.started - _end(node)))
    for node in ranked:
        if len(kept) >= most:
            break
        ancestor: TimelineNode | None = node
        while ancestor is not None and ancestor.id not in kept:
            kept.add(ancestor.id)
            ancestor = by_id.get(ancestor.parent) if ancestor.parent is not None else None
    return kept


def _nearest_ancestor(node: TimelineNode, by_id: Mapping[int, TimelineNode], bars: Mapping[int, Bar], root: int) -> int:
    """The nearest ancestor that is drawn."""
    parent = node.parent
    while parent is not None and parent not in bars:
        parent = by_id[parent].parent if parent in by_id else None
    return root if parent is None or parent == node.id else parent


def _end(node: TimelineNode) -> float:
    return float("inf") if node.ended is None else node.ended


def _bar(node: TimelineNode, period: Interval) -> Bar:
    ended = period.end if node.ended is None else node.ended
    left = _percent(node.started, period)
    width = max(0.0, _percent(max(node.started, ended), period) - left)
    return Bar(
        id=node.id,
        kind=node.kind,
        label=formatting.line(node.label),
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


def ticks(length: float, most: int = MAX_TICKS) -> list[tuple[float, float]]:
    """Round times along an axis (percent, milliseconds), at most so many and the last."""
    if length <= 0:
        return []
    fitting = (step for step in (*_NICE_MS, *_NICE_LONG_MS) if length / step <= most)
    # Labels as long as `1 min 10 s` need more room.
    step = next(
        (step for step in fitting if length <= 60_000 or step % 60_000 == 0 or length / step <= max(4, most / 2)),
        length,
    )
    return [(round(tick * step / length * 100, 3), tick * step) for tick in range(int(length / step) + 1)]


def _gaps(scope: Scope, most: int) -> list[tuple[float, float, float]]:
    """The longest stretches without a running task, in order."""
    longest = sorted(starmap(Interval, scope.occupancy.gaps), key=lambda gap: -gap.length)[:most]
    least = scope.period.length / 2000
    return list(_placed(sorted(gap for gap in longest if gap.length >= least), scope.period))


def _placed(gaps: Iterable[Interval], period: Interval) -> Iterator[tuple[float, float, float]]:
    for gap in gaps:
        left = _percent(gap.start, period)
        yield left, round(_percent(gap.end, period) - left, 3), gap.length


def _nodes(scope: Scope) -> Iterator[TimelineNode]:
    """All nodes below the root, in no order."""
    yield from (_step(step) for step in (scope.run.steps if scope.run else []) if step.parent_id is not None)
    yield from (_batch(scope, batch) for batch in scope.batches)
    yield from _clients(scope)
    yield from (_query(scope, query) for query in scope.queries)
    yield from (_job(scope, job) for job in scope.jobs)
    yield from (_stage(scope, stage) for stage in scope.stages)


def _root(scope: Scope) -> TimelineNode:
    """The run, or the application."""
    if scope.run is not None:
        span, record = scope.run.root, scope.run.record
        has_failed = record is not None and record.outcome not in ("succeeded", "running")
        identifier = span.span_id if span else 0
        return TimelineNode("run", identifier, None, scope.run.title, scope.period.start, scope.run.ended, has_failed)
    app = scope.app
    ids, label = span_ids.of_application(app), app.name or "application"
    return TimelineNode(
        "application", ids.span_id, None, label, scope.period.start, app.ended, ending_of(app).outcome in BAD
    )


def _step(step: StepSpan) -> TimelineNode:
    label = step.name.removeprefix("step ")
    fold = step.attributes.get(names.FIT_FOLD.name)
    parts = (label, step.attributes.get(names.FIT_PARAMETERS.name), None if fold is None else f"(fold {fold})")
    label = " ".join(part for part in parts if part)
    return TimelineNode("step", step.span_id, step.parent_id, label, step.started, step.ended, step.has_failed)


def _clients(scope: Scope) -> Iterator[TimelineNode]:
    """The sessions and the operations of the clients of Spark Connect."""
    if scope.run is not None:
        return
    for session in scope.app.connect.sessions.values():
        yield _part(scope, "session", session, session.user or session.key.id)
    for operation in scope.app.connect.operations.values():
        yield _part(scope, "operation", operation, work_names.of_operation(operation))


def _part(scope: Scope, kind: Kind, part: spans.Part, label: str, anchor: str = "") -> TimelineNode:
    """A part of the work, where and when the trace has it."""
    work = spans.work(scope.app, part)
    ids, has_failed = work.ids, work.failure is not None
    return TimelineNode(kind, ids.span_id, ids.parent_id, label, work.started, work.ended, has_failed, anchor or None)


def _batch(scope: Scope, batch: Batch) -> TimelineNode:
    stream = (batch.progress and batch.progress.name) or batch.name or "stream"
    return _part(scope, "batch", batch, f"{stream}: batch {batch.key.number}")


def _query(scope: Scope, query: Query) -> TimelineNode:
    label = f"{query.id}: {scope.named(work_names.of_query(scope.app, query))}"
    return _part(scope, "query", query, label, f"query-{query.id}")


def _job(scope: Scope, job: Job) -> TimelineNode:
    description = job.properties.description
    query = scope.app.query_of(job)
    if not description or (query is not None and query.description == description):
        description = _call_site(scope, job)
    marks = [f"{kind} {name}" for kind, name in zip(("group", "pool"), scheduling([job]), strict=True) if name]
    label = ", ".join([f"{job.id}: {scope.named(description)}", *marks])
    return _part(scope, "job", job, label)


def _call_site(scope: Scope, job: Job) -> str:
    """The line of code that started a job; where Spark does not know it, what its last stage reads and writes."""
    ran = [scope.app.stages[key] for key in job.ran if key in scope.app.stages]
    if not ran:
        return "all stages skipped"
    last = max(ran, key=lambda stage: stage.info.id)
    name = work_names.placed(last.info.name)
    return name or flow_of(scope.app, last)


def _stage(scope: Scope, stage: StageAttempt) -> TimelineNode:
    info = stage.info
    attempt = f" (attempt {info.attempt})" if info.attempt else ""
    tasks = f"{len(stage.durations_ms):,}/{info.tasks:,} tasks"
    label = f"{info.id}{attempt}: {stage_name(scope, stage)}, {tasks}"
    return _part(scope, "stage", stage, label, f"stage-{info.id}-{info.attempt}")
