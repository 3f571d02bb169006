"""The graph of the shop, in its parts and as a flow chart."""

from pathlib import Path

import pytest

from spark_app import __main__ as program
from spark_app.execution import graph
from spark_app.runs import run_record
from tests.unit.run_records import example_record


def test_a_pipeline_has_what_it_reads_and_writes_and_its_newest_run(tmp_path: Path) -> None:
    """Each after those that write what it reads; a folder without a record is none."""
    folder = tmp_path / "20240102T000000Z-etl.daily_sales-2024-01-01-abc"
    folder.mkdir()
    (tmp_path / "20240103T000000Z-etl.daily_sales-2024-01-01-abd").mkdir()
    run_record.write(example_record(folder=folder, pipeline="etl.daily_sales"), note=pytest.fail)
    found = {node.pipeline: node for node in graph.nodes(tmp_path)}
    sales = found["etl.daily_sales"]
    assert (sales.sources, sales.topics, sales.reads) == (["transactions"], [], ["customers"])
    assert sales.writes == ["bronze", "transactions", "daily_sales"]
    assert sales.last is not None
    assert sales.last.folder == folder
    assert found["streaming.attribution"].topics == ["impressions", "clicks"]
    assert found["etl.customers"].last is None
    order = list(found)
    assert order.index("etl.customers") < order.index("etl.daily_sales") < order.index("ml.refunds")


def test_a_flow_chart_has_each_thing_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And an arrow from what is read to what reads it, and on to what is written."""
    text = graph.mermaid(graph.nodes(tmp_path))
    lines = text.splitlines()
    assert lines[0] == "flowchart LR"
    assert len(lines) == len({*lines})
    assert "    source_transactions[/transactions/]" in lines
    assert "    source_transactions --> pipeline_etl_daily_sales" in lines
    assert "    pipeline_etl_daily_sales --> table_daily_sales" in lines
    assert program.run(["graph", "--mermaid"]) == 0
    assert capsys.readouterr().out == text
