"""Where boxes and lines of a graph stand."""

from itertools import combinations

import pytest

from spark_app.report.layers import BOX_GAP, HEIGHT, LAYER_GAP, WIDTH, Layout, layout

DIAMOND = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("a", "d"), ("e", "d")]


def column(placed: Layout, box: str) -> float:
    """The layer of a box."""
    return placed.places[box].x / (WIDTH + LAYER_GAP)


def test_a_box_stands_right_of_all_that_lead_to_it() -> None:
    """One that nothing leads to stands near the first that it leads to."""
    placed = layout("abcde", DIAMOND)
    assert [column(placed, box) for box in "abcde"] == [0, 1, 1, 2, 1]
    assert (placed.width, placed.height) == (
        3 * WIDTH + 2 * LAYER_GAP,
        max(y for _, y in placed.places.values()) + HEIGHT,
    )


def test_boxes_of_a_layer_do_not_touch() -> None:
    """However many there are, and wherever their neighbours pull them."""
    boxes = [*"abcdefgh"]
    placed = layout(boxes, [("a", box) for box in boxes[1:]] + [("b", "h"), ("c", "h")])
    for one, other in combinations(placed.places.values(), 2):
        assert one.x != other.x or abs(one.y - other.y) >= HEIGHT + BOX_GAP - 1


def test_lines_that_need_not_cross_do_not() -> None:
    """Whatever the order of the boxes."""
    placed = layout("abcd", [("a", "d"), ("b", "c")]).places
    assert (placed["a"].y < placed["b"].y) == (placed["d"].y < placed["c"].y)


def test_a_line_leads_from_box_to_box_through_the_layers_between() -> None:
    """It begins at the right of the first and ends at the left of the last, and passes no box."""
    placed = layout("abcde", DIAMOND)
    path = placed.paths["a", "d"]
    start, end = placed.places["a"], placed.places["d"]
    assert path.startswith(f"M{start.x + WIDTH:g} {start.y + HEIGHT / 2:g}C")
    assert path.endswith(f" {end.x:g} {end.y + HEIGHT / 2:g}")
    level = float(path.split("H")[0].split(" ")[-1])
    assert not any(placed.places[box].y <= level <= placed.places[box].y + HEIGHT for box in "bc")


@pytest.mark.parametrize("edges", [[("a", "a")], [("a", "b"), ("b", "a")], [("a", "b"), ("b", "c"), ("c", "a")]])
def test_boxes_in_a_circle_are_placed(edges: list[tuple[str, str]]) -> None:
    """A line of the circle is left out."""
    placed = layout("abc", edges)
    assert placed.places.keys() == {*"abc"}
    assert len(placed.paths) == len(edges) - 1


def test_a_graph_may_be_empty() -> None:
    """Of a project that was just begun."""
    assert layout([], []).places == {}
