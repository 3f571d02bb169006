"""What the executors cost, and how long the same work would take on other cores."""

from dataclasses import dataclass
from decimal import Decimal

from spark_app.eventlog.cost import HOUR_MS, CoreHours, spent
from spark_app.eventlog.replay import what_if
from spark_app.eventlog.replay.what_if import Forecast
from spark_app.eventlog.replay.work import Work
from spark_app.report.scope import Scope
from spark_app.settings import Prices


@dataclass(frozen=True, slots=True)
class Choice:
    """The work on so many cores; times in milliseconds.

    Attributes:
        cores: None for as many as tasks could ever use.
        ms: How long it takes.
        low_ms, high_ms: At least and at most; None for what was.
        change: The difference to the time that it took, as a share of it; None for what was.
        spent: What the cores cost while they are registered; None for unlimited cores.
        price: Its price; None where none is configured.
    """

    cores: int | None
    ms: float
    low_ms: float | None
    high_ms: float | None
    change: float | None
    spent: CoreHours | None
    price: Decimal | None


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the executors cost, and what other cores would change.

    Attributes:
        spent: What they took while they were registered.
        price: Its price; None where none is configured.
        currency: Of the price.
        error: How far the replay of what was is off; None where the log does not allow any.
        choices: The work as it was, and as it would be on other cores, fewest cores first; empty without a replay.
        reasons: Why the log does not tell of other cores.
    """

    spent: CoreHours
    price: Decimal | None
    currency: str | None
    error: float | None
    choices: list[Choice]
    reasons: list[str]


def capacity(scope: Scope, prices: Prices | None) -> Capacity | None:
    """What the cores of a run or an application cost, and what others would change; None without executors."""
    period = scope.period
    took = spent(scope.app, period.start, period.end)
    if took is None:
        return None
    price, currency = (took.price(prices), prices.currency) if prices else (None, None)
    if scope.work is None:
        return Capacity(took, price, currency, None, [], [])
    choices = [_choice(each, took, scope.work, prices) for each in scope.forecasts if each.ms is not None]
    own = Choice(scope.work.cores, scope.work.took_ms, None, None, None, took, price)
    ranked = sorted([own, *choices], key=lambda choice: choice.cores or float("inf")) if choices else []
    reasons = list(dict.fromkeys(reason for each in scope.forecasts for reason in each.reasons))
    return Capacity(took, price, currency, scope.work.error, ranked, reasons)


def _choice(other: Forecast, took: CoreHours, work: Work, prices: Prices | None) -> Choice:
    """A forecast; its cores are registered for as much less than it takes as those were: the driver starts first."""
    value, ms = what_if.parsed(other.change).value, other.ms or 0.0
    cores = None if value == what_if.UNLIMITED else int(value)
    unregistered = work.took_ms - took.core_hours * HOUR_MS / work.cores
    would = None if cores is None else took.on(cores, max(0.0, ms - unregistered))
    price = would.price(prices) if would and prices else None
    return Choice(cores, ms, other.low_ms, other.high_ms, other.change_ratio, would, price)
