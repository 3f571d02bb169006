"""Curves of shares over shares as paths of SVG, in a square; both axes begin at 0."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

SIDE: Final = 1000
TICKS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
_TOPS: Final = (0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
CERTAINTY: Final = 1.959964
"""Standard deviations on either side of a mean that hold 95 % of a normal distribution."""


class Point(NamedTuple):
    """A place in the square, in the units of its axes."""

    x: float
    y: float


class Mark(NamedTuple):
    """A point as drawn, what it is, and its colour as a class of the style sheet."""

    x: float
    y: float
    name: str
    colour: str


class Curve(NamedTuple):
    """A curve as drawn: its name, its colour as a class of the style sheet, and its path."""

    name: str
    colour: str
    path: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A square with curves.

    Attributes:
        title: What is shown.
        caption: How to read it, and what good looks like.
        across: What the axis below it is of.
        upwards: What the axis beside it is of.
        curves: What is drawn; production's is dashed.
        reference: The path of the dotted line, and what it is; None without one.
        marks: Points of their own.
        whiskers: A path of vertical intervals.
        bars: Middle and height of bars at the bottom.
        top: Where both axes end.
    """

    title: str
    caption: str
    across: str
    upwards: str
    curves: list[Curve]
    reference: tuple[str, str] | None = None
    marks: list[Mark] = field(default_factory=list)
    whiskers: str = ""
    bars: list[tuple[float, float]] = field(default_factory=list)
    top: float = 1.0

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Places on both axes in percent, and their values."""
        return [(100 * share, f"{share * self.top:.3g}") for share in TICKS]


def curve(name: str, colour: str, points: Sequence[Point], *, most: int, top: float = 1.0) -> Curve:
    """A curve through points, of at most so many of them."""
    return Curve(name, colour, line(thinned(points, most), top))


def line(points: Sequence[Point], top: float = 1.0) -> str:
    """A path through points."""
    placed = (place(point, top) for point in points)
    return "".join(f"{'L' if number else 'M'}{x:g} {y:g}" for number, (x, y) in enumerate(placed))


def place(point: Point, top: float = 1.0) -> tuple[float, float]:
    """Where a point is drawn: SVG counts from the top."""
    across, upwards = (min(1.0, max(0.0, share / top)) for share in point)
    return round(across * SIDE, 1), round((1 - upwards) * SIDE, 1)


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """At most so many of the points, as far apart as can be, with the first and the last; never fewer than two."""
    most = max(2, most)
    if len(points) <= most:
        return list(points)
    return [points[round(number * (len(points) - 1) / (most - 1))] for number in range(most)]


def top_of(values: Sequence[float]) -> float:
    """A round share that is not below any of the values."""
    high = max(values, default=0.0)
    return next((top for top in _TOPS if high <= top), 1.0)


def wilson(positives: float, rows: float) -> tuple[float, float] | None:
    """The 95 % interval of a share; None without rows.

    Wilson, Probable Inference, the Law of Succession, and Statistical Inference (1927).
    """
    if rows <= 0:
        return None
    share, square = positives / rows, CERTAINTY**2 / rows
    middle = share + square / 2
    half = math.sqrt(max(0.0, square * (share * (1 - share) + square / 4)))
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))
