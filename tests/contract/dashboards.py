"""The committed dashboards as data: panels, queries and links."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import promql_parser
import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "grafana" / "dashboards"
WINDOWS: Final = {
    "$__rate_interval": timedelta(minutes=7),
    "$__interval": timedelta(minutes=3),
    "$__range": timedelta(hours=6),
}
"""The variables that Grafana sets, with values that differ from all durations in the expressions."""


@dataclass(frozen=True)
class Board:
    """A committed dashboard.

    Attributes:
        path: Its file.
        content: Its JSON.
    """

    path: Path
    content: dict[str, Any]

    def __str__(self) -> str:
        return self.path.stem


@dataclass(frozen=True)
class Query:
    """One query of one panel.

    Attributes:
        board: The dashboard.
        panel: The panel.
        content: The query in the language of its data source.
        kind: The type of its data source.
    """

    board: Board
    panel: dict[str, Any]
    content: dict[str, Any]
    kind: str

    def __str__(self) -> str:
        return f"{self.board}: {self.panel['title']}: {self.content['refId']}"

    def expression(self, **variables: str) -> str:
        """Its PromQL with the variables of Grafana replaced; a variable without a given value matches everything."""
        filled: str = self.content["expr"]
        for name, window in WINDOWS.items():
            filled = filled.replace(name, f"{int(window.total_seconds())}s")
        return re.sub(r"\$([a-z]\w*)", lambda match: variables.get(match[1], ".*"), filled)


MAX_SERIES: Final = {"stat": 6, "bargauge": 10, "timeseries": 10}
"""How many series can be read in a panel of a type."""

BOARDS: Final = [Board(path, json.loads(path.read_text(encoding="utf-8"))) for path in sorted(FOLDER.glob("*/*.json"))]


def panels(board: Board) -> list[dict[str, Any]]:
    """The panels of a dashboard, without the headings of its rows."""
    return [panel for panel in board.content["panels"] if panel["type"] != "row"]


def queries() -> list[Query]:
    """Every query of every panel of every dashboard."""
    return [
        Query(board, panel, target, target["datasource"]["type"])
        for board in BOARDS
        for panel in panels(board)
        for target in panel.get("targets", [])
    ]


def is_of_others(query: Query) -> bool:
    """Whether a query is answered only where there are more series than a panel shows."""
    return bool(query.content.get("legendFormat", "").startswith("others"))


def links(panel: dict[str, Any]) -> list[str]:
    """The addresses of the links of a panel, its points and its columns."""
    settings = panel["fieldConfig"]
    entries = [*panel.get("links", []), *settings["defaults"].get("links", [])]
    for override in settings["overrides"]:
        entries += [link for each in override["properties"] if each["id"] == "links" for link in each["value"]]
    return [link["url"] for link in entries]


def explored(url: str) -> list[dict[str, Any]]:
    """The queries that a link opens in Explore."""
    (content,) = parse_qs(urlsplit(url).query)["panes"]
    return [query for pane in json.loads(content).values() for query in pane["queries"]]


def calls(expression: Any) -> Iterator[tuple[str, Any]]:
    """Each selector of a parsed expression with the function around it, if any."""
    if isinstance(expression, promql_parser.Call):
        for argument in expression.args:
            if isinstance(argument, promql_parser.MatrixSelector | promql_parser.VectorSelector):
                yield expression.func.name, argument
            else:
                yield from calls(argument)
    elif isinstance(expression, promql_parser.MatrixSelector | promql_parser.VectorSelector):
        yield "", expression
    else:
        for part in ("lhs", "rhs", "expr", "param"):
            if getattr(expression, part, None) is not None:
                yield from calls(getattr(expression, part))


def provisioned() -> dict[str, dict[str, Any]]:
    """The data sources by their uid."""
    path = ROOT / "grafana" / "provisioning" / "datasources" / "datasources.yml"
    return {source["uid"]: source for source in yaml.safe_load(path.read_text(encoding="utf-8"))["datasources"]}


def values(content: Any, *keys: str) -> Iterator[Any]:
    """The values of some keys at any depth."""
    if isinstance(content, dict):
        yield from (value for key, value in content.items() if key in keys)
    children = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    for child in children:
        yield from values(child, *keys)
