"""Where the time of stages goes: flame graphs of samples of stacks, and the user's hottest functions."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from markupsafe import Markup

from spark_app.report.formatting import line
from spark_app.report.limits import Limits
from spark_app.report.scope import Scope, stage_name
from spark_app.stack_samples.attribution import Place
from spark_app.stack_samples.counts import ENOUGH, LEAST, NOTHING, Tally
from spark_app.stack_samples.stack_profile import NO_NODE, Function, FunctionTime, Part, StackProfile

MOST_NAME: Final = 200
KINDS: Final = ("root", "java", "python")
NAMES: Final[Mapping[Place, str]] = {
    "driver": "driver",
    "executor": "executors, outside of tasks",
    "unknown": "tasks of unknown stages",
}
_SCRIPT_END: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


@dataclass(frozen=True, slots=True)
class HotFunction:
    """A function of the user's program in a stage, or in the driver.

    Attributes:
        place: Where its samples are.
        function: The function.
        time: Its samples.
        whole: All samples of that place, but those that wait for Python.
    """

    place: Place
    function: Function
    time: FunctionTime
    whole: Tally

    @property
    def share(self) -> float:
        """Of the time of the place, the share in which it is the innermost of the user's functions."""
        return self.time.innermost.ms / self.whole.ms

    @property
    def apart(self) -> float:
        """How far that share may be off, in 19 of 20 cases."""
        low, high = self.time.innermost.interval_ms()
        return (high - low) / 2 / self.whole.ms

    @property
    def total_share(self) -> float:
        """The share with what it calls of the user's."""
        return self.time.total.ms / self.whole.ms


@dataclass(frozen=True, slots=True)
class Row:
    """The samples of a stage, or of the driver, by what the threads did; `name` is empty if the stage is unknown."""

    place: Place
    name: str
    part: Part

    @property
    def is_stage(self) -> bool:
        """Whether it is a stage, which the report lists."""
        return isinstance(self.place, tuple)

    def share(self, activity: str) -> float | None:
        """The share of an activity of the time; None of too few samples."""
        tally, whole = self.part.activities.get(activity, NOTHING), self.part.total  # type: ignore[call-overload]
        return tally.ms / whole.ms if tally.samples >= LEAST and whole.ms else None


@dataclass(frozen=True, slots=True)
class StackSection:
    """Samples of stacks about a scope.

    Attributes:
        profile: The samples by stage.
        rows: The stages with the most samples, and the driver.
        stages: How many stages have samples.
        functions: The user's hottest functions; those of too few samples are left out.
        data: The merged stacks and the views of them, as the script of the page reads it.
        drawn: How many of the stages have enough samples for a picture.
    """

    profile: StackProfile
    rows: list[Row]
    stages: int
    functions: list[HotFunction]
    data: Markup
    drawn: int


def stack_samples(scope: Scope, profile: StackProfile | None, limits: Limits) -> StackSection | None:
    """The samples of what a report covers; None without any."""
    if profile is None or not profile.all.shown.samples:
        return None
    covered = {(stage.info.id, stage.info.attempt): stage for stage in scope.stages}
    is_all = scope.run is None
    parts = {
        place: part for place, part in profile.parts.items() if place in covered or (is_all and isinstance(place, str))
    }
    names: dict[Place, str] = {key: scope.named(stage_name(scope, stage)) for key, stage in covered.items()}
    names |= NAMES
    ranked = sorted(parts, key=lambda place: (isinstance(place, str), -parts[place].total.ms))
    drawn = [place for place in ranked if parts[place].shown.samples >= ENOUGH]
    views = [*_views(scope, drawn[: limits.stages], names)]
    return StackSection(
        profile,
        [Row(place, names[place], parts[place]) for place in ranked[: limits.stages]],
        sum(isinstance(place, tuple) for place in parts),
        hottest(parts)[: limits.stack_functions],
        _data(profile, parts, views, limits),
        sum(isinstance(place, tuple) for place in drawn),
    )


