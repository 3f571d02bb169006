"""What a person sees of `spark-app serve` in a real browser: hostile names, search, trends, two runs compared."""

import threading
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from spark_app.annexes.serve.pages import Pages
from spark_app.annexes.serve.run_files import LocalRunFiles
from spark_app.annexes.serve.runs import Runs
from spark_app.annexes.serve.stack import Alert, Answers, Service, Stack
from spark_app.eventlog.comparison import baselines, profiling
from spark_app.eventlog.reader import read
from spark_app.report import page
from spark_app.report.page_server import PageServer
from spark_app.settings import Prices, load_settings
from tests.browser.chromium import Page
from tests.unit.eventlog import log
from tests.unit.report import made

WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
SHOWN = "[...document.querySelectorAll('.runs tbody tr')].filter((e) => e.offsetHeight > 0).length"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a list of four runs of two applications, of which one has a hostile name; one run has a report."""
    home = tmp_path_factory.mktemp("home")
    for number, (name, end) in enumerate(
        [("daily", 20_000), ("daily", 60_000), (made.HOSTILE, 9000), ("daily", 21_000)]
    ):
        lines = [log.started(1000 + number) | {"App Name": name, "App ID": f"app-{number}"}, log.executor("1")]
        lines += [log.job(0, [0]), log.stage(0, end=end - 1), log.job_ended(0, time=end), log.ended(end)]
        reading = read(made.written(home / f"app-{number}", lines))
        saved = replace(profiling.run_profile(reading), labels={"user": "me"})
        baselines.save(home / "reports" / "records", saved)
    page.write(reading, output=home / "reports" / "app-3.html")
    listed = Runs(LocalRunFiles(home / "reports" / "records", home / "runs", home / "reports"), patience=60)
    with PageServer(0, Pages(listed, Prices(currency="EUR", core_hour=None, gib_hour=None), ["user"])) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.url
        server.shutdown()


@pytest.fixture(scope="module")
def first_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Stack]]:
    """The address of the first page of a stack without runs, and the stack: one alert, one service down, one up."""
    home = tmp_path_factory.mktemp("stack")
    listed = Runs(LocalRunFiles(home / "reports" / "records", home / "runs", home / "reports"), patience=60)
    stack = Stack(load_settings())
    services = [
        Service("Jaeger", "traces", "http://localhost:16686", "ok", "good", "knows 7 services", None),
        Service("Kafka", "topics of the streams", None, "down", "bad", made.HOSTILE, "docker logs kafka"),
    ]
    alerts = [Alert("KafkaDown", "critical", "bad", made.HOSTILE, 1.7e12, {"dashboard": "http://localhost:3000/d/x"})]
    stack.look = lambda: Answers(services, alerts)  # type: ignore[method-assign]
    prices = Prices(currency="EUR", core_hour=None, gib_hour=None)
    with PageServer(0, Pages(listed, prices, ["user"], stack)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.url, stack
        server.shutdown()


@pytest.mark.parametrize("width", [1300, 400])
def test_the_first_page_of_a_stack_is_quiet_fits_and_stays_up_to_date(
    browser: Page, first_page: tuple[str, Stack], width: int
) -> None:
    """Its alerts lead to the runbook, whose section is there; what changes later is on the page without a click."""
    url, stack = first_page
    browser.open(url, width=width)
    assert browser.problems == []
    scrolled, window = browser.value(WIDTHS)
    assert scrolled == window
    before, stack.look = stack.look, lambda: Answers([], [])  # type: ignore[method-assign]
    try:
        browser.wait("document.querySelector('#alerts').innerText.includes('No alert fires.')")
    finally:
        stack.look = before  # type: ignore[method-assign]
    browser.wait("document.querySelector('#alerts a')?.textContent === 'KafkaDown'")
    browser.value("document.querySelector('#alerts a').click()")
    browser.wait("location.hash === '#kafkadown' && document.querySelector('#kafkadown') !== null")
    scrolled, window = browser.value(WIDTHS)
    assert scrolled == window
    assert browser.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
def test_the_list_is_quiet_and_fits(browser: Page, served: str, width: int, scheme: str) -> None:
    """No message of the console, no foreign element, no page wider than the window."""
    for path in ("", "?application=daily"):
        browser.open(served + path, width=width, scheme=scheme)
        assert browser.problems == []
        scrolled, window = browser.value(WIDTHS)
        assert scrolled == window
        assert browser.value("document.querySelectorAll('img, script').length") == 2  # the scripts are ours


def test_the_search_and_the_application_choose_runs(browser: Page, served: str) -> None:
    """The search, the application by a link, with a trend."""
    browser.open(served)
    assert browser.value(SHOWN) == 4
    browser.value("document.getElementById('search').focus()")
    browser.type("daily app-1")
    browser.click(".find button")
    browser.wait(f"location.search === '?q=daily+app-1&from=&to=' && {SHOWN} === 1")
    browser.open(served)
    browser.click(".chip[href$='=daily']")
    browser.wait("document.title === 'daily'")
    assert browser.value(SHOWN) == 3
    assert browser.value("document.querySelectorAll('#trend figure:first-child rect').length") == 3
    browser.click("#costs .chip[href$='by=label.user']")
    browser.wait("document.querySelector('#costs td a')?.textContent === 'me'")
    browser.click("#costs td a")
    browser.wait("location.search.includes('label.user=me') && document.readyState === 'complete'")
    assert browser.value(SHOWN) == 3
    assert browser.problems == []


def test_two_clicks_compare_two_runs(browser: Page, served: str) -> None:
    """The later one is the one that is explained, whichever is clicked first."""
    browser.open(served + "?application=daily")
    browser.click("tr:nth-child(1) [data-run]")
    browser.click("tr:nth-child(2) [data-run]")
    browser.wait("document.title === 'daily: two runs compared'")
    assert browser.value("document.querySelector('#compared').innerText.includes('app-3 took')")
    assert browser.problems == []


def test_a_report_opens_with_its_script(browser: Page, served: str) -> None:
    """The headers of the server refuse no part of it."""
    browser.open(served)
    browser.click("a[href='/reports/app-3.html']")
    browser.wait("document.title.startsWith('daily ·') && document.documentElement.classList.contains('has-script')")
    assert browser.problems == []
