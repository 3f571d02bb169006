"""The pages of `spark-app serve`: all runs, the trend of one application, two runs compared, and the reports."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from spark_app.errors import InputError
from spark_app.eventlog.comparison import baselines
from spark_app.eventlog.comparison.compare import compare
from spark_app.eventlog.cost import CoreHours
from spark_app.report.page import environment
from spark_app.report.served.runs import Run, Runs
from spark_app.report.served.server import Answer, refusal
from spark_app.settings import Prices

MOST: Final = 1000
"""Runs in the list; the search finds among these."""
MOST_BARS: Final = 200
"""Runs in a trend, the newest."""


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


@dataclass(frozen=True, slots=True)
class UserCost:
    """What a user, or nobody, had of the listed runs; the price is None where no price is configured, or known."""

    user: str
    runs: int
    core_hours: float
    price: Decimal | None


class Pages:
    """Answers requests by their path. Only names that were listed lead to files."""

    def __init__(self, runs: Runs, prices: Prices) -> None:
        """Reads nothing yet."""
        self._runs, self._prices = runs, prices

    def __call__(self, path: str, query: Mapping[str, str]) -> Answer:
        """The page of a path."""
        match path.split("/"):
            case ["", ""]:
                return self._list(query.get("application"))
            case ["", "compare"]:
                return self._compared(query.get("one", ""), query.get("other", ""))
            case ["", "reports", name]:
                return self._report(name)
        return refusal(HTTPStatus.NOT_FOUND, "there is no such page")

    def _list(self, application: str | None) -> Answer:
        runs = self._runs.newest_first()
        names = sorted({run.name for run in runs})
        chosen = [run for run in runs if application in (None, run.name)]
        trends = [] if application is None else self._trends(chosen)
        return _page(
            "runs.html.j2",
            runs=chosen[:MOST],
            total=len(chosen),
            applications=names,
            application=application,
            trends=trends,
            users=self._users(chosen),
            currency=self._currency,
            price=self._price,
        )

    def _trends(self, runs: list[Run]) -> list[Trend]:
        oldest_first = runs[:MOST_BARS][::-1]
        duration, hours, money = (environment().filters[name] for name in ("duration", "hours", "money"))
        cores = _trend("core-hours", oldest_first, lambda run: run.core_hours, hours)
        cost = _trend(
            f"cost in {self._currency}",
            oldest_first,
            lambda run: _float(self._price(run)),
            lambda amount: money(Decimal(amount)),
        )
        return [
            _trend("duration", oldest_first, lambda run: run.duration_ms, duration),
            cost if self._currency and cost.bars else cores,
        ]

    def _users(self, runs: list[Run]) -> list[UserCost]:
        """What each user had of some runs, the most expensive first, and what is nobody's; none of fewer than two."""
        parts = defaultdict[str, list[CoreHours]](list)
        for run in runs:
            for user, part in run.users.items():
                parts[user].append(part)
        if sum(map(bool, parts)) < 2:
            return []
        costs = [self._cost(user, own) for user, own in parts.items()]
        return sorted(costs, key=lambda each: (not each.user, -each.core_hours, each.user))[:MOST]

    def _cost(self, user: str, parts: list[CoreHours]) -> UserCost:
        prices = [part.price(self._prices) for part in parts]
        price = None if None in prices else sum(filter(None, prices), Decimal(0))
        return UserCost(user, len(parts), sum(part.core_hours for part in parts), price)

    @property
    def _currency(self) -> str | None:
        """That of the prices; None without any."""
        prices = self._prices
        return None if prices.core_hour is None and prices.gib_hour is None else prices.currency

    def _price(self, run: Run) -> Decimal | None:
        """What a run cost; None where nothing has a price, or it is not known what the run took."""
        return None if run.spent is None else run.spent.price(self._prices)

    def _compared(self, *keys: str) -> Answer:
        known = {key_of(run.profile): run for run in self._runs.newest_first() if run.profile is not None}
        chosen = sorted((known[key] for key in dict.fromkeys(keys) if key in known), key=lambda run: run.started)
        if len(chosen) != 2:
            return refusal(HTTPStatus.NOT_FOUND, "one of the runs has no run profile, or it was deleted")
        try:
            before, now = (baselines.load(run.profile) for run in chosen if run.profile is not None)
        except InputError as error:
            return refusal(HTTPStatus.NOT_FOUND, str(error))
        return _page("versus.html.j2", before=chosen[0], now=chosen[1], compared=compare(before, now))

    def _report(self, name: str) -> Answer:
        """A report: a file that lies in the folder of the reports itself, not one that a link leads to."""
        file = next((path for path in self._runs.reports.glob("*.html") if path.name == name), None)
        if file is None or file.is_symlink() or not file.is_file():
            return refusal(HTTPStatus.NOT_FOUND, "there is no such report")
        return Answer(file.read_bytes())


def key_of(profile: Path) -> str:
    """The name of a run profile in addresses."""
    return f"{profile.parent.name}/{profile.stem}"


def _trend(name: str, runs: list[Run], number: Callable[[Run], float | None], shown: Callable[[Any], str]) -> Trend:
    known = [(run, value) for run in runs if (value := number(run)) is not None]
    top, width = max((value for _, value in known), default=0), 1000 / max(1, len(known))
    bars = [
        Bar(
            left=round(position * width, 2),
            width=round(width * 0.8, 2),
            height=round(100 * value / top if top else 0, 2),
            mood=run.mood,
            title=f"{_when(run.started)}: {shown(value)}, {run.outcome}",
            report=run.report,
        )
        for position, (run, value) in enumerate(known)
    ]
    return Trend(name, shown(top) if known else "", bars)


def _float(amount: Decimal | None) -> float | None:
    """An amount of money as the height of a bar."""
    return None if amount is None else float(amount)


def _when(milliseconds: float) -> str:
    shown: str = environment().filters["timestamp"](milliseconds)
    return shown


def _page(template: str, **content: object) -> Answer:
    rendered = environment().get_template(template).render(key_of=key_of, **content)
    return Answer(rendered.encode("utf-8", "replace"))
