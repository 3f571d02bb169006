"""What a person does with the flame graph of a live page: it follows the samples, and leaves the person in peace."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.reader import read
from spark_app.observe.event_log_injection import LAUNCH
from spark_app.observe.live import LiveReport
from spark_app.observe.live_stacks import LiveStacks
from spark_app.report import page as report_page
from spark_app.report.served import live
from spark_app.report.served.live import LivePage
from spark_app.report.served.server import PageServer
from spark_app.settings import load_settings
from spark_app.stack_samples.stack_profile import profile
from tests.browser.chromium import Page
from tests.browser.test_flame import BARS, SAID, SHOWN, WIDTHS
from tests.unit.eventlog import log
from tests.unit.stack_samples.made import Taken, run

WHEN: Final = "document.querySelector('#flame-now small').textContent"
TABLES: Final = "document.querySelector('#stacks-now h2 small').textContent"
EVERY_MS: Final = 50
LASTING_MS: Final = 300_000
WHOLE: Final = ["Python", "main", "score:3", "quick:9", "slow:7"]


def write_samples(file: Path, jvm: int) -> None:
    """Those of a worker in task 7, of the last seconds and of the next minutes, as they will have come by then."""
    now = round(time.time() * 1000)
    frames = [
        ("/srv/pyspark/worker.py", "main", 9),
        *(("job.py", *each) for each in (("score", 3), ("slow", 7), ("quick", 9))),
    ]
    rows: list[list[object]] = [
        ["process", "python_worker", 9, jvm, "host", float(EVERY_MS), now, None, "/srv/me", "job.py", [], "/usr"],
        *(["frame", *frame] for frame in frames),
        ["stack", 0, 1, 2],
        ["stack", 0, 1, 3],
        *(
            ["sample", now + at, 5, int(at // EVERY_MS % 10 >= 7), "running", 7, 1.0]
            for at in range(-10_000, LASTING_MS, EVERY_MS)
        ),
    ]
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


class Sampled:
    """An application whose stage 3 runs a UDF, and its live page."""

    def __init__(self, home: Path) -> None:
        jvm, now = os.getpid(), round(time.time() * 1000)
        (home / "stacks" / "repository" / f"x_{jvm}").mkdir(parents=True)
        (home / "stacks" / "repository" / f"x_{jvm}" / "x.jfr").touch()
        write_samples(home / "stacks" / "python" / "9-1.stacks", jvm)
        self.log = home / "app-1.inprogress"
        task = {"Task ID": 7, "Launch Time": now - 20_000, "Executor ID": "driver"}
        begun = {"Event": "SparkListenerTaskStart", "Stage ID": 3, "Stage Attempt ID": 0, "Task Info": task}
        properties = {LAUNCH: f"token-{jvm}", "spark.ui.port": "0"}
        self.append(log.environment(properties), log.started(now - 30_000), log.executor("driver"))
        self.append(log.job(0, [3], time=now - 20_000), log.stage(3, end=None), begun)
        stacks = LiveStacks(home / "stacks", float(EVERY_MS))
        self.report = LiveReport(lambda: self.log, load_settings(), Thresholds(), is_alive=True, stacks=stacks)
        self.page = LivePage(self.report, live.waiting("app-1.inprogress", "The log is being read."))
        self.server = PageServer(0, self.page)

    def append(self, *lines: log.Line) -> None:
        """Spark flushes some lines."""
        with self.log.open("a", encoding="utf-8") as growing:
            growing.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


@pytest.fixture
def sampled(browser: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sampled]:
    """The application, served; afterwards the browser leaves it."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    application = Sampled(tmp_path)
    with closing(application.report), application.server as server, live.serving(server, application.page):
        yield application
        browser.open("about:blank")


def open_followed(browser: Page, sampled: Sampled, **shown: object) -> None:
    """Opens the page, and waits until it has been updated: its first update replaces all of it."""
    browser.open(sampled.server.url, **shown)  # type: ignore[arg-type]
    browser.wait("document.querySelector('.flame [aria-label^=slow]')")
    next_samples(browser, TABLES)


