"""Values over time as paths of SVG: steps, because each value holds for a while; where nothing is known is no line."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from spark_app.report.intervals import Interval

WIDTH: Final = 1000
HEIGHT: Final = 100
_HEADROOM: Final = 16
_TOUCHING: Final = 0.05


class Step(NamedTuple):
    """A value that holds from a start to an end."""

    start: float
    end: float
    value: float


@dataclass(frozen=True, slots=True)
class Values:
    """One line or area of a chart: its name, its colour as a class of the style sheet, and its steps in order."""

    name: str
    colour: str
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
class Series:
    """Values as drawn; `path` is for a view box of `WIDTH` by `HEIGHT`, and `last` the last value."""

    name: str
    colour: str
    path: str
    last: float


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart over time.

    Attributes:
        title: What is shown.
        shown: Formats a value of it.
        is_filled: Whether its series are areas, the first of them behind the others.
        series: What is drawn; without anything known it is empty.
        low, high: The values at the bottom and at the top.
        limit: The height of a line across the chart, and what that is; None without one.
    """

    title: str
    shown: Callable[[float], str]
    is_filled: bool
    series: list[Series]
    low: float
    high: float
    limit: tuple[float, str] | None = None

    @property
    def label(self) -> str:
        """The chart in words."""
        last = ", ".join(f"{each.name} {self.shown(each.last)}" for each in self.series)
        return f"{self.title}: at most {self.shown(self.high)}; last {last}"


def lines(
    title: str,
    shown: Callable[[float], str],
    values: Iterable[Values],
    axis: Interval,
    *,
    has_origin: bool = True,
    limit: float | None = None,
) -> Chart:
    """Lines above 0; without an origin, above the lowest value if all are far from 0. A limit is drawn, too."""
    known = [each for each in values if each.steps]
    numbers = [step.value for each in known for step in each.steps] or [0.0]
    low = 0.0 if has_origin or min(numbers) < max(numbers) / 2 else min(numbers)
    scale = Interval(low, max(*numbers, limit or 0.0))
    chart = _chart(title, shown, known, axis, scale, is_filled=False)
    return chart if limit is None else replace(chart, limit=(_height(limit, scale), shown(limit)))


def areas(
    title: str, shown: Callable[[float], str], values: Iterable[Values], axis: Interval, *, limit: float | None = None
) -> Chart:
    """Areas from 0, each in front of those before it; a limit is drawn where values come near it."""
    known = [each for each in values if each.steps]
    high = max((step.value for each in known for step in each.steps), default=0.0)
    is_near = limit is not None and high >= limit / 4
    top = max(high, limit) if is_near and limit is not None else high
    chart = _chart(title, shown, known, axis, Interval(0.0, top), is_filled=True)
    if not is_near or limit is None:
        return chart
    return replace(chart, limit=(_height(limit, Interval(0.0, top)), shown(limit)))


def stacked(values: Sequence[Values]) -> list[Values]:
    """Values on top of each other, the whole first; all have the same steps."""
    sums = [[0.0] * len(each.steps) for each in values]
    for number, each in enumerate(values):
        below = sums[number - 1] if number else [0.0] * len(each.steps)
        sums[number] = [under + step.value for under, step in zip(below, each.steps, strict=True)]
    raised = [
        Values(each.name, each.colour, [step._replace(value=top) for step, top in zip(each.steps, tops, strict=True)])
        for each, tops in zip(values, sums, strict=True)
    ]
    return raised[::-1]


def _chart(
    title: str,
    shown: Callable[[float], str],
    values: Sequence[Values],
    axis: Interval,
    scale: Interval,
    *,
    is_filled: bool,
) -> Chart:
    series = [
        Series(
            each.name, each.colour, "".join(_path(each.steps, axis, scale, is_filled=is_filled)), each.steps[-1].value
        )
        for each in values
    ]
    return Chart(title, shown, is_filled, series, scale.start, scale.end)


def _path(steps: Sequence[Step], axis: Interval, scale: Interval, *, is_filled: bool) -> Iterator[str]:
    """A path for each run of steps that touch; a step is at least as wide as a line."""
    close = f"V{HEIGHT}Z" if is_filled else ""
    reached: float | None = None
    for step in steps:
        left, right, height = across(step.start, axis), across(step.end, axis), _height(step.value, scale)
        if reached is None or left - reached > _TOUCHING:
            yield close if reached is not None else ""
            yield f"M{left:g} {HEIGHT}V{height:g}" if is_filled else f"M{left:g} {height:g}"
        else:
            yield f"V{height:g}"
        reached = max(right, left + 1)
        yield f"H{reached:g}"
    yield close if reached is not None else ""


def across(time: float, axis: Interval) -> float:
    """Where a time is on an axis, from 0 to `WIDTH`."""
    share = (time - axis.start) / axis.length if axis.length > 0 else 0.0
    return round(min(1.0, max(0.0, share)) * WIDTH, 1)


def _height(value: float, scale: Interval) -> float:
    share = (value - scale.start) / scale.length if scale.length > 0 else float(value > 0)
    return round(HEIGHT - min(1.0, max(0.0, share)) * (HEIGHT - _HEADROOM), 1)
