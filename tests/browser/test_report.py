"""What a person sees of a report in a real browser: that of a hostile application, wide, narrow, light and dark."""

from pathlib import Path
from typing import Any

import pytest

from spark_app.eventlog.reader import read
from spark_app.report import page, run_info
from spark_app.runs import model_card
from tests.browser.chromium import Page
from tests.unit.eventlog import log
from tests.unit.report import cards, made
from tests.unit.report.conftest import TRACE, line, span

SECTIONS = (
    "headline",
    "findings",
    "compared",
    "timeline",
    "stages",
    "queries",
    "executors",
    "what-if",
    "configuration",
)
WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
DEAD = """
[...document.querySelectorAll('main a[href^="#"]')].filter((e) => !document.querySelector(e.hash)).map((e) => e.hash)
"""


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
    return page.write(read(written), output=folder / "report.html", compared=made.comparison(text)).path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
def test_the_console_has_no_message(browser: Page, report: Path, width: int, scheme: str) -> None:
    """No error, no warning, no request to a network, at any width and in both colour schemes."""
    browser.open(report, width=width, scheme=scheme)
    assert browser.problems == []


def test_every_section_has_content(browser: Page, report: Path) -> None:
    """Each section has a heading and text, and each link of the bar leads to one."""
    browser.open(report)
    assert browser.value("[...document.querySelectorAll('section')].map((e) => e.id)") == list(SECTIONS)
    assert browser.value("[...document.querySelectorAll('section')].every((e) => e.innerText.trim().length > 20)")
    linked = "[...document.querySelectorAll('nav a')].filter((e) => !document.querySelector(e.hash)).length"
    assert browser.value(linked) == 0


def test_links_within_the_page_have_targets(browser: Page, report: Path) -> None:
    """A bar of the timeline and a finding link to a listed stage or query."""
    browser.open(report)
    assert browser.value(DEAD) == []


def test_hostile_text_is_shown_and_not_executed(browser: Page, report: Path) -> None:
    """Markup in names, queries, errors and settings creates no element."""
    browser.open(report)
    assert browser.value("document.querySelectorAll('img, script').length") == 1  # the script is ours
    assert browser.value("document.title").startswith("<script>")
    assert browser.value("document.querySelector('#queries').textContent.includes('<script>document.title')")


def test_the_content_security_policy_refuses_foreign_scripts(browser: Page, report: Path) -> None:
    """Even if markup got through the escaping."""
    browser.open(report)
    browser.value("document.body.appendChild(document.createElement('script')).textContent = 'window.ran = 1'")
    browser.value(
        "document.body.insertAdjacentHTML('beforeend', '<p onclick=\"window.ran = 1\" id=trap>'); trap.click()"
    )
    assert browser.value("window.ran") is None
    assert browser.problems != []


