"""A dashboard: rows of panels that are laid out from left to right, and the variables that it asks for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import dashboard

from app.telemetry import names, spark_names
from app.telemetry.names import Attribute
from app.telemetry.prometheus_names import label, series
from grafana.panels import METRICS, Panel

COLUMNS: Final = 24
TAG: Final = "spark-app"


@dataclass(frozen=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Choice:
    """A variable whose values are those of a label.

    Attributes:
        name: What queries call it.
        title: What stands beside it.
        series: The series that has the label.
        attribute: The label.
    """

    name: str
    title: str
    series: str
    attribute: Attribute


PIPELINES: Final = Choice("pipeline", "Pipeline", series(names.RUNS), names.PIPELINE)
APPLICATIONS: Final = Choice(
    "application", "Application", f"{series(spark_names.TASK_DURATION)}_count", names.APPLICATION
)


@dataclass(frozen=True)
class Board:
    """A dashboard as this project knows it.

    Attributes:
        uid: What links to it say; the stem of its file.
        folder: Where it is in Grafana, and on disk.
        title: Its name.
        text: What it is for.
        rows: What is on it.
        by: What it asks to choose from, if anything.
        since: The start of its time range.
    """

    uid: str
    folder: str
    title: str
    text: str
    rows: Sequence[Row]
    by: "Choice | None" = None
    since: str = "now-6h"

    def made(self) -> dashboard.Dashboard:
        """The dashboard, in the words of Grafana."""
        made = builders.Dashboard(self.title).uid(self.uid).description(self.text).tags([TAG]).readonly()
        made.time(self.since, "now").refresh("30s").timezone("browser").tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        made.annotations([])
        for name, kind in _SOURCES:
            made.with_variable(_source(name, kind, is_shown=name == "datasource"))
        if self.by is not None:
            made.with_variable(_chosen(self.by))
        built = made.build()
        built.panels = _laid_out(self.rows)
        built.links = [_Menu(title="Dashboards", type_val=_BY_TAG, tags=[TAG], keep_time=True)]
        return built


class _Menu(dashboard.DashboardLink):
    """The links to the other dashboards, on the bar and not in a menu, where the SDK puts them."""

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


def _chosen(by: Choice) -> builders.QueryVariable:
    text = f"label_values({by.series}, {label(by.attribute)})"
    query: dict[str, object] = {"qryType": 1, "query": text, "refId": "PrometheusVariableQueryEditor-VariableQuery"}
    made = builders.QueryVariable(by.name).label(by.title).datasource(METRICS).query(query).definition(text)
    made.refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(dashboard.VariableSort.ALPHABETICAL_ASC)
    made.multi(True).include_all(True)
    return made.current(dashboard.VariableOption(selected=True, text=["All"], value=["$__all"]))


def _laid_out(rows: Sequence[Row]) -> list[dashboard.Panel | dashboard.RowPanel]:
    """The panels of all rows, each with an id and a place: side by side, and below when the line is full."""
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
            panel.made.id_val = len(placed) + 1
            panel.made.grid_pos = dashboard.GridPos(x=x, y=y, w=panel.width, h=panel.height)
            placed.append(panel.made)
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest
    return placed
