"""What the executors cost, and how long the same work would take on other cores."""

from dataclasses import dataclass
from decimal import Decimal

from spark_app.eventlog.cost import HOUR_MS, CoreHours, spent
from spark_app.eventlog.replay.what_if import Replay, WhatIf, of_work
from spark_app.report.scope import Scope
from spark_app.settings import Prices


@dataclass(frozen=True, slots=True)
class Choice:
    """The work on so many cores; times in milliseconds.

    Attributes:
        cores: None for as many as tasks could ever use.
        ms: How long it takes.
        change: The difference to the time that it took, as a share of it; None for what was.
        spent: What the cores cost while they are registered; None for unlimited cores.
        price: Its price; None where none is configured.
    """

    cores: int | None
    ms: float
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
        replayed: The replays on other cores; None where the log does not allow any.
        choices: The work as it was, and as it would be on other cores, fewest cores first.
    """

    spent: CoreHours
    price: Decimal | None
    currency: str | None
    replayed: WhatIf | None
    choices: list[Choice]


def capacity(scope: Scope, prices: Prices | None) -> Capacity | None:
    """What the cores of a run or an application cost, and what others would change; None without executors."""
    period = scope.period
    took = spent(scope.app, period.start, period.end)
    if took is None:
        return None
    replayed = None if scope.work is None else of_work(scope.work)
    price, currency = (took.price(prices), prices.currency) if prices else (None, None)
    choices = _choices(took, replayed, prices) if replayed and replayed.is_credible else []
    return Capacity(took, price, currency, replayed, choices)


def _choices(took: CoreHours, replayed: WhatIf, prices: Prices | None) -> list[Choice]:
    own = Choice(replayed.cores, replayed.took_ms, None, took, took.price(prices) if prices else None)
    others = [_choice(other, took, replayed, prices) for other in replayed.others]
    return sorted([own, *others], key=lambda choice: choice.cores or float("inf"))


def _choice(other: Replay, took: CoreHours, replayed: WhatIf, prices: Prices | None) -> Choice:
    """A replay, corrected by the error of the replay on the cores that there were.

    Its cores are registered for as much less than it takes as those were: the driver starts before executors do.
    """
    ms = other.ms / (1 + replayed.error)
    unregistered = replayed.took_ms - took.core_hours * HOUR_MS / replayed.cores
    would = None if other.cores is None else took.on(other.cores, max(0.0, ms - unregistered))
    price = would.price(prices) if would and prices else None
    return Choice(other.cores, ms, ms / replayed.took_ms - 1, would, price)
