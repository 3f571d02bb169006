"""Where the boxes of a directed graph stand: in layers from left to right, with few crossings and short lines."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from statistics import fmean
from typing import Final, NamedTuple

Edge = tuple[str, str]
"""From a box to a box, by their ids."""
WIDTH: Final = 208
HEIGHT: Final = 46
LAYER_GAP: Final = 40
"""Pixels between two layers."""
BOX_GAP: Final = 12
"""Pixels between two boxes of a layer, or a box and a line that passes."""
SWEEPS: Final = 12
"""How often layers are put in another order."""
MOVES: Final = 50
"""How often boxes move towards their neighbours."""


class Corner(NamedTuple):
    """The upper left corner of a box, in pixels."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of boxes and lines: `paths` are the data of a path of SVG for each edge that is drawn."""

    width: float
    height: float
    places: Mapping[str, Corner]
    paths: Mapping[Edge, str]


def layout(boxes: Sequence[str], edges: Iterable[Edge]) -> Layout:
    """Places boxes; of boxes in a circle, an edge that leads back is not drawn."""
    drawn = _without_circles(boxes, edges)
    layer_of = _layers(boxes, drawn)
    chains = {edge: _chain(edge, layer_of) for edge in drawn}
    layers = _ordered(boxes, chains, layer_of)
    tops = _tops(layers, chains, {*boxes})
    places = {box: Corner(number * (WIDTH + LAYER_GAP), tops[box]) for number, row in enumerate(layers) for box in row}
    return Layout(
        max(len(layers), 1) * (WIDTH + LAYER_GAP) - LAYER_GAP,
        max((tops[box] + HEIGHT for box in boxes), default=0),
        {box: places[box] for box in boxes},
        {edge: _path([places[each] for each in chain]) for edge, chain in chains.items()},
    )


def _without_circles(boxes: Sequence[str], edges: Iterable[Edge]) -> list[Edge]:
    """The edges, without one of each circle."""
    left = [edge for edge in dict.fromkeys(edges) if edge[0] != edge[1]]
    while True:
        sorter = TopologicalSorter({box: [before for before, after in left if after == box] for box in boxes})
        try:
            sorter.prepare()
        except CycleError as error:
            circle = error.args[1]
            left.remove((circle[-2], circle[-1]))
        else:
            return left


