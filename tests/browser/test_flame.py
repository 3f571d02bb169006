"""What a person does with a flame graph: looks for a function, goes into it, by mouse and keyboard, at any width."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from spark_app.annexes.flames import difference_page
from spark_app.eventlog.reader import read
from spark_app.report import page
from spark_app.stack_samples.difference import changes
from spark_app.stack_samples.stack_profile import profile
from tests.browser.chromium import Page
from tests.unit.report import made
from tests.unit.stack_samples.made import PYTHON, TASK, Taken, run
from tests.unit.stack_samples.test_difference import profiled

FOCUSED = "document.activeElement.textContent"
SHOWN = "[...document.querySelectorAll('.flame .bars div')].map((e) => e.textContent)"
SAID = "document.querySelector('.flame .said').textContent"
WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
BARS = "['.flame .bars', '[aria-label^=slow]'].map((e) => document.querySelector(e).getBoundingClientRect().width)"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of an application with a UDF that spends 70 of 100 samples in one function, and a sort."""
    folder, taken = tmp_path_factory.mktemp("report"), Taken()
    executor, worker = taken.process(), taken.process("python_worker")
    for line, times in (("slow@job.py:7!", 70), ("quick@job.py:9!", 30)):
        taken.add(2050, "main@worker.py:9", "score@job.py:3!", line, process=worker, task=1, times=times)
    taken.add(2050, TASK, PYTHON, process=executor, state="waiting", times=40)
    taken.add(2550, TASK, "a.b.Sort.next", process=executor, times=50)
    runs = [run(1, 0, 2000, 2400), run(2, 1, 2500, 2900)]
    log = made.written(folder / "log", made.large(stages=4, tasks=8, queries=2))
    return page.write(read(log), output=folder / "r.html", stacks=profile(taken.done(), runs)).path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
def test_the_picture_is_drawn_at_any_width(browser: Page, report: Path, width: int, scheme: str) -> None:
    """Without a message of the console, and within the window; a bar is as long as its share."""
    browser.open(report, width=width, scheme=scheme)
    assert browser.problems == []
    assert browser.value(SHOWN) == [
        "Python", "JVM", "main", "Executor$TaskRunner.run", "score:3", "Sort.next", "slow:7", "quick:9",
    ]  # fmt: skip
    scrolled, window = browser.value(WIDTHS)
    assert scrolled == window
    whole, slow = browser.value(BARS)
    assert slow / whole == pytest.approx(70 / 150, abs=0.01)


def test_a_search_marks_functions_and_says_their_share(browser: Page, report: Path) -> None:
    """A function of which there are none is said, too."""
    browser.open(report)
    browser.value("document.querySelector('.flame input').focus()")
    browser.type("slow")
    assert browser.value("[...document.querySelectorAll('.flame .match')].map((e) => e.textContent)") == ["slow:7"]
    assert browser.value(SAID) == "“slow” is in 47 % of the time, 70 samples."
    browser.type("er")
    assert browser.value(SAID) == "No function with “slower” has 5 samples."


def test_the_keyboard_walks_through_the_picture(browser: Page, report: Path) -> None:
    """Down to what is called, up to the caller, aside to its neighbour, Enter into it and Escape out of it."""
    browser.open(report)
    browser.value("document.querySelector('.flame .find input').focus()")
    browser.press("Tab")
    walked = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowUp"):
        browser.press(key)
        walked.append(browser.value(FOCUSED))
    assert walked == ["main", "score:3", "slow:7", "quick:9", "slow:7", "score:3"]
    assert browser.value(SAID).startswith("score in job.py:3 (your program): 67 % (")
    browser.press("Enter")
    assert browser.value(SHOWN) == ["Python", "main", "score:3", "slow:7", "quick:9"]
    browser.press("Escape")
    assert "Sort.next" in browser.value(SHOWN)
    assert browser.value(FOCUSED) == "score:3"


def test_a_click_goes_into_a_function_and_a_button_out_of_it(browser: Page, report: Path) -> None:
    """The button is there only then."""
    browser.open(report)
    hidden = "document.querySelector('[data-whole]').hidden"
    assert browser.value(hidden)
    browser.click(".flame [aria-label^='score']")
    assert "Sort.next" not in browser.value(SHOWN)
    browser.click("[data-whole]")
    assert "Sort.next" in browser.value(SHOWN)
    assert browser.value(hidden)


def test_a_stage_has_a_picture_of_its_own(browser: Page, report: Path) -> None:
    """Chosen in the list; who does not see the picture hears each function with its level and its share."""
    browser.open(report)
    browser.value(
        "((e) => { e.value = 3; e.dispatchEvent(new Event('change')); })(document.querySelector('.flame select'))"
    )
    assert browser.value(SHOWN) == ["JVM", "Executor$TaskRunner.run", "Sort.next"]
    roles = browser.roles(".flame .bars")
    assert (roles.count("tree"), roles.count("treeitem")) == (1, 3)


def test_the_tables_say_what_the_picture_says(browser: Page, report: Path) -> None:
    """The hottest line first, of the stages of both queries together; those of Spark; and the samples of each stage."""
    browser.open(report)
    browser.value("document.querySelector('#stack-samples details').open = true")
    first = "e.querySelector('tbody tr').innerText.split(/\\s+/).join(' ')"
    rows = browser.value(f"[...document.querySelectorAll('#stack-samples table')].map((e) => {first})")
    assert rows[0].startswith("slow job.py:7 a query 47 %")
    assert rows[1].startswith("a.b.Sort.next JVM")
    assert rows[-1].startswith("stage 0")


@pytest.fixture(scope="module")
def difference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two runs: a function of the program takes 100 samples instead of 40."""
    file, now, before = tmp_path_factory.mktemp("page") / "grew.html", profiled(slow=100), profiled(slow=40)
    found = changes(now, before)
    difference_page.write(
        file, "shop", now, before, found, names=("app-2", "app-1"), at=datetime(2024, 1, 1, tzinfo=UTC)
    )
    return file


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
def test_what_grew_has_a_colour(browser: Page, difference: Path, width: int, scheme: str) -> None:
    """And what is within the noise has none, in the picture of either run; the words say both counts."""
    browser.open(difference, width=width, scheme=scheme)
    assert browser.problems == []
    scrolled, window = browser.value(WIDTHS)
    assert scrolled == window
    grown = "[...document.querySelectorAll('.flame .bars .grew')].map((e) => e.textContent)"
    same = "[...document.querySelectorAll('.flame .bars .same')].map((e) => e.textContent)"
    assert browser.value(grown) == ["Python", "main", "slow", "dumps"]
    assert "Sort.next" in browser.value(same)
    label = browser.value("document.querySelector('.flame [aria-label^=slow]').ariaLabel")
    assert label.endswith("in the earlier run 40 %, 40 samples, 400 ms: more now")
    browser.value(
        "((e) => { e.value = 1; e.dispatchEvent(new Event('change')); })(document.querySelector('.flame select'))"
    )
    assert sorted(browser.value(grown)) == ["Python", "dumps", "main", "slow"]
