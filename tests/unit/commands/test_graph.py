"""`spark-app graph` of the shop, where nothing ever ran."""

import datetime
import json
from pathlib import Path

import pytest

from spark_app import __main__ as program
from spark_app.commands import graph
from spark_app.warehouse.freshness import Freshness

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
