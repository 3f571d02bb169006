import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard
from pyarrow import parquet

from spark_app.__main__ import run
from tests.receivers import dead_port
from tests.unit.eventlog import log
from tests.unit.report import made
from tests.unit.stack_samples.made import beside

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything below one folder."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    return tmp_path


def test_standard_output_is_the_path_of_the_report(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Named after the application."""
    written = made.written(home / "log", [log.started(), log.ended()])
    assert run(["report", str(written)]) == 0
    assert Path(capsys.readouterr().out.strip()) == home / "reports" / "app-1.html"
    assert (home / "reports" / "app-1.html").read_text().startswith("<!doctype html>")


def test_the_list_of_reports_links_to_the_report(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside those of runs."""
    (home / "spark-events" / "eventlog_v2_app-1").mkdir(parents=True)
    made.written(home / "spark-events" / "eventlog_v2_app-1" / "events_1_app-1", [log.started(), log.ended()])
    assert run(["report", "app-1"]) == 0
    assert 'href="app-1.html"' in (home / "reports" / "index.html").read_text()


def test_output_names_the_file_of_the_report(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And the JSON document has its path, and that of the log."""
    written, output = made.written(home / "log", [log.started(), log.ended()]), home / "deep" / "mine.html"
    assert run(["report", str(written), "--output", str(output), "--json"]) == 0
    (about,) = json.loads(capsys.readouterr().out)["applications"]
    assert (about["report"], about["log"]) == (str(output), str(written))
    assert output.is_file()


def test_samples_of_stacks_are_in_the_document(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The hottest line of the program by stage."""
    stage = [log.job(0, [0]), log.stage(0), log.task(1, 0), log.stage(0, end=2900), log.job_ended(0)]
    written = made.written(home / "log", [log.started(), log.executor(), *stage, log.ended()])
    beside(written)
    assert run(["report", str(written), "--json"]) == 0
    (about,) = json.loads(capsys.readouterr().out)["applications"]
    samples = about["stack_samples"]
    assert (samples["samples"], samples["in_stages_ratio"], samples["intervals_ms"]) == (60, 1.0, [10.0])
    assert [(each["stage"], each["python_ratio"]) for each in samples["places"]] == [({"id": 0, "attempt": 0}, 0.6667)]
    (function,) = samples["places"][0]["functions"]
    assert (function["name"], function["file"], function["line"], function["is_udf"]) == ("score", "job.py", 3, True)


def test_hot_keys_are_named_where_that_is_asked_for(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A recorded skew, and the files that it read: in the report and the document; without the files a note says so."""
    recorded = zstandard.ZstdDecompressor().stream_reader((ROOT / "tests/compare/recorded/hot-key.zst").read_bytes())
    written, sales = home / "log", home / "hot_sales"
    written.write_bytes(re.sub(rb"file:/\w+/hot_sales", sales.as_uri().encode(), recorded.read()))
    sales.mkdir()
    parquet.write_table(pa.table({"shop": [7] * 900 + [*range(100)]}), sales / "part-0.parquet")
    assert _hot_key(written, capsys) == (None, "")
    hot, notes = _hot_key(written, capsys, "--name-hot-keys")
    assert hot == {
        "columns": ["shop"], "values": ["7"], "ratio": 0.901, "rows": 1000, "is_whole": True,
        "source": sales.as_uri(), "between": [],
    }  # fmt: skip
    assert "is named" not in notes
    assert "has 90 % of 1,000 rows of" in (home / "skew.html").read_text()
    shutil.rmtree(sales)
    assert _hot_key(written, capsys, "--name-hot-keys") == (
        None, "no hot key of stage 8 is named: its files are gone\n",
    )  # fmt: skip


def test_a_log_without_skew_has_no_hot_key_to_name(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One note."""
    written = made.written(home / "log", [log.started(), log.ended()])
    assert run(["report", str(written), "--name-hot-keys"]) == 0
    assert capsys.readouterr().err.count("no hot key is named: there is no partition_skew behind a shuffle") == 1


def _hot_key(written: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[object, str]:
    """What the document says of the key behind the skew, and the notes."""
    assert run(["report", str(written), "--output", str(written.parent / "skew.html"), "--json", *options]) == 0
    shown, notes = capsys.readouterr()
    (about,) = json.loads(shown)["applications"]
    (skew,) = (each for each in about["findings"] if each["rule"] == "partition_skew")
    return skew["hot_key"], notes


def test_what_if_prints_a_line_for_each_change(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the interval, or why the log does not tell; the report and the document have the same."""
    tasks = [made.ended_task(number, 0, 2000 + number // 2 * 1000, 1000) for number in range(8)]
    lines = [log.started(1000), log.executor("1", time=1000, cores=2), log.job(0, [0]), made.submitted(0, 2000, 8, "s")]
    written = made.written(home / "log", [*lines, *log.starts(tasks), *tasks, log.ended(6000)])
    command = ["report", str(written), "--what-if", "cores=4", "--what-if", "memory=1m"]
    assert run(command) == 0
    _, likely, unknown = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"cores=4: 3\.0 s \(2\.\d s to 3\.\d s\), 40 % shorter", likely)
    assert unknown.startswith("memory=1m: not known: the log does not say what tasks do with less memory")
    assert "cores=4" in (home / "reports" / "app-1.html").read_text()
    assert run([*command, "--json"]) == 0
    (about,) = json.loads(capsys.readouterr().out)["applications"]
    assert [(each["change"], each["ms"]) for each in about["replays"]["forecasts"]] == [
        ("cores=4", 3000), ("memory=1m", None),
    ]  # fmt: skip


def test_what_is_no_change_exits_with_2_or_says_so(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown change is refused first; a log without tasks has nothing to replay."""
    written = made.written(home / "log", [log.started(), log.ended()])
    assert run(["report", str(written), "--what-if", "core=4"]) == 2
    assert "none of cores=N" in capsys.readouterr().err
    assert run(["report", str(written), "--what-if", "cores=4"]) == 0
    assert "no executor or task to replay" in capsys.readouterr().err


def test_a_report_links_to_the_stack_only_with_an_endpoint(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was never exported is in no Jaeger."""
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    written = made.written(home / "log", [log.started(), log.ended()])
    assert run(["report", str(written)]) == 0
    assert "Trace in Jaeger" not in Path(capsys.readouterr().out.strip()).read_text()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{dead_port()}")
    assert run(["report", str(written)]) == 0
    assert "Trace in Jaeger" in Path(capsys.readouterr().out.strip()).read_text()


def test_the_url_of_a_served_report_is_printed(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path of one that was written elsewhere."""
    monkeypatch.setenv("SPARK_APP_REPORTS_URL", "http://localhost:8088")
    written = made.written(home / "log", [log.started(), log.ended()])
    assert run(["report", str(written)]) == 0
    assert capsys.readouterr().out.strip() == "http://localhost:8088/app-1.html"
    assert run(["report", str(written), "--output", str(home / "mine.html")]) == 0
    assert Path(capsys.readouterr().out.strip()) == home / "mine.html"


def test_an_application_id_cannot_name_another_folder(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An id with slashes and dots is a file in the folder of reports."""
    written = made.written(home / "log", [log.started() | {"App ID": "../../x"}, log.ended()])
    assert run(["report", str(written)]) == 0
    assert Path(capsys.readouterr().out.strip()).parent == home / "reports"


def test_an_unknown_run_exits_with_3(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says where it was sought; nothing is written."""
    assert run(["report", "nothing"]) == 3
    assert "no run 'nothing' in" in capsys.readouterr().err
    assert not (home / "reports").exists()


def test_a_report_that_cannot_be_written_exits_with_2(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line names the file and the reason."""
    written = made.written(home / "log", [log.started(), log.ended()])
    assert run(["report", str(written), "--output", str(written / "below.html")]) == 2
    assert f"cannot write report {written}/below.html: " in capsys.readouterr().err


def test_the_default_is_the_newest_event_log(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In spark-events/."""
    (home / "spark-events").mkdir()
    made.written(home / "spark-events" / "log", [log.started(), log.ended()])
    assert run(["report"]) == 0
    assert capsys.readouterr().out.strip().endswith("app-1.html")


WARNING = [log.started(), log.job(0, [0]), log.job_ended(0, error="boom"), log.ended()]


def test_a_condition_that_holds_ends_with_5(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The path is on standard output as ever, one line says why, and the summary has it."""
    written, summary = made.written(home / "log", WARNING), home / "summary.md"
    options = ["--fail-on", "failed_application", "--fail-on", "spill", "--summary-md", str(summary)]
    assert run(["report", str(written), *options]) == 5
    out, err = capsys.readouterr()
    assert Path(out.strip()).is_file()
    (line,) = err.splitlines()
    assert line.startswith("error: --fail-on failed_application: The application failed")
    assert "**Failed:** `--fail-on failed_application`" in summary.read_text(encoding="utf-8")


def test_a_healthy_job_on_a_busy_host_passes_warning(capsys: pytest.CaptureFixture[str]) -> None:
    """Recorded beside programs that kept the processors busy; it fails where the host is named, and so does a limit."""
    starved = str(ROOT / "tests" / "eventlogs" / "causes" / "cpu_starvation-planted.zst")
    assert run(["report", starved, "--fail-on", "warning", "--fail-on", "more:tasks:100000", "--json"]) == 0
    (about,) = json.loads(capsys.readouterr().out)["applications"]
    assert [(found["rule"], found["severity"], found["subject"]) for found in about["findings"]] == [
        ("cpu_starvation", "warning", "host")
    ]
    assert about["figures"]["core_hours"] > 0
    assert run(["report", starved, "--fail-on", "host"]) == 5
    assert "--fail-on host: 1 warning (cpu_starvation)" in capsys.readouterr().err
    assert run(["report", starved, "--fail-on", "more:tasks:1", "--fail-on", "more:price:1"]) == 5
    assert "more:price:1: cannot be judged: no price" in capsys.readouterr().err


def test_conditions_that_do_not_hold_change_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 0."""
    written = made.written(home / "log", [log.started(), log.ended()])
    assert run(["report", str(written), "--fail-on", "warning"]) == 0
    assert capsys.readouterr().err == ""


def test_an_unknown_condition_is_refused_first(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is read or written."""
    assert run(["report", "nothing", "--fail-on", "spil"]) == 2
    assert "did you mean spill?" in capsys.readouterr().err


def test_a_summary_that_cannot_be_written_exits_with_2(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line names the file."""
    written = made.written(home / "log", [log.started(), log.ended()])
    assert run(["report", str(written), "--summary-md", str(home)]) == 2
    assert f"cannot write summary {home}: " in capsys.readouterr().err


@pytest.mark.parametrize("url", [None, "http://localhost:8088"])
def test_the_report_opens_in_the_browser(home: Path, monkeypatch: pytest.MonkeyPatch, url: str | None) -> None:
    """The one that the variable BROWSER names; as a served page, if it is one."""
    if url:
        monkeypatch.setenv("SPARK_APP_REPORTS_URL", url)
    opened = shown_by_browser(home, made.written(home / "log", [log.started(), log.ended()]))
    assert opened == f"{url or (home / 'reports').as_uri()}/app-1.html"


def test_without_a_browser_a_line_says_so(home: Path) -> None:
    """The report is there nevertheless."""
    written = made.written(home / "log", [log.started(), log.ended()])
    done = opening(home, written, browser="false")
    assert (done.returncode, "no browser was found" in done.stderr) == (0, True)


def shown_by_browser(home: Path, log: Path) -> str:
    """The address that a browser is given; this one writes it down."""
    browser = home / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {home}/address\n', encoding="utf-8")
    browser.chmod(0o755)
    assert opening(home, log, browser=f"{browser} %s").returncode == 0
    return (home / "address").read_text(encoding="utf-8")


def opening(home: Path, log: Path, *, browser: str) -> subprocess.CompletedProcess[str]:
    """A report that is opened in a browser; webbrowser reads the variable once for each process."""
    started = [sys.executable, "-m", "spark_app", "report", str(log), "--open"]
    return subprocess.run(
        started, env=os.environ | {"BROWSER": browser}, cwd=ROOT, capture_output=True, text=True, check=False
    )
