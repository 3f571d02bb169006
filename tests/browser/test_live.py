"""What a person sees of a live page in a real browser: it changes in place, and says when it no longer does."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from spark_app.annexes.live import live_page
from spark_app.annexes.live.live_page import LivePage
from spark_app.annexes.live.live_report import LiveReport
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.reader import read
from spark_app.report import page as report_page
from spark_app.report.page_server import PageServer
from spark_app.settings import load_settings
from tests.browser.chromium import Page
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line
from tests.unit.report import made

WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
SAID = "document.getElementById('connection').textContent"


class Running:
    """An application that runs, by a log that grows, and the page of it."""

    def __init__(self, home: Path, report: LiveReport) -> None:
        self.log = home / "app-1.inprogress"
        self.page = LivePage(report, live_page.waiting("app-1.inprogress", "The log is being read."))
        self.server = PageServer(0, self.page)
        self.url = self.server.url

    def append(self, *lines: Line) -> None:
        """Spark flushes some lines."""
        with self.log.open("a", encoding="utf-8") as growing:
            growing.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


@pytest.fixture
def running(browser: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """An application whose texts are hostile, of some queries and stages, served; afterwards the browser leaves it."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    report = LiveReport(lambda: tmp_path / "app-1.inprogress", load_settings(), Thresholds(), is_alive=True)
    application = Running(tmp_path, report)
    *lines, _ = made.large(stages=12, tasks=240, queries=4, text=made.HOSTILE)
    application.append(*lines)
    with closing(report), application.server as server, live_page.serving(server, application.page):
        yield application
        browser.open("about:blank")


def begin(number: int) -> list[Line]:
    """A job of one stage begins."""
    begun = log.job(number, [number], time=9000, **{"spark.job.description": f"count number {number}"})
    task = made.ended_task(5000 + number, number, 9000, 9)
    return [begun, made.submitted(number, 9000, 8, "count at jobs/a.py:7"), task]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_quiet_and_fits(browser: Page, running: Running, width: int, scheme: str) -> None:
    """No message of the console, no foreign element, no page wider than the window."""
    running.append(*begin(90))
    browser.open(running.url, width=width, scheme=scheme)
    browser.wait("document.querySelector('.open')")
    assert browser.problems == []
    scrolled, window = browser.value(WIDTHS)
    assert scrolled == window
    assert browser.value("document.querySelectorAll('img').length") == 0
    assert browser.value("document.querySelector('.open li span').offsetWidth") > 100


def test_the_page_changes_in_place(browser: Page, running: Running) -> None:
    """A new stage appears; what was opened is open, what was closed is closed, and the window does not move."""
    browser.open(running.url)
    browser.wait("document.querySelector('#stage-3-0')")
    browser.value("document.querySelector('#stage-3-0').open = true")
    browser.value("document.querySelector('.waterfall details').open = false")
    browser.value("document.querySelector('#stage-3-0 summary').focus()")
    browser.value("document.querySelector('#stage-3-0').scrollIntoView({block: 'center', behavior: 'instant'})")
    browser.value("window.mark = 1")
    place = browser.value("document.querySelector('#stage-3-0').getBoundingClientRect().top")
    running.append(*begin(90))
    browser.wait("document.querySelector('#stage-90-0')")
    assert "count number 90" in browser.value("document.querySelector('#now').innerText")
    assert browser.value("window.mark") == 1
    assert browser.value("document.querySelector('#stage-3-0').open")
    assert not browser.value("document.querySelector('.waterfall details').open")
    assert browser.value("document.activeElement === document.querySelector('#stage-3-0 summary')")
    now = browser.value("document.querySelector('#stage-3-0').getBoundingClientRect().top")
    assert now == pytest.approx(place, abs=2)
    assert browser.problems == []


def test_selected_text_stays_selected(browser: Page, running: Running) -> None:
    """Its section waits, all others change."""
    browser.open(running.url)
    browser.wait("document.querySelector('#stage-3-0')")
    browser.value("getSelection().selectAllChildren(document.querySelector('#now .waits'))")
    chosen = browser.value("getSelection().toString()")
    running.append(*begin(90))
    browser.wait("document.querySelector('#stage-90-0')")
    assert browser.value("getSelection().toString()") == chosen
    assert "count number 90" not in browser.value("document.querySelector('#now').innerText")


def test_the_page_becomes_the_report(browser: Page, running: Running) -> None:
    """At the end it has the report, and says where that is."""
    browser.open(running.url)
    browser.wait("document.querySelector('#stage-3-0')")
    running.append(log.ended(20_000))
    written = report_page.write(read(running.log), output=running.log.with_name("report.html")).path
    running.page.end("The application has ended. Its report: /reports/x.html", written.read_bytes())
    browser.wait(f"{SAID}.includes('/reports/x.html')")
    assert browser.value("document.querySelector('#now')") is None
    assert browser.problems == []


def test_a_server_that_is_gone_is_said(browser: Page, running: Running) -> None:
    """With the time of its last answer; the page keeps what it has."""
    browser.open(running.url)
    browser.wait("document.querySelector('#stage-3-0')")
    running.page.stop()
    running.server.stop(live_page.NOTIFY_SECONDS)
    running.server.server_close()
    browser.wait(f"{SAID}.startsWith('No answer since ')")
    assert browser.value("document.querySelector('#stage-3-0') !== null")
