"""The kinds of panels. Every panel has a unit, a description and a link onward."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from grafana_foundation_sdk.builders import bargauge, logs, prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders import common as parts
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from grafana.look import NEUTRAL, OTHERS, Column, Look, fields, links
from grafana.queries import first_and_others
from spark_app.vocabulary.names import Attribute

METRICS: Final = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
TRACES: Final = common.DataSourceRef(type_val="jaeger", uid="${traces}")
LOGS: Final = common.DataSourceRef(type_val="elasticsearch", uid="${logs}")
VALUES: Final = 6
"""The most values that can be read in one tile."""
FIRST: Final = 9
"""The series of a panel beside which there is room for one of all others: ten can be read in a legend."""


@dataclass(frozen=True)
class Query:
    """A PromQL expression and the legend of its series."""

    expression: str
    legend: str = ""
    has_exemplars: bool = False


def top(expression: str, shown_as: str, *by: Attribute | str, others: str = "sum", first: int = FIRST) -> list[Query]:
    """The largest series of an expression over the time range, and one of all others.

    Args:
        expression: Its series have the labels `by`, and no others.
        shown_as: The legend of the largest.
        by: The labels.
        others: What combines the others: `sum`, or `max` where a sum means nothing.
        first: How many are largest.
    """
    largest, rest = first_and_others(expression, *by, others=others, first=first)
    name = OTHERS if others == "sum" else f"{OTHERS}, at most"
    return [Query(largest, shown_as), Query(rest, name)]


@dataclass(frozen=True)
class Target:
    """A query in the language of a data source for which the SDK has no builder, or one with too few options."""

    content: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Its JSON."""
        return self.content


@dataclass(frozen=True)
class Panel:
    """A panel without a position; a dashboard has 24 columns."""

    model: dashboard.Panel
    width: int
    height: int

    def sized(self, width: int, height: int) -> "Panel":
        """The same panel in another size."""
        return replace(self, width=width, height=height)


def figure(title: str, look: Look, *queries: Query) -> Panel:
    """One number per series, at the end of the time range; at most `VALUES`, so that each can be read."""
    mode = common.BigValueColorMode.BACKGROUND if look.colors else common.BigValueColorMode.VALUE
    builder = stat.Panel().reduce_options(_latest()).color_mode(mode).graph_mode(common.BigValueGraphMode.NONE)
    if any(query.legend for query in queries):
        builder.text_mode(common.BigValueTextMode.VALUE_AND_NAME)
    return Panel(_completed(builder.build(), title, replace(look, color=NEUTRAL), queries, is_instant=True), 4, 4)


def ranking(title: str, look: Look, *queries: Query) -> Panel:
    """One bar per series, from 0 on, below its name, at the end of the time range."""
    builder = bargauge.Panel().reduce_options(_latest()).orientation(common.VizOrientation.HORIZONTAL)
    builder.display_mode(common.BarGaugeDisplayMode.BASIC).name_placement(common.BarGaugeNamePlacement.TOP).min(0)
    builder.text(parts.VizTextDisplayOptions().title_size(13).value_size(16)).max_viz_height(40)
    return Panel(_completed(builder.build(), title, replace(look, color=NEUTRAL), queries, is_instant=True), 12, 12)


def lines(title: str, look: Look, *queries: Query, is_stacked: bool = False) -> Panel:
    """Series over time."""
    builder = timeseries.Panel().line_width(1).fill_opacity(25 if is_stacked else 5)
    return _over_time(builder, title, look, queries, is_stacked=is_stacked)


def points(title: str, look: Look, *queries: Query) -> Panel:
    """Series with occasional values: one per run."""
    builder = timeseries.Panel().draw_style(common.GraphDrawStyle.POINTS).point_size(7)
    return _over_time(builder, title, look, queries)


def bars(title: str, look: Look, *queries: Query) -> Panel:
    """Stacked counts per interval."""
    builder = timeseries.Panel().draw_style(common.GraphDrawStyle.BARS).bar_max_width(12).fill_opacity(80).line_width(0)
    return _over_time(builder, title, replace(look, interval=look.interval or "1m"), queries, is_stacked=True)


def states(title: str, look: Look, *queries: Query) -> Panel:
    """The state of each series over time."""
    builder = statetimeline.Panel().show_value(common.VisibilityMode.NEVER).merge_values(True)
    return Panel(_completed(builder.build(), title, look, queries), 24, 8)


def rows(title: str, look: Look, columns: Sequence[Column], *queries: Query) -> Panel:
    """A table: one row per combination of labels, one column per query, at the end of the time range."""
    builder = table.Panel().with_transformation(dashboard.DataTransformerConfig(id_val="merge", options={}))
    builder.with_transformation(_organized(columns))
    return Panel(_completed(builder.build(), title, look, queries, is_instant=True, columns=columns), 24, 8)


def runs(title: str, look: Look, service: str) -> Panel:
    """The latest traces of a service, with links."""
    content = {"refId": "A", "datasource": TRACES, "queryType": "search", "service": service, "limit": 20}
    return Panel(_completed(table.Panel().build(), title, look, [Target(content)], source=TRACES), 24, 8)


