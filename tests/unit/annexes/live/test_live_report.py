"""The report of an application while its log grows, is renamed at its end, or another one begins."""

import json
from pathlib import Path

import pytest

from spark_app.annexes.live.live_report import LiveReport
from spark_app.eventlog.bridge import eviction
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.settings import Settings, load_settings
from tests.eventlogs.months import Roller, Stream
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Everything below one folder."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    return load_settings()


def append(file: Path, *lines: Line) -> None:
    """Spark flushes some lines."""
    with file.open("a", encoding="utf-8") as growing:
        growing.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def test_the_page_follows_the_log(tmp_path: Path, settings: Settings) -> None:
    """There is one when the application has begun, and a new one only if there are new events, up to its end."""
    file, finished = tmp_path / "app-1.inprogress", tmp_path / "app-1"
    render = LiveReport(
        lambda: next((path for path in (file, finished) if path.exists()), None), settings, Thresholds(), is_alive=True
    )
    assert render() is None
    file.touch()
    assert render() is None
    append(file, log.started(), log.executor(), log.job(0, [0]))
    assert b"Job 0 began; no open stage of it is in the log yet." in (render() or b"")
    assert render() is None
    append(file, log.stage(0), log.task(0, 0), log.stage(0, end=2900), log.job_ended(0), log.ended())
    file.rename(finished)
    page = render() or b""
    assert b'<span class="pill unsure">ended</span>' in page
    assert b'id="stage-0-0"' in page
    render.close()


def test_another_application_takes_the_place_of_the_first(tmp_path: Path, settings: Settings) -> None:
    """As where a command starts several, one after the other."""
    files = [tmp_path / f"app-{number}.inprogress" for number in (1, 2)]
    for number, file in enumerate(files):
        append(file, log.started() | {"App Name": f"name {number}"})
    current = iter(files)
    render = LiveReport(lambda: next(current), settings, Thresholds())
    pages = [render() or b"", render() or b""]
    assert [b"name 0" in page for page in pages] == [True, False]
    assert [b"name 1" in page for page in pages] == [False, True]
    render.close()


def test_a_process_that_is_known_to_run_is_said_to(tmp_path: Path, settings: Settings) -> None:
    """Else the page says only that the log has no end."""
    file = tmp_path / "app-1.inprogress"
    append(file, log.started())
    reports = [LiveReport(lambda: file, settings, Thresholds(), is_alive=each) for each in (True, None)]
    alive, unknown = (report() or b"" for report in reports)
    assert b'<span class="pill good">running</span>' in alive
    assert b'<span class="pill unsure">no end in its log</span>' in unknown
    assert b"The log has no end" not in unknown
    for report in reports:
        report.close()


def test_a_page_of_a_stream_is_bounded(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """It shows each query over its whole time, and of other work what is recent, and says so."""
    monkeypatch.setattr(eviction, "MAX_OF_STREAMS", 5)
    stream, roller = Stream(), Roller(tmp_path, file_bytes=10**6)
    render = LiveReport(lambda: roller.log, settings, Thresholds())
    roller.write(b"".join(line + b"\n" for line in stream.head))
    for number in range(30):
        roller.write(stream.batch(number))
    page = render() or b""
    roller.finish()
    render.close()
    assert b"25 older SQL executions and their jobs are left out" in page
    assert page.count(b'id="stage-') <= 6 * 3
