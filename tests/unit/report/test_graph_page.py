"""The page with the graph of a project."""

import datetime
from pathlib import Path

from spark_app.report import graph_page
from spark_app.report.graph_page import Box
from tests.unit.report import made

AT = datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC)


def written(folder: Path, boxes: list[Box], edges: list[tuple[str, str]], title: str = "Pipelines of shop") -> str:
    """The page."""
    graph_page.write(folder / "graph.html", title, boxes, edges, at=AT)
    return (folder / "graph.html").read_text(encoding="utf-8")


def test_a_box_says_name_kind_and_state_and_leads_to_the_report(tmp_path: Path) -> None:
    """And the list says from where and to where, for who sees no picture."""
    boxes = [
        Box("b0", "pipeline", "etl.daily_sales", "failed, 1 h ago", "bad", AT, "reports/sales.html"),
        Box("b1", "source", "transactions"),
        Box("b2", "table", "daily_sales", "2024-01-01, 2 h ago", when=AT),
    ]
    page = written(tmp_path, boxes, [("b1", "b0"), ("b0", "b2")])
    assert '<a class="state bad" href="reports/sales.html">failed, 1 h ago</a>' in page
    assert 'title="table daily_sales: 2024-01-01, 2 h ago (2024-01-02 00:00:00Z)"' in page
    row = page[page.index('<tr id="b0-row">') :]
    row = row[: row.index("</tr>")]
    assert row.index("transactions") < row.index("daily_sales</a>")
    assert page.count("<path ") == 2
    assert "2 pipelines" not in page
    assert "1 pipeline<" in page


def test_a_line_is_lit_for_what_it_leads_to_and_comes_from(tmp_path: Path) -> None:
    """Near or far: who looks at a box sees what it is made of, and what is made of it."""
    boxes = [Box(name, "table", name) for name in "abcd"]
    page = written(tmp_path, boxes, [("a", "b"), ("b", "c"), ("b", "d")])
    assert '<path class="a b c d"' in page
    assert '<path class="a b c"' in page
    assert '<path class="a b d"' in page


def test_names_are_text(tmp_path: Path) -> None:
    """Whatever a project calls its things; and the page asks for nothing on a network."""
    boxes = [Box("b0", "table", made.HOSTILE, made.HOSTILE), Box("b1", "pipeline", made.HOSTILE, report="x.html")]
    page = written(tmp_path, boxes, [("b0", "b1")], title=made.HOSTILE)
    assert made.HOSTILE not in page
    assert "default-src 'none'" in page


def test_a_project_without_pipelines_has_a_page(tmp_path: Path) -> None:
    """It says so."""
    assert "The project has no pipeline yet." in written(tmp_path, [], [])
