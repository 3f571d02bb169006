"""The look of panels as Grafana's own models: units, colors, value mappings, links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from grafana_foundation_sdk.models import dashboard

from grafana.links import Link
from spark_app.vocabulary import names

Colors = Mapping[float | None, str]
Texts = Mapping[str, tuple[str, str]]

NEUTRAL: Final = "blue"
"""The color of a value that is neither good nor bad by itself."""
NO_DATA: Final = "None in this time range, if Telemetry arrives"
UNKNOWN: Final = "Not known: Prometheus has no answer about it"
OTHERS: Final = "others"
"""The series of all that are not among the first."""
NONE_IS_GOOD: Final[Colors] = {None: "green", 1: "red"}
ONE_IS_GOOD: Final[Colors] = {None: "red", 1: "green"}
UP: Final[Texts] = {"0": ("down", "red"), "1": ("up", "green")}
OUTCOMES: Final[Mapping[str, str]] = dict(
    zip(names.OUTCOMES, ("green", "orange", "red", "purple", "yellow", "dark-red"), strict=True)
)
MEANINGS: Final[Mapping[str, str]] = {**OUTCOMES} | {
    name: color
    for color, series in (
        ("text", (OTHERS, f"{OTHERS}, at most", "limit", "in all", "cores", "trigger")),
        (
            NEUTRAL,
            ("read", "arrived", "tasks", "registered", "not flagged", "info", "behind", "free", "events", "tracked"),
        ),
        ("purple", ("written", "flagged")),
        ("green", ("accepted", "sent", "processed", "in sync")),
        ("yellow", ("duplicate", "added", "unknown fields")),
        ("orange", ("quarantined", "late", "waiting", "warning", "stale history")),
        (
            "red",
            (
                "dead letters",
                "deleted",
                "restarts",
                "refused",
                "lost",
                "errors",
                "failed",
                "unaccounted",
                "unreadable lines",
                "dropped by a bug",
            ),
        ),
    )
    for name in series
}
"""The color of a series by its name, on all dashboards; another series has the color of the letters of its name."""
STREAM_STATES: Final[Texts] = {
    str(place + 1): (state, color)
    for place, (state, color) in enumerate(
        zip(names.STREAM_STATES, ("blue", "yellow", "green", "super-light-green", "orange", "text", "red"), strict=True)
    )
}


@dataclass(frozen=True)
class Look:
    """The look of a panel of any kind.

    Attributes:
        text: Its description: what it shows and what to make of it.
        unit: Grafana's id of the unit.
        links: Where it links to.
        colors: The color from each value on; None is the lowest.
        color: One color for all series; without it, each has that of its name.
        series: Names of series that a label has, so that no query tells them; they have their color of `MEANINGS`.
        texts: Texts and colors of single values.
        empty: What it means that there is no series: that nothing happened, or that nothing is known.
        maximum: The largest possible value.
        interval: The minimum of `$__interval`.
    """

    text: str
    unit: str
    links: Sequence[Link]
    colors: Colors = field(default_factory=dict)
    color: str | None = None
    series: Sequence[str] = ()
    texts: Texts = field(default_factory=dict)
    empty: str = NO_DATA
    maximum: float | None = None
    interval: str | None = None


@dataclass(frozen=True)
class Column:
    """How one column of a table is shown.

    Attributes:
        source: A label, or `Value #A` for the result of query A.
        title: Its heading.
        unit: Grafana's id of the unit.
        links: Where a cell links to.
        colors: The color from each value on.
        texts: Texts and colors of single values.
        empty: What a cell without a value shows.
        width: Its width in pixels; columns without one share what is left.
    """

    source: str
    title: str
    unit: str = "none"
    links: Sequence[Link] = ()
    colors: Colors = field(default_factory=dict)
    texts: Texts = field(default_factory=dict)
    empty: str = "-"
    width: int | None = None


def fields(look: Look, columns: Sequence[Column], legends: Sequence[str]) -> dashboard.FieldConfigSource:
    """The field settings of a panel, with overrides for single series and columns."""
    defaults = dashboard.FieldConfig(
        unit=look.unit,
        decimals=0 if look.unit == "locale" else None,
        min_val=0 if look.maximum is not None else None,
        max_val=look.maximum,
        no_value=look.empty,
        links=links(look.links),
        mappings=[*_mappings(look.texts), *_without_a_value(look)],
        thresholds=_thresholds(look.colors),
        color=_color(look),
    )
    by_value = look.colors or look.texts
    named = [name for name in dict.fromkeys((*look.series, *legends)) if name in MEANINGS and not by_value]
    overrides = [_override(name, {"color": _fixed(MEANINGS[name])}) for name in named]
    overrides += [_override(column.title, _of_column(column)) for column in columns]
    return dashboard.FieldConfigSource(defaults=defaults, overrides=overrides)


class DataLink(dashboard.DashboardLink):
    """A link of a point, a cell or a panel; it has fewer fields than the SDK writes."""

    def to_json(self) -> dict[str, object]:
        """Title and address."""
        return {"title": self.title, "url": self.url}


def links(of: Sequence[Link]) -> list[dashboard.DashboardLink]:
    """Links of the points and cells of a panel."""
    return [DataLink(title=link.title, url=link.url) for link in of]


def _color(look: Look) -> dashboard.FieldColor:
    """By value where values have a meaning, else by the name of the series, which is the same on all dashboards."""
    modes = dashboard.FieldColorModeId
    if look.colors or look.texts:
        return dashboard.FieldColor(mode=modes.THRESHOLDS)
    if look.color:
        return dashboard.FieldColor(mode=modes.FIXED, fixed_color=look.color)
    return dashboard.FieldColor(mode=modes.PALETTE_CLASSIC_BY_NAME)


def _fixed(color: str) -> dict[str, str]:
    return {"mode": "fixed", "fixedColor": color}


def _thresholds(colors: Colors) -> dashboard.ThresholdsConfig:
    steps = [dashboard.Threshold(value=value, color=color) for value, color in (colors or {None: "green"}).items()]
    return dashboard.ThresholdsConfig(mode=dashboard.ThresholdsMode.ABSOLUTE, steps=steps)


def _mappings(texts: Texts) -> list[dashboard.ValueMapping]:
    if not texts:
        return []
    options = {
        value: dashboard.ValueMappingResult(text=text, color=color, index=place)
        for place, (value, (text, color)) in enumerate(texts.items())
    }
    return [dashboard.ValueMap(options=options)]


def _without_a_value(look: Look) -> list[dashboard.ValueMapping]:
    """What is not known is neither good nor bad; without this, it has the color of 0."""
    if not look.colors:
        return []
    nothing = dashboard.ValueMappingResult(text=look.empty, color="transparent")
    options = dashboard.DashboardSpecialValueMapOptions(match=dashboard.SpecialValueMatch.NULL, result=nothing)
    return [dashboard.SpecialValueMap(options=options)]


def _of_column(column: Column) -> dict[str, object]:
    properties: dict[str, object] = {"unit": column.unit, "noValue": column.empty}
    if column.width is not None:
        properties["custom.width"] = column.width
    if column.links:
        properties["links"] = links(column.links)
    if column.texts:
        properties["mappings"] = _mappings(column.texts)
        properties["custom.cellOptions"] = {"type": "color-text"}
    if column.colors:
        properties["thresholds"] = _thresholds(column.colors)
        properties["color"] = {"mode": "thresholds"}
        properties["custom.cellOptions"] = {"type": "color-text"}
    return properties


def _override(name: str, properties: Mapping[str, object]) -> dashboard.DashboardFieldConfigSourceOverrides:
    return dashboard.DashboardFieldConfigSourceOverrides(
        matcher=dashboard.MatcherConfig(id_val="byName", options=name),
        properties=[dashboard.DynamicConfigValue(id_val=key, value=value) for key, value in properties.items()],
    )