def documents(title: str, look: Look, columns: Sequence[Column], lucene: str) -> Panel:
    """A table of the latest documents of a search: one row per log line, one column per field."""
    metrics = [{"id": "1", "type": "raw_data", "settings": {"size": "50"}}]
    content = {
        "refId": "A", "datasource": LOGS, "query": lucene, "timeField": "@timestamp", "bucketAggs": [],
        "metrics": metrics,
    }  # fmt: skip
    # Grafana calls the field of the time one or the other, by what a transformation asks for.
    shown = {"include": {"names": ["Time", *(column.source for column in columns)]}}
    builder = table.Panel().with_transformation(
        dashboard.DataTransformerConfig(id_val="filterFieldsByName", options=shown)
    )
    builder.with_transformation(_organized(columns, has_time=True))
    return Panel(_completed(builder.build(), title, look, [Target(content)], source=LOGS, columns=columns), 24, 9)


def _organized(columns: Sequence[Column], *, has_time: bool = False) -> dashboard.DataTransformerConfig:
    """The columns in their order, with their headings."""
    options = {
        "excludeByName": {"Time": not has_time},
        "indexByName": {column.source: place for place, column in enumerate(columns)},
        "renameByName": {column.source: column.title for column in columns},
    }
    return dashboard.DataTransformerConfig(id_val="organize", options=options)


def lines_of_log(title: str, look: Look, lucene: str) -> Panel:
    """The latest log lines of a search, with links to their traces."""
    metrics = [{"id": "1", "type": "logs", "settings": {"limit": "100"}}]
    content = {"refId": "A", "datasource": LOGS, "query": lucene, "timeField": "@timestamp", "bucketAggs": []}
    builder = logs.Panel().show_time(True).wrap_log_message(True).enable_log_details(True)
    builder.sort_order(common.LogsSortOrder.DESCENDING)
    return Panel(
        _completed(builder.build(), title, look, [Target({**content, "metrics": metrics})], source=LOGS), 24, 10
    )


def alerts(title: str, look: Look) -> Panel:
    """Pending and firing alerts of Prometheus, which Grafana finds by the title of the data source."""
    panel = dashboard.Panel(type_val="alertlist")
    panel.options = {
        "alertName": "", "alertInstanceLabelFilter": '{alertname!="Watchdog"}', "dashboardAlerts": False,
        "datasource": "Prometheus",
        "groupBy": [], "groupMode": "default", "maxItems": 20, "showInstances": True, "sortOrder": 3,
        "viewMode": "list",
        "stateFilter": {
            "error": True, "firing": True, "noData": False, "normal": False, "pending": True, "recovering": True,
        },
    }  # fmt: skip
    return Panel(_completed(panel, title, look, []), 12, 8)


def _latest() -> parts.ReduceDataOptions:
    return parts.ReduceDataOptions().calcs(["lastNotNull"])


def _over_time(
    builder: timeseries.Panel, title: str, look: Look, queries: Sequence[Query], *, is_stacked: bool = False
) -> Panel:
    if is_stacked:
        builder.stacking(parts.StackingConfig().mode(common.StackingMode.NORMAL).group("A"))
    builder.axis_soft_min(0).legend(
        parts.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(True)
    )
    builder.tooltip(parts.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING))
    return Panel(_completed(builder.build(), title, look, queries), 12, 9)


def _targets(queries: Sequence[Query | Target], *, is_instant: bool, form: PromQueryFormat) -> list[Any]:
    """The queries with the letters A, B and so on."""
    targets = list[Any]()
    for letter, query in zip("ABCDEFGHIJKLMN", queries, strict=False):
        if isinstance(query, Target):
            targets.append(query)
            continue
        target = prometheus.Dataquery().expr(query.expression).ref_id(letter).format(form)
        target = target.datasource(METRICS).exemplar(query.has_exemplars).legend_format(query.legend or "__auto")
        targets.append((target.instant() if is_instant else target.range()).build())
    return targets


def _completed(
    panel: dashboard.Panel,
    title: str,
    look: Look,
    queries: Sequence[Query | Target],
    *,
    is_instant: bool = False,
    source: common.DataSourceRef = METRICS,
    columns: Sequence[Column] = (),
) -> dashboard.Panel:
    built = panel.field_config.defaults if panel.field_config is not None else dashboard.FieldConfig()
    panel.title, panel.description = title, look.text
    panel.datasource, panel.interval = source, look.interval
    form = PromQueryFormat.TABLE if columns else PromQueryFormat.TIME_SERIES
    panel.targets = _targets(queries, is_instant=is_instant, form=form)
    panel.field_config = fields(look, columns, [query.legend for query in queries if isinstance(query, Query)])
    panel.field_config.defaults.custom = built.custom
    if built.min_val is not None:
        panel.field_config.defaults.min_val = built.min_val
    # Tables and lists have no points to click on, so their links are in the header.
    if panel.type_val in {"table", "logs", "alertlist"}:
        panel.field_config.defaults.links = []
        panel.links = links(look.links)
    return panel