def next_samples(browser: Page, where: str) -> None:
    """Waits until other seconds are shown."""
    before = browser.value(where)
    browser.wait(f"{where} !== {json.dumps(before)}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
def test_the_picture_is_drawn_at_any_width(browser: Page, sampled: Sampled, width: int, scheme: str) -> None:
    """Without a message of the console, within the window, and anew; it says of which seconds it is."""
    open_followed(browser, sampled, width=width, scheme=scheme)
    next_samples(browser, WHEN)
    assert browser.value(SHOWN) == WHOLE
    assert browser.problems == []
    scrolled, window = browser.value(WIDTHS)
    assert scrolled == window
    whole, slow = browser.value(BARS)
    assert slow / whole == pytest.approx(0.7, abs=0.03)
    assert browser.value(WHEN).startswith(browser.value(TABLES).removeprefix("samples of stacks, "))


def test_what_was_gone_into_and_sought_outlasts_new_samples(browser: Page, sampled: Sampled) -> None:
    """As does what it is of; where it has gone, the caller is shown."""
    open_followed(browser, sampled)
    browser.value(
        "((e) => { e.value = 1; e.dispatchEvent(new Event('change')); })(document.querySelector('.flame select'))"
    )
    browser.click(".flame [aria-label^=slow]")
    browser.value("document.querySelector('.flame input').focus()")
    browser.type("slow")
    browser.value("window.mark = document.querySelector('.flame input')")
    browser.hover(".flame .hint")
    next_samples(browser, WHEN)
    assert browser.value(SHOWN) == ["Python", "main", "score:3", "slow:7"]
    assert browser.value(SAID).startswith("“slow” is in 70 % of the time")
    assert browser.value("window.mark === document.activeElement && window.mark.value") == "slow"
    assert browser.value("document.querySelector('.flame select').selectedOptions[0].text").startswith("stage 3: ")


def test_the_picture_stands_still_while_the_keyboard_is_in_it(browser: Page, sampled: Sampled) -> None:
    """The tables have new samples meanwhile; it gets them when the keyboard leaves."""
    open_followed(browser, sampled)
    browser.hover(".flame .hint")
    browser.value("document.querySelector('.flame .find input').focus()")
    browser.press("Tab", "ArrowDown", "ArrowDown")
    when = browser.value(WHEN)
    next_samples(browser, TABLES)
    next_samples(browser, TABLES)
    assert browser.value(WHEN) == when
    assert browser.value("document.activeElement.textContent") == "score:3"
    browser.press("Enter")
    assert browser.value(SHOWN) == ["Python", "main", "score:3", "quick:9", "slow:7"]
    browser.value("document.activeElement.blur()")
    browser.wait(f"{WHEN} !== {json.dumps(when)}")
    assert browser.value(SHOWN) == ["Python", "main", "score:3", "quick:9", "slow:7"]


def test_the_report_at_the_end_has_its_own_picture(browser: Page, sampled: Sampled) -> None:
    """Of all samples, in place of those of the last seconds."""
    open_followed(browser, sampled)
    sampled.append(log.stage(3, end=2900), log.ended(round(time.time() * 1000)))
    taken = Taken()
    taken.add(2210, "main@worker.py:9", "whole@job.py:3!", process=taken.process("python_worker"), task=1, times=30)
    stacks, output = profile(taken.done(), [run(1, 3, 2000, 2900)]), sampled.log.with_name("report.html")
    written = report_page.write(read(sampled.log), output=output, stacks=stacks).path
    sampled.page.end("The application has ended.", written.read_bytes())
    browser.wait("document.querySelector('#stack-samples')")
    assert browser.value(SHOWN) == ["Python", "main", "whole:3"]
    assert browser.value("document.querySelector('#flame-now')") is None
    assert browser.problems == []
