import json
from pathlib import Path

import pytest

from app.__main__ import run
from tests.receivers import dead_port
from tests.unit.eventlog import log
from tests.unit.report import made


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything below one folder."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    return tmp_path


def test_the_path_of_the_report_is_printed_alone(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A script can open what standard output says; the name is that of the application."""
    written = made.written(home / "log", [log.started(), log.ended()])
    assert run(["report", str(written)]) == 0
    assert Path(capsys.readouterr().out.strip()) == home / "reports" / "app-1.html"
    assert (home / "reports" / "app-1.html").read_text().startswith("<!doctype html>")


def test_the_list_of_reports_leads_to_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where reports are served, that of a stranger's application is found beside those of runs, by the id of either."""
    (home / "spark-events" / "eventlog_v2_app-1").mkdir(parents=True)
    made.written(home / "spark-events" / "eventlog_v2_app-1" / "events_1_app-1", [log.started(), log.ended()])
    assert run(["report", "app-1"]) == 0
    assert 'href="app-1.html"' in (home / "reports" / "index.html").read_text()


def test_a_report_lies_where_it_was_asked_for(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And the JSON document says where."""
    written, output = made.written(home / "log", [log.started(), log.ended()]), home / "deep" / "mine.html"
    assert run(["report", str(written), "--output", str(output), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"exit_code": 0, "error": None, "report": str(output)}
    assert output.is_file()


def test_it_links_to_the_stack_only_where_telemetry_goes_to_one(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a run: what was never sent is in no Jaeger, and a link there would be dead."""
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    written = made.written(home / "log", [log.started(), log.ended()])
    assert run(["report", str(written)]) == 0
    assert "Trace in Jaeger" not in Path(capsys.readouterr().out.strip()).read_text()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{dead_port()}")
    assert run(["report", str(written)]) == 0
    assert "Trace in Jaeger" in Path(capsys.readouterr().out.strip()).read_text()


def test_where_reports_are_served_the_address_is_printed(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a run; one that was asked for elsewhere is told by its path."""
    monkeypatch.setenv("SPARK_APP_REPORTS_URL", "http://localhost:8088")
    written = made.written(home / "log", [log.started(), log.ended()])
    assert run(["report", str(written)]) == 0
    assert capsys.readouterr().out.strip() == "http://localhost:8088/app-1.html"
    assert run(["report", str(written), "--output", str(home / "mine.html")]) == 0
    assert Path(capsys.readouterr().out.strip()) == home / "mine.html"


def test_the_name_of_an_application_leads_nowhere_else(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An id with slashes and dots names a file in the folder of reports."""
    written = made.written(home / "log", [log.started() | {"App ID": "../../x"}, log.ended()])
    assert run(["report", str(written)]) == 0
    assert Path(capsys.readouterr().out.strip()).parent == home / "reports"


def test_what_is_not_there_ends_with_3(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Missing input, told in one line that says where it was looked for; nothing is written."""
    assert run(["report", "nothing"]) == 3
    assert "neither a run 'nothing' in" in capsys.readouterr().err
    assert not (home / "reports").exists()


def test_a_report_that_cannot_be_written_ends_with_2(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The machine lacks something: the line names the file and says what."""
    written = made.written(home / "log", [log.started(), log.ended()])
    assert run(["report", str(written), "--output", str(written / "below.html")]) == 2
    assert f"cannot write the report {written}/below.html: " in capsys.readouterr().err


def test_the_newest_of_our_own_logs_is_taken_by_default(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After an application there is one word to type."""
    (home / "spark-events").mkdir()
    made.written(home / "spark-events" / "log", [log.started(), log.ended()])
    assert run(["report"]) == 0
    assert capsys.readouterr().out.strip().endswith("app-1.html")
