"""The kinds of panels, each with what every panel of this project has: a unit, a description and a link onward."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from grafana_foundation_sdk.builders import bargauge, logs, prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders import common as parts
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from grafana.look import Column, Look, fields, links

METRICS: Final = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
TRACES: Final = common.DataSourceRef(type_val="jaeger", uid="${traces}")
LOGS: Final = common.DataSourceRef(type_val="elasticsearch", uid="${logs}")


@dataclass(frozen=True)
class Query:
    """A PromQL expression, and how its series are named."""

    expression: str
    legend: str = ""
    has_exemplars: bool = False


@dataclass(frozen=True)
class Target:
    """A query in the words of a data source that the SDK has no builder for, or a narrower one."""

    words: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Its words, as they are."""
        return self.words


@dataclass(frozen=True)
class Panel:
    """A panel without a place; a dashboard has 24 columns."""

    made: dashboard.Panel
    width: int
    height: int

    def sized(self, width: int, height: int) -> "Panel":
        """The same panel in another size."""
        return replace(self, width=width, height=height)


def figure(title: str, look: Look, *queries: Query) -> Panel:
    """One number, or one for each series, as of now."""
    mode = common.BigValueColorMode.BACKGROUND if look.colors else common.BigValueColorMode.VALUE
    made = stat.Panel().reduce_options(_latest()).color_mode(mode).graph_mode(common.BigValueGraphMode.NONE)
    return Panel(_finished(made.build(), title, look, _asked(queries, is_instant=True)), 4, 4)


def ranking(title: str, look: Look, *queries: Query) -> Panel:
    """One bar for each series, as of now."""
    made = bargauge.Panel().reduce_options(_latest()).orientation(common.VizOrientation.HORIZONTAL)
    made.display_mode(common.BarGaugeDisplayMode.BASIC)
    return Panel(_finished(made.build(), title, look, _asked(queries, is_instant=True)), 12, 8)


def lines(title: str, look: Look, *queries: Query, is_stacked: bool = False) -> Panel:
    """Series over time."""
    made = timeseries.Panel().line_width(1).fill_opacity(25 if is_stacked else 5)
    return _over_time(made, title, look, queries, is_stacked=is_stacked)


def points(title: str, look: Look, *queries: Query) -> Panel:
    """Series that have a value only now and then: one for each run."""
    made = timeseries.Panel().draw_style(common.GraphDrawStyle.POINTS).point_size(7)
    return _over_time(made, title, look, queries)


def bars(title: str, look: Look, *queries: Query) -> Panel:
    """What was counted within each interval, one upon the other."""
    made = timeseries.Panel().draw_style(common.GraphDrawStyle.BARS).fill_opacity(80).line_width(0)
    return _over_time(made, title, replace(look, interval=look.interval or "1m"), queries, is_stacked=True)


def states(title: str, look: Look, *queries: Query) -> Panel:
    """Which state each series was in, over time."""
    made = statetimeline.Panel().show_value(common.VisibilityMode.NEVER).merge_values(True)
    return Panel(_finished(made.build(), title, look, _asked(queries)), 24, 8)


def rows(title: str, look: Look, columns: Sequence[Column], *queries: Query) -> Panel:
    """A table: one row for each combination of labels, one column for each query, as of now."""
    organize = {
        "excludeByName": {"Time": True},
        "indexByName": {column.source: place for place, column in enumerate(columns)},
        "renameByName": {column.source: column.title for column in columns},
    }
    made = table.Panel().with_transformation(dashboard.DataTransformerConfig(id_val="merge", options={}))
    made.with_transformation(dashboard.DataTransformerConfig(id_val="organize", options=organize))
    asked = _asked(queries, is_instant=True, form=PromQueryFormat.TABLE)
    return Panel(_finished(made.build(), title, look, asked, columns=columns), 24, 8)


def runs(title: str, look: Look, service: str) -> Panel:
    """The latest traces of a service; the id of each leads to it."""
    words = {"refId": "A", "datasource": TRACES, "queryType": "search", "service": service, "limit": 20}
    return Panel(_finished(table.Panel().build(), title, look, [Target(words)], source=TRACES), 24, 8)


def lines_of_log(title: str, look: Look, lucene: str) -> Panel:
    """The latest log lines of a search; each leads to its trace."""
    metrics = [{"id": "1", "type": "logs", "settings": {"limit": "100"}}]
    words = {"refId": "A", "datasource": LOGS, "query": lucene, "timeField": "@timestamp", "bucketAggs": []}
    made = logs.Panel().show_time(True).wrap_log_message(True).enable_log_details(True)
    made.sort_order(common.LogsSortOrder.DESCENDING)
    return Panel(_finished(made.build(), title, look, [Target({**words, "metrics": metrics})], source=LOGS), 24, 10)


def alerts(title: str, look: Look) -> Panel:
    """The alerts of Prometheus that are pending or fire; Grafana asks for them by the name of the data source."""
    made = dashboard.Panel(type_val="alertlist")
    made.options = {
        "alertName": "", "alertInstanceLabelFilter": "", "dashboardAlerts": False, "datasource": "Prometheus",
        "groupBy": [], "groupMode": "default", "maxItems": 20, "showInstances": True, "sortOrder": 3,
        "viewMode": "list",
        "stateFilter": {
            "error": True, "firing": True, "noData": False, "normal": False, "pending": True, "recovering": True,
        },
    }  # fmt: skip
    return Panel(_finished(made, title, look, []), 12, 8)


def _latest() -> parts.ReduceDataOptions:
    return parts.ReduceDataOptions().calcs(["lastNotNull"])


def _over_time(
    made: timeseries.Panel, title: str, look: Look, queries: Sequence[Query], *, is_stacked: bool = False
) -> Panel:
    if is_stacked:
        made.stacking(parts.StackingConfig().mode(common.StackingMode.NORMAL).group("A"))
    made.legend(
        parts.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(True)
    )
    made.tooltip(parts.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING))
    return Panel(_finished(made.build(), title, look, _asked(queries)), 12, 8)


def _asked(
    queries: Sequence[Query], *, is_instant: bool = False, form: PromQueryFormat = PromQueryFormat.TIME_SERIES
) -> list[Any]:
    """The queries, called A, B and so on."""
    asked = []
    for place, query in enumerate(queries):
        target = prometheus.Dataquery().expr(query.expression).ref_id("ABCDEFGHIJ"[place]).format(form)
        target = target.datasource(METRICS).exemplar(query.has_exemplars).legend_format(query.legend or "__auto")
        asked.append((target.instant() if is_instant else target.range()).build())
    return asked


def _finished(
    made: dashboard.Panel,
    title: str,
    look: Look,
    targets: list[Any],
    *,
    source: common.DataSourceRef = METRICS,
    columns: Sequence[Column] = (),
) -> dashboard.Panel:
    custom = made.field_config.defaults.custom if made.field_config is not None else None
    made.title, made.description = title, look.text
    made.datasource, made.targets, made.interval = source, targets, look.interval
    made.field_config = fields(look, columns)
    made.field_config.defaults.custom = custom
    # Neither a table nor a list has points to click on: their links are in the header.
    if made.type_val in {"table", "logs", "alertlist"}:
        made.field_config.defaults.links = []
        made.links = links(look.links)
    return made
