"""`spark-app graph` of the shop, where nothing ever ran."""

import datetime
import json
import re
from pathlib import Path

import pytest

from spark_app import __main__ as program
from spark_app.commands import graph
from spark_app.runs import run_record
from spark_app.warehouse.freshness import Freshness
from tests.unit.run_records import example_record

NOW = datetime.datetime(2024, 1, 3, tzinfo=datetime.UTC)


@pytest.fixture(autouse=True)
def _empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "250")


def test_pipelines_and_what_they_read_and_write_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """With their last runs, and when tables were published."""
    assert program.run(["graph"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["etl.daily_sales", "transactions", "(raw),", "customers"] in [line[:4] for line in lines]
    assert ["never", "ran"] in [line[-2:] for line in lines if line[:1] == ["etl.daily_sales"]]
    assert ["daily_sales", "table", "never", "published", "etl.daily_sales"] in lines
    assert ["ml.refunds", "model", "ml.refunds", "streaming.predictions"] in lines


def test_the_document_has_pipelines_and_assets(capsys: pytest.CaptureFixture[str]) -> None:
    """For scripts."""
    assert program.run(["graph", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["pipelines"][0].keys() >= {"pipeline", "reads", "writes", "sends", "last"}
    assert document["assets"][0].keys() == {"kind", "name", "written_by", "read_by", "freshness"}


def test_the_flow_chart_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """For a README."""
    assert program.run(["graph", "--mermaid"]) == 0
    assert capsys.readouterr().out.startswith("flowchart LR\n")


def test_the_page_leads_to_the_reports_that_are_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By paths from its own folder; a report that was deleted is no link, one that is served is a URL."""
    reports = tmp_path / "my reports"
    reports.mkdir()
    (reports / "r.html").touch()
    places = {"etl.customers": str(reports / "r.html"), "ml.refunds": str(reports / "gone.html")}
    for number, (pipeline, report) in enumerate([*places.items(), ("etl.daily_sales", "http://reports/s.html")]):
        folder = tmp_path / "runs" / f"2024010{number + 1}T000000Z-{pipeline}-2024-01-01-abc"
        folder.mkdir(parents=True)
        run_record.write(example_record(folder=folder, pipeline=pipeline, report=report), note=pytest.fail)
    assert program.run(["graph", "--html", str(tmp_path / "pages" / "graph.html")]) == 0
    assert capsys.readouterr().out.endswith("graph.html\n")
    page = (tmp_path / "pages" / "graph.html").read_text(encoding="utf-8")
    assert {*re.findall(r'<a class="state good" href="([^"]+)"', page)} == {
        "../my%20reports/r.html",
        "http://reports/s.html",
    }


def test_one_form_is_asked_for_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    """Or the command would have to choose."""
    assert program.run(["graph", "--json", "--mermaid"]) == 2
    assert "give one of --mermaid, --html and --json" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("freshness", "shown"),
    [
        (None, "never published"),
        (Freshness(), "not known"),
        (Freshness(NOW - datetime.timedelta(hours=30)), "1 d ago"),
        (Freshness(NOW - datetime.timedelta(minutes=90), datetime.date(2024, 1, 1)), "2024-01-01, 1 h ago"),
    ],
)
def test_a_table_was_published_with_a_day_and_an_age(freshness: Freshness | None, shown: str) -> None:
    """As far as its log tells."""
    assert graph.published(freshness, NOW) == shown
