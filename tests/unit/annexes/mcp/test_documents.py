"""What assistants are told is what reports, documents, served pages and comparisons say."""

import json
import re
from html import escape
from pathlib import Path

import pytest
import zstandard

from spark_app.__main__ import run
from spark_app.annexes.mcp.library import Library
from spark_app.annexes.mcp.tools import Tools
from spark_app.annexes.serve.pages import Pages
from spark_app.annexes.serve.run_files import LocalRunFiles
from spark_app.annexes.serve.runs import Runs
from spark_app.eventlog import reader
from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.model.host_load import HostLoad, LoadSample
from spark_app.observe import annotations
from spark_app.settings import load_settings
from tests.eventlogs import walking
from tests.unit.eventlog import log
from tests.unit.report import made
from truth.declared import pairs


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything below one folder."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    return tmp_path


def test_each_reader_of_an_observed_log_tells_the_same(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Report, JSON document, served page, assistants and comparison: what `observe` measured is in the log itself."""
    events = home / "spark-events"
    events.mkdir(exist_ok=True)
    for name in ("measured", "not-measured"):
        packed = pairs()["recorded-cpu-starvation"].log("planted").read_bytes()
        (events / name).write_bytes(zstandard.ZstdDecompressor().decompressobj().decompress(packed))
    reading = reader.read(events / "measured")
    times = range(reading.app.began or 0, reading.app.last + 1000, 1000)
    reading.app.host_load = HostLoad(2, [LoadSample(time, 24, {"cpu": time * 900}) for time in times])
    reading.app.is_alive = False
    annotations.annotate(reading, [], events)
    (expected,) = diagnose(reading.app, Thresholds())
    assert "12 runnable threads for each processor" in expected.text
    assert run(["report", str(events / "measured")]) == 0
    served = Pages(
        Runs(LocalRunFiles(home / "reports" / "records", home / "runs", home / "reports")),
        load_settings().prices,
    )
    report = Path(capsys.readouterr().out.strip())
    assert escape(expected.text) in report.read_text(encoding="utf-8")
    assert served(f"/reports/{report.name}", {}).body == report.read_bytes()
    assert run(["report", str(events / "measured"), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["applications"][0]["findings"]
    (told,) = Tools(Library(load_settings(), events, Thresholds())).findings("measured")["findings"]
    for each in (found, told):
        assert (each["text"], each["cost_ms"]) == (expected.text, round(expected.cost_ms or 0))
    assert run(["compare", str(events / "measured"), str(events / "not-measured")]) == 0
    assert "12 runnable threads for each processor" in capsys.readouterr().out


def test_markup_of_spark_is_shown_nowhere(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Spark describes the listing of many files with a `<br/>` for its own web UI (`HadoopFSUtils`)."""
    said = {"spark.job.description": "Listing leaf files and directories for 64 paths:<br/>file:/shop/1, ..."}
    of_query = log.query(0) | {"description": said["spark.job.description"]}
    lines = [log.started(), of_query, log.job(0, [0], **said), log.stage(0) | {"Properties": said}, log.task(0, 0)]
    lines += [log.stage(0, end=9000), log.job_ended(0, time=9000), log.query_ended(0), log.ended()]
    (home / "spark-events").mkdir()
    written = made.written(home / "spark-events" / "listing", lines)
    assert run(["report", str(written)]) == 0
    shown = [Path(capsys.readouterr().out.strip()).read_text(encoding="utf-8")]
    assert run(["report", str(written), "--json"]) == 0
    shown += [capsys.readouterr().out]
    tools = Tools(Library(load_settings(), written.parent, Thresholds()))
    shown += [str(tools.summary("listing")), str(tools.stage("listing", 0))]
    shown += [str([(span.name, span.attributes) for span in walking.read(written)[1]])]
    for text in shown:
        assert "Listing leaf files and directories for 64 paths:" in text
        assert not re.search(r"(<|&lt;)br", text.partition("<main")[2] or text)
