"""How often a tool is right about the runs, by what it says of each: exact sets, causes first, alarms, places, costs.

This is the only module that opens the sealed answers, and it tells totals of them alone.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, NamedTuple

import msgspec

from truth import answers
from truth.answers import BUSY_CORES, Answer, Where
from truth.declared import vocabulary

STARVED: Final = "cpu_starvation"
CLOSE: Final = 0.25
"""An estimated cost is right if it is so close to what the fix saved, as a share of that."""


class Named(msgspec.Struct, forbid_unknown_fields=True):
    """A cause that a tool names for a run; `cost_ms` is what its fix would save, as far as the tool can tell.

    `cost_low_ms` and `cost_high_ms` are the least and the most of that, for a tool that gives a range.
    """

    cause: str
    place: Where = Where()
    cost_ms: float | None = None
    cost_low_ms: float | None = None
    cost_high_ms: float | None = None

    @property
    def range_ms(self) -> tuple[float, float]:
        """The least and the most; without a range both are the cost."""
        low, high = (self.cost_ms if ms is None else ms for ms in (self.cost_low_ms, self.cost_high_ms))
        return low or 0.0, high or 0.0

    @property
    def has_range(self) -> bool:
        """Whether it has one."""
        return self.cost_low_ms is not None and self.cost_high_ms is not None


class Output(msgspec.Struct, forbid_unknown_fields=True):
    """What a tool says of runs by their ids: causes, the most important first."""

    tool: str
    runs: dict[str, list[Named]]


@dataclass(frozen=True)
class Judged:
    """How a tool did with a pair."""

    name: str
    answer: Answer
    named: tuple[str, ...]
    alarms: tuple[str, ...]
    is_first: bool
    is_exact: bool
    is_place_right: bool | None
    cost_ms: float | None
    range_ms: tuple[float, float] | None = None

    @property
    def is_in_range(self) -> bool | None:
        """Whether what the fix saved is within the range of its cost; None if one of both is unknown."""
        saved = self.answer.saved_ms
        return None if saved is None or self.range_ms is None else self.range_ms[0] <= saved <= self.range_ms[1]

    @property
    def error(self) -> float | None:
        """How far the estimated cost is from what the fix saved, as a share of that; negative if it is too low."""
        saved = self.answer.saved_ms
        return None if saved is None or self.cost_ms is None else (self.cost_ms - saved) / saved

    @property
    def is_miss(self) -> bool:
        """Whether the causes of the run, those of its twin or the place are wrong."""
        return not (self.is_first and self.is_exact) or bool(self.alarms) or self.is_place_right is False


class Share(NamedTuple):
    """How many of how many."""

    right: int
    all: int

    def __str__(self) -> str:
        """The share, with its numbers."""
        return f"{100 * self.right / self.all:.0f} % ({self.right} of {self.all})" if self.all else "none"


@dataclass(frozen=True)
class Totals:
    """How a tool did with some pairs."""

    pairs: int
    first: Share
    exact: Share
    alarms: Share
    places: Share
    costs: Share
    ranges: Share
    median_error: float | None


@dataclass(frozen=True)
class Score:
    """How a tool did: with open pairs one by one, with the sealed ones in total."""

    tool: str
    open: tuple[Judged, ...]
    sealed: Totals


def read(content: bytes, opened: dict[str, Answer] | None = None, sealed: dict[str, Answer] | None = None) -> Score:
    """The score of a tool's output.

    Raises:
        msgspec.MsgspecError: It is not as `Output` says.
        LookupError: It has runs that are not there.
    """
    output = msgspec.json.decode(content, type=Output)
    opened = answers.opened() if opened is None else opened
    sealed = answers.unsealed() if sealed is None else sealed
    known = {run for each in (*opened.values(), *sealed.values()) for run in (each.planted, each.quiet)}
    if unknown := sorted(output.runs.keys() - known):
        raise LookupError(
            f"no log has the id {', '.join(unknown[:3])}: the ids are the names of the files in truth/logs"
        )
    judged, hidden = (tuple(_judged(name, each, output) for name, each in some.items()) for some in (opened, sealed))
    return Score(output.tool, judged, totals(hidden))


def _judged(name: str, answer: Answer, output: Output) -> Judged:
    """Runs that the output lacks have no causes."""
    kept = answer.rounds[answer.kept]
    found = _judgeable(output.runs.get(answer.planted, []), answer.causes, kept.planted_load)
    of_twin = _judgeable(output.runs.get(answer.quiet, []), answer.remaining, kept.quiet_load)
    cause = answer.causes[0]
    right = [each for each in found if is_named(cause, each.cause)]
    away = set(answer.causes) - set(answer.remaining)
    fixed = [each for each in found if any(is_named(cause, each.cause) for cause in away)]
    return Judged(
        name=name,
        answer=answer,
        named=tuple(each.cause for each in found),
        alarms=tuple(
            each.cause for each in of_twin if not any(is_named(known, each.cause) for known in answer.remaining)
        ),
        is_first=bool(found) and is_named(cause, found[0].cause),
        is_exact=is_exact(answer.causes, [each.cause for each in found]),
        is_place_right=is_there(answer.place, right[0].place) if right else None,
        cost_ms=sum(each.cost_ms or 0 for each in fixed) or None,
        range_ms=_range_ms(fixed),
    )


def _range_ms(fixed: Sequence[Named]) -> tuple[float, float] | None:
    """The least and the most that some causes cost together; None if none of them has a range."""
    if not any(each.has_range for each in fixed):
        return None
    lows, highs = zip(*(each.range_ms for each in fixed), strict=True)
    return sum(lows), sum(highs)


def _judgeable(found: Sequence[Named], causes: Sequence[str], load: float | None) -> list[Named]:
    """What is judged: that tasks wait for a processor may be true but where others are known to have had few."""
    may_starve = STARVED not in causes and (load is None or load >= BUSY_CORES)
    return [each for each in found if not (may_starve and each.cause == STARVED)]


def is_named(cause: str, named: str) -> bool:
    """Whether a cause is what a tool names, or a special case of it."""
    return named in (cause, vocabulary().get(cause, {}).get("is_a"))


def is_exact(causes: Iterable[str], named: Iterable[str]) -> bool:
    """Whether each cause is named, and nothing else."""
    causes, named = list(causes), list(named)
    return all(any(is_named(cause, each) for each in named) for cause in causes) and all(
        any(is_named(cause, each) for cause in causes) for each in named
    )


def is_there(place: Where, named: Where) -> bool | None:
    """Whether a place is right: a line, else a stage, else a query; None if it is not known or not named."""
    for name in ("lines", "stages", "queries"):
        known, said = set(getattr(place, name)), set(getattr(named, name))
        if known and said:
            return said <= known
    return None


def totals(judged: Sequence[Judged]) -> Totals:
    """What some pairs amount to."""
    places = [each.is_place_right for each in judged if each.is_place_right is not None]
    ranges = [each.is_in_range for each in judged if each.is_in_range is not None]
    errors = [each.error for each in judged if each.error is not None]
    return Totals(
        pairs=len(judged),
        first=Share(sum(each.is_first for each in judged), len(judged)),
        exact=Share(sum(each.is_exact for each in judged), len(judged)),
        alarms=Share(sum(bool(each.alarms) for each in judged), len(judged)),
        places=Share(sum(places), len(places)),
        costs=Share(sum(abs(error) <= CLOSE for error in errors), len(errors)),
        ranges=Share(sum(ranges), len(ranges)),
        median_error=median(map(abs, errors)) if errors else None,
    )


def grouped(judged: Iterable[Judged], key: Callable[[Judged], str]) -> dict[str, Totals]:
    """Totals by a key, in its order."""
    groups: dict[str, list[Judged]] = {}
    for each in judged:
        groups.setdefault(key(each), []).append(each)
    return {name: totals(groups[name]) for name in sorted(groups)}


def text(score: Score) -> str:
    """A score for a terminal: totals, then the open pairs by cause, form and version of Spark, then the misses."""
    unseen = [each for each in score.open if not each.answer.developed_on]
    lines = [score.tool, _line("pairs", None)]
    lines += [
        _line("open", totals(unseen)),
        _line("sealed", score.sealed),
        _line("tests of rules", totals(_known(score))),
    ]
    for title, key in KEYS.items():
        lines += ["", f"open, by {title}", *(_line(name, each) for name, each in grouped(score.open, key).items())]
    lines += ["", "misses of the open part"]
    lines += [f"  {each.name}: {_said(each.named)}; twin: {_said(each.alarms)}" for each in score.open if each.is_miss]
    return "\n".join(lines) + "\n"


KEYS: Final[dict[str, Callable[[Judged], str]]] = {
    "cause": lambda each: each.answer.causes[0],
    "form": lambda each: each.answer.form,
    "version of Spark": lambda each: each.answer.spark,
}


def _known(score: Score) -> list[Judged]:
    return [each for each in score.open if each.answer.developed_on]


def _said(causes: Sequence[str]) -> str:
    return ", ".join(causes) or "nothing"


def _line(name: str, found: Totals | None) -> str:
    if found is None:
        return f"{name:24} {'first':>18} {'exact set':>18} {'false alarms':>18} {'place':>18} {'cost':>18}"
    shares = (found.first, found.exact, found.alarms, found.places, found.costs)
    return f"{name:24} " + " ".join(f"{each!s:>18}" for each in shares)
