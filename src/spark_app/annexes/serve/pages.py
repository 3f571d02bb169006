"""The pages of `spark-app serve`: all runs, the trend of one application, two runs compared, and the reports."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import jinja2
from markupsafe import Markup

from spark_app.annexes.serve import documents
from spark_app.annexes.serve.runs import APPLICATION, COLUMNS, DAY, LABEL, Chosen, Group, RunRow, Runs
from spark_app.annexes.serve.stack import Stack
from spark_app.commands import plugins
from spark_app.errors import InputError
from spark_app.eventlog.comparison.compare import compare
from spark_app.report import page
from spark_app.report.page_server import Answer, refusal
from spark_app.settings import Prices

MAX_ON_PAGE: Final = 200
"""Runs on a page of the list."""
MAX_NAMES: Final = 40
"""Applications that are offered."""
MAX_GROUPS: Final = 50
"""Rows of the costs."""
MAX_BARS: Final = 200
"""Runs, or days, in a trend: the newest."""
DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")


Shown = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Bar:
    """A run in a trend: its place and its height in a chart of 1000 by 100, and what it says."""

    left: float
    width: float
    height: float
    mood: str
    title: str
    report: str | None


@dataclass(frozen=True, slots=True)
class Trend:
    """A number over the runs of one application, from the oldest to the newest; `top` is the highest."""

    name: str
    top: str
    bars: list[Bar]


class Pages:
    """Answers requests by their path. Only names that were listed lead to files."""

    def __init__(self, runs: Runs, prices: Prices, labels: Sequence[str] = (), stack: Stack | None = None) -> None:
        """Reads nothing yet.

        Args:
            runs: What is listed.
            prices: What a core-hour costs.
            labels: Those by which runs are chosen and costs are added up.
            stack: The stack whose services and alerts stand above the list; None without one.
        """
        self._runs, self._prices, self._labels, self._stack = runs, prices, labels, stack

    def __call__(self, path: str, query: Mapping[str, str]) -> Answer:
        """The page of a path."""
        match path.split("/"):
            case ["", "" | "index.html"]:
                return self._list(query)
            case ["", "health"]:
                return Answer(b"ok\n", kind="text/plain; charset=utf-8")
            case ["", "docs", name] if (document := documents.page(name)) is not None:
                return _page("document.html.j2", name=document[0], content=document[1])
            case ["", "compare"]:
                return self._compared(query.get("one", ""), query.get("other", ""))
            case ["", "reports", *names]:
                return self._report("/".join(names))
            case ["", name] if name.endswith(".html"):  # what `reports_url` and a name of a report make
                return self._report(name)
        return refusal(HTTPStatus.NOT_FOUND, "there is no such page")

    def _list(self, query: Mapping[str, str]) -> Answer:
        (is_whole, trouble), chosen, address = self._look(), self._chosen(query), Address(query)
        total = self._runs.count(chosen)
        last = max(1, -(-total // MAX_ON_PAGE))
        number = min(max(1, int(query["page"])), last) if _is_number(query.get("page", "")) else 1
        by = query.get("by", APPLICATION)
        by = by if by in self._keys else APPLICATION
        stack = None if APPLICATION in query else self._stack
        return _page(
            "runs.html.j2",
            stack=stack is not None,
            now=stack.look() if stack is not None else None,
            documents=documents.NAMES,
            to_try=plugins.examples() if stack is not None else {},
            runs=self._runs.newest_first(chosen, most=MAX_ON_PAGE, skipped=(number - 1) * MAX_ON_PAGE),
            total=total,
            number=number,
            last=last,
            is_whole=is_whole,
            trouble=trouble,
            applications=self._runs.names(most=MAX_NAMES),
            application=query.get(APPLICATION),
            words=chosen.words,
            first_day=chosen.first_day or "",
            last_day=chosen.last_day or "",
            address=address,
            labels=self._labels,
            keys=self._keys,
            by=by,
            groups=self._groups(chosen, by, most=MAX_GROUPS),
            trends=self._trends(chosen) if APPLICATION in query else self._trends_of_days(chosen),
            currency=self._currency,
            price=self._price,
        )

    def _look(self) -> tuple[bool, str | None]:
        """Whether all has been read, and what hinders that; what was read before is listed all the same."""
        try:
            return self._runs.look(), None
        except InputError as error:
            return True, str(error)

    @property
    def _keys(self) -> list[str]:
        """What runs are chosen by, and costs added up, as addresses name it."""
        return [*COLUMNS, *(f"{LABEL}{label}" for label in self._labels)]

    def _chosen(self, query: Mapping[str, str]) -> Chosen:
        first, last = (query.get(name, "") for name in ("from", "to"))
        return Chosen(
            words=query.get("q", ""),
            equal={key: query[key] for key in self._keys if key in query},
            first_day=first if DATE.fullmatch(first) else None,
            last_day=last if DATE.fullmatch(last) else None,
        )

    def _groups(self, chosen: Chosen, by: str, *, most: int) -> list[Group]:
        return self._runs.groups(chosen, by, self._prices, most=most)

    def _trends(self, chosen: Chosen) -> list[Trend]:
        """Of the runs of one application: how long each took, and what it cost."""
        oldest_first = self._runs.newest_first(chosen, most=MAX_BARS)[::-1]
        duration, hours = (environment().filters[name] for name in ("duration", "hours"))
        cores = _trend("core-hours", [_of_run(run, run.core_hours, hours) for run in oldest_first], hours)
        costs = [_of_run(run, _float(self._price(run)), _shown_money) for run in oldest_first]
        cost = _trend(f"cost in {self._currency}", costs, _shown_money)
        return [
            _trend("duration", [_of_run(run, run.duration_ms, duration) for run in oldest_first], duration),
            cost if self._currency and cost.bars else cores,
        ]

    def _trends_of_days(self, chosen: Chosen) -> list[Trend]:
        """Of all runs: how many there were on each day, and what they cost; none for a single day."""
        days = self._groups(chosen, DAY, most=MAX_BARS)[::-1]
        hours, count = (environment().filters[name] for name in ("hours", "count"))
        number = _trend("runs a day", [_of_day(day, day.runs, count) for day in days], count)
        if self._currency:
            cost = _trend(
                f"{self._currency} a day", [_of_day(day, _float(day.price), _shown_money) for day in days], _shown_money
            )
        else:
            cost = _trend("core-hours a day", [_of_day(day, day.core_hours, hours) for day in days], hours)
        return [number, cost] if len(days) > 1 else []

    @property
    def _currency(self) -> str | None:
        """That of the prices; None without any."""
        return self._prices.currency if self._prices.has_any else None

    def _price(self, run: RunRow) -> Decimal | None:
        """What a run cost; None where nothing has a price, or it is not known what the run took."""
        return None if run.spent is None else run.spent.price(self._prices)

    def _compared(self, *keys: str) -> Answer:
        self._look()
        found = [self._runs.with_profile(f"{key}.json") for key in dict.fromkeys(keys)]
        chosen = sorted((run for run in found if run is not None), key=lambda run: run.started)
        if len(chosen) != 2:
            return refusal(HTTPStatus.NOT_FOUND, "one of the runs has no run profile, or it was deleted")
        try:
            before, now = (self._runs.profile(str(run.profile)) for run in chosen)
        except InputError as error:
            return refusal(HTTPStatus.NOT_FOUND, str(error))
        return _page("versus.html.j2", before=chosen[0], now=chosen[1], compared=compare(before, now))

    def _report(self, name: str) -> Answer:
        try:
            content = self._runs.report(name)
        except InputError as error:
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        return refusal(HTTPStatus.NOT_FOUND, "there is no such report") if content is None else Answer(content)


class Address:
    """The address of the list with its parameters."""

    def __init__(self, query: Mapping[str, str]) -> None:
        """The parameters as they are now, without the number of the page."""
        self.query = {key: value for key, value in query.items() if value and key != "page"}

    def __call__(self, **changes: object) -> str:
        """The same with other parameters, of which None leaves one out."""
        parameters = {key: str(value) for key, value in (self.query | changes).items() if value is not None}
        return f"/?{urlencode(parameters)}" if parameters else "/"

    def without(self, *names: str) -> dict[str, str]:
        """The parameters that a form keeps: all but those that it has fields for."""
        return {key: value for key, value in self.query.items() if key not in names}


def key_of(profile: str) -> str:
    """The name of a run profile in addresses."""
    return profile.removesuffix(".json")


@dataclass(frozen=True, slots=True)
class _Value:
    """A number of a trend."""

    number: float | None
    mood: str
    title: str
    report: str | None = None


def _of_run(run: RunRow, number: float | None, shown: Shown) -> _Value:
    title = "" if number is None else f"{_when(run.started)}: {shown(number)}, {run.outcome}"
    return _Value(number, run.mood, title, run.report)


def _of_day(day: Group, number: float | None, shown: Shown) -> _Value:
    return _Value(number, "good", "" if number is None else f"{day.value}: {shown(number)}")


def _trend(name: str, values: list[_Value], shown: Shown) -> Trend:
    known = [(value, value.number) for value in values if value.number is not None]
    top, width = max((number for _, number in known), default=0), 1000 / max(1, len(known))
    bars = [
        Bar(
            left=round(position * width, 2),
            width=round(width * 0.8, 2),
            height=round(100 * number / top if top else 0, 2),
            mood=value.mood,
            title=value.title,
            report=value.report,
        )
        for position, (value, number) in enumerate(known)
    ]
    return Trend(name, shown(top) if known else "", bars)


def _shown_money(amount: float) -> str:
    shown: str = environment().filters["money"](Decimal(amount))
    return shown


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


def _float(amount: Decimal | None) -> float | None:
    """An amount of money as the height of a bar."""
    return None if amount is None else float(amount)


def _when(milliseconds: float) -> str:
    shown: str = environment().filters["timestamp"](milliseconds)
    return shown


@cache
def environment() -> jinja2.Environment:
    """That of reports, with the script of this annex."""
    of_reports = page.environment()
    environment = of_reports.overlay()
    script = (Path(__file__).parent / "runs.js").read_text(encoding="utf-8")
    environment.globals = of_reports.globals | {
        "key_of": key_of,
        "runs_script": Markup(script),
        "runs_script_source": page.source_of(script),
    }
    return environment


def _page(template: str, **content: object) -> Answer:
    rendered = environment().get_template(template).render(content)
    return Answer(rendered.encode("utf-8", "replace"))