def _layers(boxes: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """The layer of each box: right of all that lead to it; one that nothing leads to stands left of the next."""
    before, after = _neighbours(edges), _neighbours((end, start) for start, end in edges)
    order = list(TopologicalSorter({box: before[box] for box in boxes}).static_order())
    layer_of = dict[str, int]()
    for box in order:
        layer_of[box] = max((layer_of[each] + 1 for each in before[box]), default=0)
    return {
        box: min((layer_of[each] - 1 for each in after[box]), default=0) if not before[box] else layer_of[box]
        for box in boxes
    }


def _chain(edge: Edge, layer_of: Mapping[str, int]) -> list[str]:
    """The boxes of an edge, with a point in each layer that its line passes."""
    start, end = edge
    return [start, *(f"{start} {end} {layer}" for layer in range(layer_of[start] + 1, layer_of[end])), end]


def _ordered(
    boxes: Sequence[str], chains: Mapping[Edge, Sequence[str]], layer_of: Mapping[str, int]
) -> list[list[str]]:
    """The layers with boxes and points in the order with the fewest crossings that was found."""
    layers: list[list[str]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for box in boxes:
        layers[layer_of[box]].append(box)
    for (start, _), chain in chains.items():
        for offset, point in enumerate(chain[1:-1], start=1):
            layers[layer_of[start] + offset].append(point)
    steps = _steps(chains)
    best, fewest = layers, _crossings(layers, steps)
    for sweep in range(SWEEPS):
        layers = _swept(layers, steps, is_forward=sweep % 2 == 0)
        crossings = _crossings(layers, steps)
        if crossings < fewest:
            best, fewest = layers, crossings
    return best


def _swept(layers: Sequence[Sequence[str]], steps: Sequence[Edge], *, is_forward: bool) -> list[list[str]]:
    """The layers, each in the order of the middle of the neighbours in the layer before it, or after it."""
    linked = _neighbours(steps if is_forward else [(end, start) for start, end in steps])
    swept = list[list[str]]()
    for layer in layers if is_forward else reversed(layers):
        positions = {box: number for number, box in enumerate(swept[-1])} if swept else {}
        own = {box: number for number, box in enumerate(layer)}

        def middle(box: str, positions: Mapping[str, int] = positions, own: Mapping[str, int] = own) -> float:
            return fmean(positions[each] for each in linked[box]) if linked[box] and positions else own[box]

        swept.append(sorted(layer, key=middle))
    return swept if is_forward else swept[::-1]


def _crossings(layers: Sequence[Sequence[str]], steps: Sequence[Edge]) -> int:
    positions = {box: (number, position) for number, layer in enumerate(layers) for position, box in enumerate(layer)}
    lines = defaultdict[int, list[tuple[int, int]]](list)
    for start, end in steps:
        lines[positions[start][0]].append((positions[start][1], positions[end][1]))
    return sum(
        (one[0] - other[0]) * (one[1] - other[1]) < 0
        for each in lines.values()
        for number, one in enumerate(each)
        for other in each[:number]
    )


def _tops(layers: Sequence[Sequence[str]], chains: Mapping[Edge, Sequence[str]], boxes: set[str]) -> dict[str, float]:
    """The upper edge of each box and point: as near to its neighbours as the others of its layer let it."""
    steps = _steps(chains)
    linked = _neighbours([*steps, *((end, start) for start, end in steps)])
    linked |= {point: [*chain] for chain in chains.values() for point in chain[1:-1]}  # a long line is level
    heights = {box: HEIGHT + BOX_GAP if box in boxes else BOX_GAP for layer in layers for box in layer}
    tops = {box: float(number * (HEIGHT + BOX_GAP)) for layer in layers for number, box in enumerate(layer)}
    middle = {box: HEIGHT / 2 if box in boxes else 0.0 for box in tops}
    for _ in range(MOVES):
        for layer in layers:
            wanted = [fmean(tops[each] + middle[each] - middle[box] for each in linked[box] or [box]) for box in layer]
            tops |= zip(layer, _apart(wanted, [heights[box] for box in layer]), strict=True)
    top = min(tops.values(), default=0)
    return {box: round(each - top) for box, each in tops.items()}


def _apart(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """The places that are nearest to the wanted ones and far enough apart, in their order (isotonic regression)."""
    offsets = [sum(heights[:number]) for number in range(len(heights))]
    blocks = list[tuple[float, int]]()  # the mean of places that push each other, and how many they are
    for position, offset in zip(wanted, offsets, strict=True):
        mean, size = position - offset, 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        blocks.append((mean, size))
    means = [mean for mean, size in blocks for _ in range(size)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _path(points: Sequence[Corner]) -> str:
    """A smooth line from the right of the first box to the left of the last, through points between them."""
    x, y = points[0].x + WIDTH, points[0].y + HEIGHT / 2
    path = f"M{x:g} {y:g}"
    for number, point in enumerate(points[1:], start=1):
        is_last = number == len(points) - 1
        middle, height = x + LAYER_GAP / 2, point.y + (HEIGHT / 2 if is_last else 0)
        path += f"C{middle:g} {y:g} {middle:g} {height:g} {point.x:g} {height:g}"
        x, y = point.x + WIDTH, height
        path += "" if is_last else f"H{x:g}"
    return path


def _steps(chains: Mapping[Edge, Sequence[str]]) -> list[Edge]:
    """The lines between neighbouring layers."""
    return [step for chain in chains.values() for step in pairwise(chain)]


def _neighbours(edges: Iterable[Edge]) -> defaultdict[str, list[str]]:
    """By the end of edges, their starts."""
    found = defaultdict[str, list[str]](list)
    for start, end in edges:
        found[end].append(start)
    return found
