"""The graph of the shop, in its parts and as a flow chart."""

import datetime
from pathlib import Path

import pytest

from spark_app.execution import graph
from spark_app.execution.graph import Asset, Graph
from spark_app.runs import run_record
from spark_app.settings import Settings, load_settings
from spark_app.warehouse.freshness import Freshness
from tests.declared import pipeline
from tests.receivers import dead_port
from tests.unit.run_records import example_record

RUN = "20240102T000000Z-etl.daily_sales-2024-01-01-abc"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of the shop, with runs and tables of its own."""
    return load_settings().model_copy(update={"home": tmp_path})


def of_kind(found: Graph, kind: str) -> dict[str, Asset]:
    """Sources, topics, tables or models by their names."""
    return {asset.name: asset for asset in found.assets if asset.kind == kind}


def test_a_pipeline_has_what_it_reads_and_writes_and_its_newest_run(settings: Settings) -> None:
    """Each after those that write what it reads; a folder without a record is none."""
    folder = settings.runs_path / RUN
    folder.mkdir(parents=True)
    (settings.runs_path / "20240103T000000Z-etl.daily_sales-2024-01-01-abd").mkdir()
    run_record.write(example_record(folder=folder, pipeline="etl.daily_sales"), note=pytest.fail)
    found = {node.pipeline: node for node in graph.of_project(settings).pipelines}
    sales = found["etl.daily_sales"]
    assert (sales.sources, sales.topics, sales.reads) == (["transactions"], [], ["customers"])
    assert sales.writes == ["bronze", "transactions", "daily_sales"]
    assert sales.last is not None
    assert sales.last.folder == folder
    assert found["streaming.attribution"].topics == ["impressions", "clicks"]
    assert found["etl.customers"].last is None
    order = list(found)
    assert order.index("etl.customers") < order.index("etl.daily_sales") < order.index("ml.refunds")


@pytest.mark.parametrize(("left", "outcome"), [("running", "killed"), ("another.txt", "running")])
def test_a_run_whose_process_left_its_lock_was_killed(settings: Settings, left: str, outcome: str) -> None:
    """Though its record still says that it runs; without a lock nobody can tell."""
    folder = settings.runs_path / RUN
    folder.mkdir(parents=True)
    run_record.write(example_record(folder=folder, pipeline="etl.daily_sales", outcome="running"), note=pytest.fail)
    (folder / left).touch()
    [last] = [node.last for node in graph.of_project(settings).pipelines if node.last]
    assert last.outcome == outcome


def test_each_thing_names_who_writes_and_who_reads_it(settings: Settings) -> None:
    """A source and a table of one name are two; a model is trained by a pipeline and read by others."""
    found = graph.of_project(settings)
    assert of_kind(found, "source")["transactions"].read_by == ["etl.daily_sales"]
    tables, models = of_kind(found, "table"), of_kind(found, "model")
    assert tables["transactions"].written_by == ["etl.daily_sales"]
    assert {*tables["transactions"].read_by} == {"streaming.predictions", "ml.refunds"}
    assert models["ml.refunds"] == Asset("model", "ml.refunds", ["ml.refunds"], ["streaming.predictions"])
    assert of_kind(found, "topic")["clicks"].written_by == []


def test_a_topic_may_be_written_and_read_or_only_declared(settings: Settings) -> None:
    """Whoever sends it writes it."""
    sender = pipeline(topics=("clicks",), sends=("alarms",))
    reader = pipeline(topics=("alarms",))
    loaded = {"streaming.reader": reader, "streaming.sender": sender}
    topics = of_kind(graph.graph(loaded, settings), "topic")
    assert topics["alarms"] == Asset("topic", "alarms", ["streaming.sender"], ["streaming.reader"])
    assert topics["impressions"] == Asset("topic", "impressions", [], [])


def test_a_table_is_as_fresh_as_its_newest_commit_and_day(settings: Settings) -> None:
    """One that was never published has none."""
    log = Path(settings.warehouse_path) / "daily_sales" / "_delta_log"
    log.mkdir(parents=True)
    file = '{"add": {"path": "a", "partitionValues": {"processed_date": "2024-01-01"}}}'
    (log / f"{0:020d}.json").write_text(f'{{"commitInfo": {{"timestamp": 1704153600000}}}}\n{file}\n')
    tables = of_kind(graph.of_project(settings), "table")
    assert tables["transactions"].freshness is None
    at = datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC)
    assert tables["daily_sales"].freshness == Freshness(at, datetime.date(2024, 1, 1))


@pytest.mark.parametrize(
    ("warehouse", "trouble"), [("s3a://shop/tables", "cannot reach s3a://shop/tables"), ("x9://shop", "x9://")]
)
def test_a_storage_that_cannot_be_read_is_named_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, warehouse: str, trouble: str
) -> None:
    """And it is not known how fresh tables are."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{dead_port()}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    found = graph.of_project(settings.model_copy(update={"warehouse": warehouse}))
    assert trouble in str(found.trouble)
    assert {asset.freshness for asset in of_kind(found, "table").values()} == {Freshness()}


def test_a_flow_chart_has_each_thing_once(settings: Settings) -> None:
    """And an arrow from what is read to what reads it, and on to what is written."""
    lines = graph.mermaid(graph.of_project(settings)).splitlines()
    assert lines[0] == "flowchart LR"
    assert len(lines) == len({*lines})
    assert "    source_transactions[/transactions/]" in lines
    assert "    source_transactions --> pipeline_etl_daily_sales" in lines
    assert "    pipeline_etl_daily_sales --> table_daily_sales" in lines
    assert "    model_ml_refunds --> pipeline_streaming_predictions" in lines
