"""What happened when: the tree from the run or the application to attempts of stages, and when no task was at work."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from app.report import amounts, intervals
from app.report.intervals import Interval
from app.report.limits import Limits
from app.report.scope import Scope
from app.report.sections.nodes import Kind, Node, nodes_of, root_of

_NICE_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000)
_NICE_LONG_MS: Final = (300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000)
_ROOM_AFTER: Final = 86
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
    def words(self) -> str:
        """Where there is room for its time: after it, before it, or else within."""
        if self.left + self.width <= _ROOM_AFTER:
            return "after"
        return "before" if self.left >= 100 - _ROOM_AFTER else "within"


@dataclass(frozen=True, slots=True)
class Timeline:
    """The tree, the ticks of its axis (percent, milliseconds), and the gaps (left, width in percent, milliseconds)."""

    root: Bar
    ticks: list[tuple[float, float]]
    gaps: list[tuple[float, float, float]]
    shown: int
    total: int


def timeline(scope: Scope, limits: Limits) -> Timeline:
    """The longest bars with all that they are a part of; what has no parent in scope hangs on the root."""
    nodes = list(nodes_of(scope))
    by_id = {node.id: node for node in nodes}
    root = root_of(scope)
    kept = _kept(nodes, limits.rows)
    bars = {root.id: _bar(root, scope.period)} | {
        node.id: _bar(node, scope.period) for node in nodes if node.id in kept
    }
    for node in sorted(nodes, key=lambda node: (node.started, node.kind != "step", node.id)):
        above = bars[_above(node, by_id, bars, root.id)]
        if node.id in kept:
            above.children.append(bars[node.id])
        else:
            above.left_out += 1
    return Timeline(
        bars[root.id], _ticks(scope.period.length), _gaps(scope, limits.gaps), len(kept) + 1, len(nodes) + 1
    )


def _kept(nodes: list[Node], most: int) -> set[int]:
    """The steps and the longest of the others, each with all that it is a part of."""
    by_id, kept = {node.id: node for node in nodes}, set[int]()
    ranked = sorted(nodes, key=lambda node: (node.kind != "step", not node.has_failed, node.started - _end(node)))
    for node in ranked:
        if len(kept) >= most:
            break
        found: Node | None = node
        while found is not None and found.id not in kept:
            kept.add(found.id)
            found = by_id.get(found.parent) if found.parent is not None else None
    return kept


def _above(node: Node, by_id: Mapping[int, Node], bars: Mapping[int, Bar], root: int) -> int:
    """The nearest of all that something is a part of that is listed."""
    parent = node.parent
    while parent is not None and parent not in bars:
        parent = by_id[parent].parent if parent in by_id else None
    return root if parent is None or parent == node.id else parent


def _end(node: Node) -> float:
    return float("inf") if node.ended is None else node.ended


def _bar(node: Node, period: Interval) -> Bar:
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
