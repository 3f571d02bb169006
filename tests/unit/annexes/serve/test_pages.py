"""The pages of `spark-app serve`: which there are, what leads to a file, and that names are text."""

import json
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from msgspec.structs import replace

from spark_app.annexes.serve.pages import MAX_ON_PAGE, Pages, key_of
from spark_app.annexes.serve.run_files import Kind, LocalRunFiles, State
from spark_app.annexes.serve.runs import Runs
from spark_app.annexes.serve.stack import Alert, Answers, Service, Stack
from spark_app.errors import InputError
from spark_app.eventlog.comparison import baselines, profiling
from spark_app.eventlog.cost import HOUR_MS
from spark_app.eventlog.reader import read
from spark_app.report.page_server import Answer
from spark_app.settings import Prices, load_settings
from tests.unit.eventlog import log
from tests.unit.report import made

NO_PRICES = Prices(currency="EUR", core_hour=None, gib_hour=None)


def pages(home: Path, prices: Prices = NO_PRICES) -> Pages:
    """The pages of a home folder."""
    reports = home / "reports"
    return Pages(Runs(LocalRunFiles(reports / "records", home / "runs", reports), patience=60), prices)


def observed(home: Path, number: int, *, name: str = "daily", end: int = 20_000) -> Path:
    """The stored profile of an application."""
    lines = [log.started(1000 + number) | {"App Name": name, "App ID": f"app-{number}"}, log.executor("1")]
    reading = read(made.written(home / f"app-{number}", [*lines, log.job(0, [0]), log.ended(end)]))
    return baselines.save(home / "reports" / "records", profiling.run_profile(reading))


def key(profile: Path) -> str:
    """The run of a profile in addresses."""
    return key_of(f"{profile.parent.name}/{profile.name}")


def text(answer: Answer) -> str:
    """The page."""
    assert answer.status == HTTPStatus.OK, answer
    return answer.body.decode()


def test_names_from_programs_are_text(tmp_path: Path) -> None:
    """In the list, in links, in the trend and in a comparison."""
    files = [observed(tmp_path, number, name=made.HOSTILE, end=20_000 * (number + 1)) for number in range(2)]
    site, keys = pages(tmp_path), [key(file) for file in files]
    shown = [
        site("/", {}),
        site("/", {"application": made.HOSTILE}),
        site("/", {"application": "<script>other"}),
        site("/compare", {"one": keys[0], "other": keys[1]}),
    ]
    for page in map(text, shown):
        assert page.count("<script>") == 2
        assert "<img" not in page


def test_a_store_that_does_not_answer_is_named(tmp_path: Path) -> None:
    """In the list, which has what was read before, and in the place of a report."""

    class Away(LocalRunFiles):
        """Files of a storage that was there once."""

        def folders(self, kind: Kind) -> Iterator[tuple[str, Iterable[State]]]:
            yield from super().folders(kind)
            if is_away:
                raise InputError("cannot reach s3://shop/runs")

        def content(self, kind: Kind, path: str) -> bytes:
            if is_away:
                raise InputError("cannot reach s3://shop/runs")
            return super().content(kind, path)

    is_away, reports = False, tmp_path / "reports"
    observed(tmp_path, 1)
    runs = Runs(Away(reports / "records", tmp_path / "runs", reports), patience=60)
    site = Pages(runs, NO_PRICES)
    assert "app-1" in text(site("/", {}))
    is_away = True
    shown = text(site("/", {}))
    assert "app-1" in shown
    assert "not up to date: cannot reach s3://shop/runs" in shown
    assert site("/reports/app-1.html", {}).status == HTTPStatus.SERVICE_UNAVAILABLE


def test_the_later_of_two_runs_is_explained(tmp_path: Path) -> None:
    """Whichever comes first in the address; a run without a profile is not found."""
    early, late = (key(observed(tmp_path, number)) for number in (1, 2))
    site = pages(tmp_path)
    assert "app-2 took" in text(site("/compare", {"one": late, "other": early}))
    assert "app-2 took" in text(site("/compare", {"one": early, "other": late}))
    for other in ("", early, "../../secret", "no/such"):
        assert site("/compare", {"one": early, "other": other}).status == HTTPStatus.NOT_FOUND


