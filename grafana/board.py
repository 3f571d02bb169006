"""A dashboard: rows of panels, laid out from left to right, and its variables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import dashboard

from grafana.panels import METRICS, Panel
from spark_app.vocabulary import names, spark_names
from spark_app.vocabulary.names import Attribute
from spark_app.vocabulary.prometheus_names import label, series

COLUMNS: Final = 24
TAG: Final = "spark-app"
REPORTS: Final = "http://localhost:8088"
"""Where browsers find reports; whoever moves them changes it on the dashboard."""


@dataclass(frozen=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Choice:
    """A variable with the values of a label.

    Attributes:
        name: Its name in queries.
        title: Its label on the dashboard.
        series: The series that has the label.
        attribute: The label.
        is_optional: Whether series may lack it: all are chosen then, too.
    """

    name: str
    title: str
    series: str
    attribute: Attribute
    is_optional: bool = False


PIPELINES: Final = Choice("pipeline", "Pipeline", series(names.RUNS), names.PIPELINE)
NAMESPACES: Final = Choice(
    "namespace",
    "Namespace",
    f"{series(spark_names.TASK_DURATION)}_count",
    spark_names.KUBERNETES_NAMESPACE,
    is_optional=True,
)
APPLICATIONS: Final = Choice(
    "application", "Application", f"{series(spark_names.TASK_DURATION)}_count", names.APPLICATION
)


@dataclass(frozen=True)
class Board:
    """A dashboard as this project knows it.

    Attributes:
        uid: Its id in links, and the stem of its file.
        folder: Its folder in Grafana and on disk.
        title: Its name.
        text: What it is for.
        rows: What is on it.
        by: The variables that filter it.
        since: The start of its time range.
    """

    uid: str
    folder: str
    title: str
    text: str
    rows: Sequence[Row]
    by: Sequence[Choice] = ()
    since: str = "now-6h"

    def build(self) -> dashboard.Dashboard:
        """The dashboard as a model of Grafana."""
        builder = builders.Dashboard(self.title).uid(self.uid).description(self.text).tags([TAG]).readonly()
        builder.time(self.since, "now").refresh("30s").timezone("browser").tooltip(
            dashboard.DashboardCursorSync.CROSSHAIR
        )
        builder.annotations([])
        for name, kind in _SOURCES:
            builder.with_variable(_source(name, kind, is_shown=name == "datasource"))
        builder.with_variable(builders.TextBoxVariable("reports").label("Reports").default_value(REPORTS))
        for choice in self.by:
            builder.with_variable(_variable(choice))
        built = builder.build()
        built.panels = _laid_out(self.rows)
        built.links = [_Menu(title="Dashboards", type_val=_BY_TAG, tags=[TAG], keep_time=True)]
        return built


class _Menu(dashboard.DashboardLink):
    """Links to the other dashboards in the toolbar; the SDK would put them into a menu."""

    def to_json(self) -> dict[str, object]:
        return {key: value for key, value in super().to_json().items() if key != "placement"}


_BY_TAG: Final = dashboard.DashboardLinkType.DASHBOARDS
_SOURCES: Final = (
    ("datasource", "prometheus"),
    ("traces", "jaeger"),
    ("logs", "elasticsearch"),
)


def _source(name: str, kind: str, *, is_shown: bool) -> builders.DatasourceVariable:
    hide = dashboard.VariableHide.DONT_HIDE if is_shown else dashboard.VariableHide.HIDE_VARIABLE
    current = dashboard.VariableOption(selected=True, text=kind.title(), value=kind)
    return builders.DatasourceVariable(name).type(kind).label(kind.title()).hide(hide).current(current)


def _variable(by: Choice) -> builders.QueryVariable:
    text = f"label_values({by.series}, {label(by.attribute)})"
    query: dict[str, object] = {"qryType": 1, "query": text, "refId": "PrometheusVariableQueryEditor-VariableQuery"}
    builder = builders.QueryVariable(by.name).label(by.title).datasource(METRICS).query(query).definition(text)
    builder.refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(dashboard.VariableSort.ALPHABETICAL_ASC)
    builder.multi(True).include_all(True)
    if by.is_optional:
        builder.all_value(".*")
    return builder.current(dashboard.VariableOption(selected=True, text=["All"], value=["$__all"]))


def _laid_out(rows: Sequence[Row]) -> list[dashboard.Panel | dashboard.RowPanel]:
    """The panels of all rows with ids and positions: side by side, and below when the line is full."""
    placed: list[dashboard.Panel | dashboard.RowPanel] = []
    y = 0
    for row in rows:
        place = dashboard.GridPos(x=0, y=y, w=COLUMNS, h=1)
        placed.append(
            dashboard.RowPanel(id_val=len(placed) + 1, title=row.title, grid_pos=place, panels=[], collapsed=False)
        )
        x, y, tallest = 0, y + 1, 0
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y, tallest = 0, y + tallest, 0
            panel.model.id_val = len(placed) + 1
            panel.model.grid_pos = dashboard.GridPos(x=x, y=y, w=panel.width, h=panel.height)
            placed.append(panel.model)
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest
    return placed