def hottest(parts: Mapping[Place, Part]) -> list[HotFunction]:
    """The user's functions in all places, the hottest first."""
    found = [
        HotFunction(place, function, time, part.shown)
        for place, part in parts.items()
        for function, time in part.hottest
        if time.innermost.samples >= LEAST
    ]
    return sorted(found, key=lambda hot: (-hot.time.innermost.ms, hot.function, str(hot.place)))


def _views(
    scope: Scope, drawn: Sequence[Place], names: Mapping[Place, str]
) -> Iterator[tuple[str, list[Place] | None]]:
    """The pictures to choose from: everything, the stages, and the queries with several of them."""
    yield ("the run" if scope.run else "the application"), None
    for place in drawn:
        shown = f"stage {place[0]}{f'.{place[1]}' if place[1] else ''}: " if isinstance(place, tuple) else ""
        yield f"{shown}{names[place]}", [place]
    of_query = defaultdict[int, list[Place]](list)
    for place in drawn:
        job = scope.app.job_of(scope.app.stages[place]) if isinstance(place, tuple) else None
        query = scope.app.query_of(job)
        if query is not None:
            of_query[query.id].append(place)
    yield from ((f"query {query}", places) for query, places in sorted(of_query.items()) if len(places) > 1)


def _data(
    profile: StackProfile, parts: Mapping[Place, Part], views: Sequence[tuple[str, list[Place] | None]], limits: Limits
) -> Markup:
    """What the script draws: nodes that have enough samples in all places together, and the samples of each place."""
    kept = _kept(profile, parts, limits.stack_nodes)
    labels = dict.fromkeys(profile.nodes[node].label for node in kept)
    number_of_label = {label: number for number, label in enumerate(labels)}
    number_of_place = {place: number for number, place in enumerate(parts)}
    shown = {
        "least": LEAST,
        "labels": [_label(profile, label) for label in labels],
        "parents": [kept.get(profile.nodes[node].parent, NO_NODE) for node in kept],
        "nodes": [number_of_label[profile.nodes[node].label] for node in kept],
        "parts": [_own(profile, part, kept) for part in parts.values()],
        "views": [
            [line(name, MOST_NAME), None if places is None else [number_of_place[place] for place in places]]
            for name, places in views
        ],
    }
    text = msgspec.json.encode(shown).decode()
    for character, escaped in _SCRIPT_END.items():
        text = text.replace(character, escaped)
    return Markup(text)


def _kept(profile: StackProfile, parts: Mapping[Place, Part], most: int) -> dict[int, int]:
    """The nodes that are drawn, with their new numbers; a caller is before what it calls, and has as many samples."""
    totals = [NOTHING] * len(profile.nodes)
    for part in parts.values():
        for node, tally in part.own.items():
            totals[node] += tally
    for node in range(len(totals) - 1, -1, -1):
        if profile.nodes[node].parent != NO_NODE:
            totals[profile.nodes[node].parent] += totals[node]
    enough = (node for node, tally in enumerate(totals) if tally.samples >= LEAST)
    chosen = sorted(sorted(enough, key=lambda node: (-totals[node].ms, node))[:most])
    return {node: number for number, node in enumerate(chosen)}


def _own(profile: StackProfile, part: Part, kept: Mapping[int, int]) -> list[list[Any]]:
    """The nodes in which samples of a part end, with their counts and times; a caller stands for what is left out."""
    own = defaultdict[int, Tally](Tally)
    for end, tally in part.own.items():
        node = end
        while node != NO_NODE and node not in kept:
            node = profile.nodes[node].parent
        if node != NO_NODE:
            own[kept[node]] += tally
    return [[*own], [tally.samples for tally in own.values()], [round(tally.ms) for tally in own.values()]]


def _label(profile: StackProfile, number: int) -> list[Any]:
    """The kind of a function, its name, its file, its line, and whether it is the user's."""
    label = profile.labels[number]
    return [
        KINDS.index(label.kind),
        line(label.function, MOST_NAME),
        line(label.file, MOST_NAME),
        label.line,
        int(label.is_own),
    ]