@pytest.mark.parametrize("width", [1280, 768, 375])
def test_the_page_is_never_wider_than_the_window(browser: Page, report: Path, width: int) -> None:
    """Also with all details open."""
    browser.open(report, width=width)
    browser.value("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    scrolled, window = browser.value(WIDTHS)
    assert scrolled == window


def test_colours_follow_the_system_and_the_button(browser: Page, report: Path) -> None:
    """The choice is stored."""
    ground = "getComputedStyle(document.body).backgroundColor"
    browser.open(report, scheme="light")
    light = browser.value(ground)
    browser.open(report, scheme="dark")
    dark = browser.value(ground)
    browser.value("document.getElementById('theme').click()")
    assert dark != light
    assert browser.value(ground) == light
    browser.value("localStorage.clear()")


def test_a_click_anywhere_in_a_row_opens_its_stage(browser: Page, report: Path) -> None:
    """And closes it again."""
    browser.open(report)
    for is_open in (True, False):
        browser.click(".stagerow td:last-child")
        assert browser.value("document.querySelector('.stagerow details').open") is is_open


def test_a_detail_opens_by_the_keyboard(browser: Page, report: Path) -> None:
    """Tab reaches it, and Enter opens it."""
    browser.open(report)
    browser.value("document.querySelector('.stagerow summary').focus()")
    browser.press("Enter")
    assert browser.value("document.querySelector('.stagerow details').open")
    assert browser.value("document.querySelector('.stagemore').getBoundingClientRect().height") > 0


def test_the_header_of_a_column_sorts(browser: Page, report: Path) -> None:
    """The largest first, by keyboard too; the header of the column says so, and not the button in it."""
    browser.open(report)
    browser.value("document.querySelector('[data-sort=\"2\"] button').focus()")
    browser.press("Enter")
    tasks = browser.value(
        "[...document.querySelectorAll('.stagebody')].map((e) => Number(e.dataset.keys.split(' ')[2]))"
    )
    assert tasks == sorted(tasks, reverse=True)
    said = "[...document.querySelectorAll('[aria-sort]')].map((e) => [e.tagName, e.ariaSort, e.dataset.sort])"
    assert browser.value(said) == [["TH", "descending", "2"]]


@pytest.mark.parametrize("width", [1280, 375])
def test_stages_are_a_table_for_who_does_not_see_it(browser: Page, report: Path, width: int) -> None:
    """Each number is in a row with the name of its stage, and below the header of its column, also on a phone."""
    browser.open(report, width=width)
    roles = browser.roles(".stages")
    rows = browser.value("document.querySelectorAll('.stagerow').length")
    assert (roles.count("table"), roles.count("row"), roles.count("rowheader")) == (1, 1 + rows, rows)
    assert roles.count("columnheader") == (10 if width == 1280 else 9)
    assert roles.count("cell") == 9 * rows


def test_a_click_copies_a_finding_as_markdown(browser: Page, report: Path) -> None:
    """From a file, whose page has no permission of its own; the button says so and goes back to its name."""
    browser.open(report)
    browser.click("[data-copy]")
    browser.wait("document.querySelector('[data-copy]').textContent === 'Copied'")
    copied = browser.clipboard
    assert copied == browser.value("document.querySelector('[data-copy]').dataset.copy")
    assert copied.startswith("**warning: ")
    assert "<script>" not in copied
    assert browser.problems == []
    browser.wait("document.querySelector('[data-copy]').textContent === 'Copy as Markdown'")


def test_a_click_copies_where_the_page_may_not_use_the_clipboard(browser: Page, report: Path) -> None:
    """As in a browser that gives the clipboard only to pages of https."""
    browser.open(report)
    browser.value("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")
    browser.click(".finding:nth-child(2) [data-copy]")
    browser.wait("document.querySelector('.finding:nth-child(2) [data-copy]').textContent === 'Copied'")
    assert browser.clipboard == browser.value(
        "document.querySelector('.finding:nth-child(2) [data-copy]').dataset.copy"
    )


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of two streaming queries, of which one has a hostile name and topic, and was idle for a while."""
    folder, lines = tmp_path_factory.mktemp("streams"), [log.started()]
    for number, (query, name) in enumerate((("q-1", "orders"), ("q-2", made.HOSTILE))):
        state = {"numRowsTotal": 10, "memoryUsedBytes": 4096}
        source = {
            "numInputRows": 5,
            "endOffset": f'{{"{number}":{{"0":1}}}}',
            "latestOffset": f'{{"{number}":{{"0":9}}}}',
        }
        event_time = {"max": "1970-01-01T00:00:01.000Z", "watermark": "1970-01-01T00:00:00.500Z"}
        more: dict[str, Any] = {"name": name, "sources": [source], "stateOperators": [state], "eventTime": event_time}
        for batch, start in enumerate([*range(2000, 20_000, 1000), *range(60_000, 90_000, 1000)]):
            lines.append(made.stream_batch(batch, start, query=query, run=query, **more))
    written = made.written(folder / "log", [*lines, log.ended(100_000)])
    return page.write(read(written), output=folder / "report.html").path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 768, 375])
def test_charts_of_streams_fit(browser: Page, streams: Path, width: int, scheme: str) -> None:
    """No message of the console, no label over another, no page wider than the window; every chart has its height."""
    browser.open(streams, width=width, scheme=scheme)
    assert browser.problems == []
    scrolled, window = browser.value(WIDTHS)
    assert scrolled == window
    assert browser.value(OVERLAPS) == []
    assert browser.value(DEAD) == []
    heights = browser.value("[...document.querySelectorAll('.over-time svg')].map((e) => e.clientHeight)")
    assert len(heights) == 12
    assert min(heights) > 50


def test_idle_time_is_seen_in_each_chart(browser: Page, streams: Path) -> None:
    """As a stretch of its own colour, as wide as it was long."""
    browser.open(streams)
    widths = browser.value(
        "[...document.querySelectorAll('.over-time svg')].map((e) => [e.querySelector('.idle'), e])"
        ".map(([idle, e]) => idle.getBoundingClientRect().width / e.clientWidth)"
    )
    assert widths == pytest.approx([40.5 / 98] * 12, abs=0.01)


def test_colours_of_charts_are_those_of_their_keys(browser: Page, streams: Path) -> None:
    """In both schemes: a line without a colour would not be seen."""
    for scheme in ("light", "dark"):
        browser.open(streams, scheme=scheme)
        drawn = browser.value(
            "[...document.querySelectorAll('.over-time path:not(.limit)')].map((e) => e.classList.contains('line')"
            " ? getComputedStyle(e).stroke : getComputedStyle(e).fill)"
        )
        assert drawn
        assert "none" not in drawn


OVERLAPS = """
[...document.querySelectorAll('.scale, .axis')].flatMap((axis) => {
  const shown = [...axis.children].map((e) => e.getBoundingClientRect()).filter((box) => box.width > 0);
  return shown.slice(1).filter((box, number) => box.left < shown[number].right).map(() => axis.innerText);
})
"""


@pytest.mark.parametrize("width", [1280, 900, 375])
@pytest.mark.parametrize("longest", [90, 9_000, 98_000, 149_000, 900_000, 80_000_000, 2_592_000_000])
def test_labels_of_an_axis_do_not_overlap(browser: Page, tmp_path: Path, width: int, longest: int) -> None:
    """Whatever the time, from milliseconds to a month."""
    tasks = [made.ended_task(0, 0, 2200, 3), made.ended_task(1, 0, 2200, longest)]
    lines = [
        log.started(),
        log.executor("1"),
        log.job(0, [0]),
        log.stage(0, tasks=2),
        *tasks,
        log.ended(2200 + longest),
    ]
    browser.open(page.write(read(made.written(tmp_path / "log", lines)), output=tmp_path / "r.html").path, width=width)
    assert browser.value(OVERLAPS) == []


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The reports of two runs with a model: all texts of one are hostile, the other is as usual."""
    folder = tmp_path_factory.mktemp("models")
    reading = read(made.written(folder / "log", [log.started(), log.ended()]))
    reports = {}
    for name, card in (("hostile", cards.hostile(made.HOSTILE)), ("usual", cards.card())):
        run = folder / name
        model_card.write(run, card)
        (run / "traces.jsonl").write_text(
            line("resourceSpans", "scopeSpans", "spans", span("1", "", "run ml.refunds", 1000, 2000))
        )
        reports[name] = page.write(reading, output=folder / f"{name}.html", run=run_info.read(run)).path
    return reports


@pytest.mark.parametrize("name", ["hostile", "usual"])
@pytest.mark.parametrize("width", [1280, 375])
def test_the_page_of_a_model_fits(browser: Page, models: dict[str, Path], width: int, name: str) -> None:
    """No message of the console, no page wider than the window, square plots within their figures."""
    browser.open(models[name], width=width)
    browser.value("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert browser.problems == []
    scrolled, window = browser.value(WIDTHS)
    assert scrolled == window
    assert browser.value("document.querySelectorAll('#model img').length") == 0
    boxes = browser.value(
        "[...document.querySelectorAll('.square svg')].map((e) => [e.clientWidth, e.clientHeight, "
        "e.closest('figure').clientWidth])"
    )
    assert len(boxes) == 3
    assert all(200 < wide == high < figure for wide, high, figure in boxes)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_curves_of_a_model_are_told_apart_without_colour(browser: Page, models: dict[str, Path], scheme: str) -> None:
    """Production's is dashed and chance is dotted; none has the colour of the ground, in either scheme."""
    browser.open(models["usual"], scheme=scheme)
    drawn = browser.value(
        "[...document.querySelectorAll('.square')].map((e) => ['.line.query', '.line.run', '.reference']"
        ".map((line) => getComputedStyle(e.querySelector(line))).map((e) => [e.stroke, e.strokeDasharray]))"
    )
    ground = browser.value("getComputedStyle(document.querySelector('.square svg')).backgroundColor")
    for lines in drawn:
        assert len({dashes for _, dashes in lines}) == 3
        assert len({ground, *(colour for colour, _ in lines)}) == 4


FITS, JOBS = 14, 35


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a training: 14 fits with 35 jobs each."""
    folder = tmp_path_factory.mktemp("trained")
    reading = read(made.written(folder / "log", made.training(fits=FITS, jobs=JOBS, trace_id=TRACE)))
    run = folder / "run"
    model_card.write(run, cards.card())
    spans = [span("1", "", "run ml.refunds", 1000, 2000 + 100 * FITS * JOBS)]
    spans += [span(str(2 + fit), "1", "fit random_forest", 2000 + 3500 * fit, 5500 + 3500 * fit) for fit in range(FITS)]
    (run / "traces.jsonl").write_text("".join(line("resourceSpans", "scopeSpans", "spans", each) for each in spans))
    return page.write(reading, output=folder / "report.html", run=run_info.read(run)).path


def test_the_page_of_a_training_is_a_few_screens_on_a_phone(browser: Page, trained: Path) -> None:
    """It was 125,000 px: stages and queries of a fit are one line until it is opened, and sections fold."""
    browser.open(trained, width=390)
    assert browser.value("document.documentElement.scrollHeight") < 7_000
    assert browser.value("document.querySelectorAll('.stages > .group').length") == FITS
    assert browser.value("document.querySelectorAll('.group .stagerow').length") > 400
    browser.click(".stages > .group > summary")
    assert browser.value("document.querySelector('.stagerow').checkVisibility()")


def test_a_link_to_a_folded_stage_opens_its_group(browser: Page, trained: Path) -> None:
    """Bars of the timeline and findings lead there."""
    browser.open(trained)
    anchor = browser.value("document.querySelector('.group .stagerow details').id")
    browser.value(f"location.hash = '#{anchor}'")
    browser.wait(f"document.getElementById('{anchor}').closest('.group').open")


def test_sorted_stages_of_a_training_are_one_list(browser: Page, trained: Path) -> None:
    """The longest of all fits first."""
    browser.open(trained)
    browser.click('[data-sort="1"]')
    assert browser.value("document.querySelectorAll('.stages > table:first-child .stagerow').length") > 400
    assert not browser.value("[...document.querySelectorAll('.stages > .group')].some((e) => e.checkVisibility())")


def test_sections_of_a_model_are_open_on_a_wide_page(browser: Page, trained: Path) -> None:
    """Only a phone has too little room for them."""
    for width, is_open in ((1280, True), (390, False)):
        browser.open(trained, width=width)
        assert browser.value("[...document.querySelectorAll('#model .roomy')].every((e) => e.open)") == is_open
