"""What the running stages of an application do at this moment: the samples of stacks of the last seconds, by stage."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from spark_app.report import formatting
from spark_app.report.scope import Scope, stage_name
from spark_app.report.sections.now import RunningStage
from spark_app.report.sections.stack_samples import NAMES, HotFunction, Row, View, drawing, hottest
from spark_app.report.sections.stack_steps import MOST_NAME
from spark_app.stack_samples import library_functions
from spark_app.stack_samples.attribution import Place
from spark_app.stack_samples.counts import ENOUGH, Tally
from spark_app.stack_samples.stack_profile import Label, Part, StackProfile

MOST_STAGES: Final = 6
"""Stages whose samples are shown, those with the most."""
MOST_FUNCTIONS: Final = 5
"""Functions of each of them."""
MOST_NODES: Final = 400
"""Bars of the picture, those with the most time: a page is sent every few seconds."""


@dataclass(frozen=True, slots=True)
class Window:
    """Samples of a time, in milliseconds since the epoch.

    Attributes:
        begin, end: The time.
        profile: Its samples.
        is_behind: Whether older samples are still being read, so that some of the time may be missing.
    """

    begin: int
    end: int
    profile: StackProfile
    is_behind: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """A function of Spark, Java or a library in which stacks end, and its share of the time."""

    label: Label
    tally: Tally
    share: float


@dataclass(frozen=True, slots=True)
class Doing:
    """What a stage that runs, the driver, or tasks of stages that are not known do.

    Attributes:
        stage: The number of a stage; empty for others.
        row: Its samples.
        functions: The user's functions with the most of them.
        endings: The functions of others that stacks end in most often.
    """

    stage: str
    row: Row
    functions: list[HotFunction]
    endings: list[Ending]

    @property
    def title(self) -> str:
        """Its number and its name."""
        return f"stage {self.stage}: {self.row.name}" if self.stage else self.row.name

    @property
    def is_told(self) -> bool:
        """Whether any of what it does has enough samples to be shown."""
        return bool(self.functions or self.endings) or any(map(self.row.share, self.row.part.activities))


@dataclass(frozen=True, slots=True)
class StacksNow:
    """What an application does; `left_out` stages with fewer samples are not listed."""

    window: Window
    doing: list[Doing]
    left_out: int

    @property
    def data(self) -> Markup:
        """The picture of what they do, all together and each that has enough samples, as the script reads it."""
        each: list[View] = [
            (formatting.line(doing.title, MOST_NAME), [number])
            for number, doing in enumerate(self.doing)
            if doing.row.part.shown.samples >= ENOUGH
        ]
        profile, parts = self.window.profile, [doing.row.part for doing in self.doing]
        return drawing(profile.labels, profile.nodes, parts, [("all of it", None), *each], MOST_NODES)


def stacks_now(scope: Scope, running: Sequence[RunningStage], window: Window | None) -> StacksNow | None:
    """What the stages that run do, and the driver; None where nothing is sampled.

    Args:
        scope: The application by its log.
        running: The stages that run, as its driver says; else those without an end in the log are meant.
        window: The samples.
    """
    if window is None:
        return None
    open_stages = [stage for stage in scope.app.stages.values() if stage.info.completed is None]
    names: dict[Place, str] = {(stage.info.id, stage.info.attempt): stage_name(scope, stage) for stage in open_stages}
    if running:
        names = {(stage.id, stage.attempt): names.get((stage.id, stage.attempt), stage.name) for stage in running}
    parts = window.profile.parts
    ranked = sorted(names, key=lambda place: -_part(parts.get(place)).total.ms)
    others: list[Place] = [place for place in NAMES if place != "executor" and place in parts]
    places = [*ranked[:MOST_STAGES], *others]
    doing = [_doing(place, names.get(place) or NAMES.get(place, ""), window.profile) for place in places]
    return StacksNow(window, doing, max(0, len(ranked) - MOST_STAGES))


def _part(part: Part | None) -> Part:
    return part or Part()


def _doing(place: Place, name: str, profile: StackProfile) -> Doing:
    part = _part(profile.parts.get(place))
    stage = "" if isinstance(place, str) else f"{place[0]}.{place[1]}" if place[1] else f"{place[0]}"
    functions = [hot for hot in hottest({place: part}) if hot.share is not None]
    row = Row(place, formatting.line(name), part)
    return Doing(stage, row, functions[:MOST_FUNCTIONS], [*_endings(profile, part)][:MOST_FUNCTIONS])


def _endings(profile: StackProfile, part: Part) -> Iterator[Ending]:
    """The functions of others that stacks end in, the hottest first, also those that wait."""
    whole = part.shown
    for label, tally in library_functions.endings(profile, part.own).items():
        yield Ending(profile.labels[label], tally, tally.ms / whole.ms)
