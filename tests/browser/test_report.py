"""What a person sees of a report in a real browser: that of a hostile application, wide, narrow, light and dark."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.eventlog.reading import read
from app.report import page
from tests.browser.chromium import Page, chromium
from tests.unit.eventlog import log
from tests.unit.report import made

SECTIONS = (
    "headline",
    "findings",
    "compared",
    "timeline",
    "stages",
    "queries",
    "executors",
    "quality",
    "configuration",
    "logs",
)
WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
DEAD = """
[...document.querySelectorAll('main a[href^="#"]')].filter((e) => !document.querySelector(e.hash)).map((e) => e.hash)
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One browser for all tests."""
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of an application whose texts are all hostile, and of which one query fails."""
    folder, text = tmp_path_factory.mktemp("report"), made.HOSTILE
    *lines, end = made.large(stages=12, tasks=240, queries=4, text=text)
    failing = [
        made.started_query(90, 8500, text, 4),
        log.job(90, [90], time=8500, **{"spark.sql.execution.id": "90", "spark.job.description": text}),
        made.submitted(90, 8500, 1, text),
        log.task(9000, 90, error=text),
        log.stage(90, end=8700, error=text),
        log.job_ended(90, time=8700, error=text),
        log.query_ended(90, time=8700, error=text),
        log.executor(text, time=8800, host="host-a"),
        log.removed(text, time=8900, reason=text),
        log.environment({text: text, "spark.sql.shuffle.partitions": "8"}),
    ]
    written = made.written(
        folder / "log", [{**lines[0]}, {**lines[1], "App Name": text, "User": text}, *lines[2:], *failing, end]
    )
    return page.write(read(written), output=folder / "report.html", compared=[text, text])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
def test_nothing_is_said_in_the_console(browser: Page, report: Path, width: int, scheme: str) -> None:
    """No error, no warning, nothing refused, and nothing asked of a network, at any width and in any colours."""
    browser.open(report, width=width, scheme=scheme)
    assert browser.problems == []


def test_every_section_is_there_and_filled(browser: Page, report: Path) -> None:
    """Each section has a heading and words, and each link of the bar leads to one."""
    browser.open(report)
    assert browser.value("[...document.querySelectorAll('section')].map((e) => e.id)") == list(SECTIONS)
    assert browser.value("[...document.querySelectorAll('section')].every((e) => e.innerText.trim().length > 20)")
    linked = "[...document.querySelectorAll('nav a')].filter((e) => !document.querySelector(e.hash)).length"
    assert browser.value(linked) == 0


def test_links_within_the_page_lead_somewhere(browser: Page, report: Path) -> None:
    """A bar of the timeline and a finding lead to a stage or a query that is listed."""
    browser.open(report)
    assert browser.value(DEAD) == []


def test_hostile_text_is_shown_and_not_run(browser: Page, report: Path) -> None:
    """Markup in names, queries, errors and settings is text: it makes no element, and changes nothing."""
    browser.open(report)
    assert browser.value("document.querySelectorAll('img, script').length") == 1  # the script is ours
    assert browser.value("document.title").startswith("<script>")
    assert browser.value("document.querySelector('#queries').textContent.includes('<script>document.title')")


def test_scripts_that_are_not_ours_are_refused(browser: Page, report: Path) -> None:
    """Even if markup got through, the page's own policy would not run it."""
    browser.open(report)
    browser.value("document.body.appendChild(document.createElement('script')).textContent = 'window.ran = 1'")
    browser.value(
        "document.body.insertAdjacentHTML('beforeend', '<p onclick=\"window.ran = 1\" id=trap>'); trap.click()"
    )
    assert browser.value("window.ran") is None
    assert browser.problems != []


@pytest.mark.parametrize("width", [1280, 768, 375])
def test_the_page_is_never_wider_than_the_window(browser: Page, report: Path, width: int) -> None:
    """Not even with every detail open there is anything to be read sideways."""
    browser.open(report, width=width)
    browser.value("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    scrolled, window = browser.value(WIDTHS)
    assert scrolled == window


def test_colours_follow_the_reader_and_his_choice(browser: Page, report: Path) -> None:
    """Dark for who likes it dark; the button turns it over, and the choice stays."""
    ground = "getComputedStyle(document.body).backgroundColor"
    browser.open(report, scheme="light")
    light = browser.value(ground)
    browser.open(report, scheme="dark")
    dark = browser.value(ground)
    browser.value("document.getElementById('theme').click()")
    assert dark != light
    assert browser.value(ground) == light
    browser.value("localStorage.clear()")


def test_a_detail_opens_by_the_keyboard(browser: Page, report: Path) -> None:
    """Tab reaches what is folded, and Enter unfolds it."""
    browser.open(report)
    browser.value("document.querySelector('.stagerow summary').focus()")
    browser.press("Enter")
    assert browser.value("document.querySelector('.stagerow').open")


def test_the_head_of_a_column_sorts_by_it(browser: Page, report: Path) -> None:
    """The largest come first, by keyboard too."""
    browser.open(report)
    browser.value("document.querySelector('[data-sort=\"2\"]').focus()")
    browser.press("Enter")
    tasks = browser.value(
        "[...document.querySelectorAll('.stagerow')].map((e) => Number(e.dataset.keys.split(' ')[2]))"
    )
    assert tasks == sorted(tasks, reverse=True)
