"""What a person sees of the graph of a project in a real browser."""

import datetime
from pathlib import Path

from spark_app.report import graph_page
from spark_app.report.graph_page import Box
from tests.browser.chromium import chromium
from tests.unit.report import made

FADED = "[...document.querySelectorAll('.graph path')].map((each) => getComputedStyle(each).opacity < 0.2)"


def test_a_graph_is_seen_on_any_screen(tmp_path: Path) -> None:
    """The page is as wide as the screen, the picture scrolls in it; a box that has the focus fades what is not its."""
    boxes = [Box(f"b{number}", "table", f"{number} {made.HOSTILE}", "never published") for number in range(9)]
    edges = [(f"b{number}", f"b{number + 1}") for number in range(7)] + [("b8", "b7")]
    file = tmp_path / "graph.html"
    graph_page.write(file, made.HOSTILE, boxes, edges, at=datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC))
    with chromium(tmp_path / "profile") as browser:
        for width, scheme in ((390, "dark"), (1280, "light")):
            browser.open(file, width=width, scheme=scheme)
            assert browser.value("document.documentElement.scrollWidth") <= width
            assert browser.value("document.querySelector('.scroll').scrollWidth") > width
            assert browser.problems == []
        browser.value("document.querySelector('#b8 a').focus()")
        assert browser.value(FADED) == [True] * 7 + [False]