def test_only_files_of_the_reports_folder_are_served(tmp_path: Path) -> None:
    """No parent folder, no other file, no link out of it."""
    secret = tmp_path / "secret.html"
    secret.write_text("secret")
    reports = tmp_path / "reports"
    (reports / "below").mkdir(parents=True)
    (reports / "below" / "x.html").write_text("below")
    (reports / "index.json").write_text("json")
    (reports / "a b.html").write_text("the report")
    (reports / "link.html").symlink_to(secret)
    (reports / "folder.html").mkdir()
    site = pages(tmp_path)
    assert text(site("/reports/a b.html", {})) == "the report"
    paths = ["../secret.html", str(secret), "below/x.html", "link.html", "folder.html", "index.json", "", ".", ".."]
    for path in (*paths, "..\\secret.html", "a b.html/", "x.html\0"):
        assert site(f"/reports/{path}", {}).status == HTTPStatus.NOT_FOUND


def test_the_list_is_bounded(tmp_path: Path) -> None:
    """The newest are listed; the page says how many there are."""
    folder = tmp_path / "reports" / "records" / "daily"
    folder.mkdir(parents=True)
    for number in range(MAX_ON_PAGE + 1):
        content = {"version": 3, "application": "daily", "id": f"app-{number}", "outcome": "ended"}
        content |= {"started": number, "duration_ms": 1, "core_ms": 1}
        (folder / f"{number}.json").write_text(json.dumps(content))
    page = text(pages(tmp_path)("/", {}))
    assert page.count("data-run=") == MAX_ON_PAGE
    assert f"{MAX_ON_PAGE + 1:,} runs" in page
    assert "app-0<" not in page


@pytest.mark.parametrize(
    ("gib_hour", "gib_ms", "cost"),
    [(None, None, "3.00"), ("0.5", None, "not known"), ("0.5", 4 * HOUR_MS, "5.00"), (None, 4 * HOUR_MS, "3.00")],
)
def test_a_run_has_its_price_where_it_is_known(
    tmp_path: Path, gib_hour: str | None, gib_ms: int | None, cost: str
) -> None:
    """Older profiles do not have the memory: with a price of it, their cost is not known."""
    folder = tmp_path / "reports" / "records" / "daily"
    folder.mkdir(parents=True)
    content = {"version": 3, "application": "daily", "id": "app-1", "outcome": "ended", "started": 1}
    content |= {"duration_ms": 1, "core_ms": 3 * HOUR_MS, "gib_ms": gib_ms}
    (folder / "1.json").write_text(json.dumps(content))
    prices = Prices.model_validate({"currency": "EUR", "core_hour": "1", "gib_hour": gib_hour})
    page = text(pages(tmp_path, prices)("/", {}))
    assert f'data-l="EUR" class="n">{cost}<' in page
    assert "Core-hours and EUR are those of its application" in page
    trends = text(pages(tmp_path, prices)("/", {"application": "daily"}))
    assert ("cost in EUR" in trends) == (cost != "not known")


def stored(home: Path, number: int, **more: object) -> None:
    """A stored profile of an hour of a core."""
    folder = home / "reports" / "records" / "daily"
    folder.mkdir(parents=True, exist_ok=True)
    content = {"version": 3, "application": "daily", "id": f"app-{number}", "outcome": "ended", "duration_ms": 1}
    content |= {"started": number * 86_400_000, "core_ms": HOUR_MS} | more
    (folder / f"{number}.json").write_text(json.dumps(content))


def test_older_runs_are_on_further_pages(tmp_path: Path) -> None:
    """Each run is on one of them; links keep what was searched for."""
    for number in range(MAX_ON_PAGE + 1):
        stored(tmp_path, number, outcome="failed" if number else "ended")
    site = pages(tmp_path)
    first, second = (text(site("/", {"page": page, "q": "app"})) for page in ("1", "2"))
    assert 'href="/?q=app&amp;page=2"' in first
    assert (first.count("data-run="), second.count("data-run=")) == (MAX_ON_PAGE, 1)
    assert ">app-0<" in second
    assert text(site("/", {"page": "99", "q": "app"})) == second
    for page in ("0", "-1", "x", "9" * 30):
        assert text(site("/", {"page": page})).count("data-run=") == MAX_ON_PAGE


def test_labels_lead_to_their_runs_and_costs(tmp_path: Path) -> None:
    """Of all runs by each label, and of the runs that are chosen by others; other parameters choose nothing."""
    stored(tmp_path, 1, labels={"team": made.HOSTILE, "user": "ada"})
    stored(tmp_path, 2, labels={"team": "web", "user": "ada"})
    stored(tmp_path, 3)
    reports = tmp_path / "reports"
    prices = Prices.model_validate({"currency": "EUR", "core_hour": "2", "gib_hour": None})
    site = Pages(Runs(LocalRunFiles(reports / "records", tmp_path, reports), patience=60), prices, ["team", "user"])
    page = text(site("/", {"by": "label.user"}))
    assert 'href="/?by=label.user&amp;label.user=ada"' in page
    assert 'data-l="runs" class="n">2<' in page
    assert 'data-l="EUR" class="n">4.00<' in page
    assert "66.7 %" in page or "67 %" in page
    assert "EUR a day" in page
    assert "<img" not in page
    web = text(site("/", {"label.team": "web", "by": "label.user"}))
    assert (web.count("data-run="), "app-2" in web) == (1, True)
    for query in ({"label.other": "x"}, {"by": "label.other"}, {"by": "text"}, {"from": "yesterday", "to": "2"}):
        assert text(site("/", query)).count("data-run=") == 3
    assert "No run is as you search for." in text(site("/", {"outcome": "killed"}))


def test_a_report_has_the_address_that_a_run_prints(tmp_path: Path) -> None:
    """`reports_url` and its name; the first page has the name of the file that lists reports."""
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "run-1.html").write_text("a report", encoding="utf-8")
    site = pages(tmp_path)
    assert text(site("/run-1.html", {})) == text(site("/reports/run-1.html", {})) == "a report"
    assert text(site("/index.html", {})) == text(site("/", {}))
    assert site("/run-2.html", {}).status == HTTPStatus.NOT_FOUND


def test_findings_lead_to_their_rule(tmp_path: Path) -> None:
    """The first by name, the others by their number; the search finds them."""
    profile = baselines.decoded(observed(tmp_path, 1).read_bytes(), "profile")
    baselines.save(tmp_path / "reports" / "records", replace(profile, findings=["spill", "row_python_udf"]))
    shown = text(pages(tmp_path)("/", {"q": "row_python"}))
    assert '<a href="/docs/diagnoses#spill">spill</a> <small title="row_python_udf">and 1 more</small>' in shown
    assert 'id="spill"' in text(pages(tmp_path)("/docs/diagnoses", {}))
    assert pages(tmp_path)("/docs/secrets", {}).status == HTTPStatus.NOT_FOUND


def test_the_stack_stands_above_the_list(tmp_path: Path) -> None:
    """Its alerts with their section of the runbook, its services with links."""
    reports = tmp_path / "reports"
    runs = Runs(LocalRunFiles(reports / "records", tmp_path / "runs", reports), patience=60)
    stack = Stack(load_settings(), patience=60)
    site = Pages(runs, NO_PRICES, stack=stack)
    service = Service("Jaeger", "traces", "http://localhost:16686", "ok", "good", "ready", None)
    alert = Alert("KafkaDown", "critical", "bad", made.HOSTILE, 0.0, {})
    stack.look = lambda: Answers([service], [alert])  # type: ignore[method-assign]
    shown = text(site("/", {}))
    assert '<a href="http://localhost:16686">Jaeger</a>' in shown
    assert '<a href="/docs/runbook#kafkadown">KafkaDown</a>' in shown
    assert made.HOSTILE not in shown
    stack.look = lambda: Answers([service], None)  # type: ignore[method-assign]
    assert "whether alerts fire is not known" in text(site("/", {}))
