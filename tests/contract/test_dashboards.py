"""Every panel can be read, asks only for what exists, asks it rightly, and leads onward."""

import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import promql_parser
import pytest
import yaml

from app.telemetry import names, spark_names
from app.telemetry.prometheus_names import series
from tests.contract.dashboards import (
    BOARDS,
    FOLDER,
    ROOT,
    WINDOWS,
    Asked,
    calls,
    explored,
    links,
    panels,
    provisioned,
    queries,
    values,
)
from tests.contract.metrics import THIRD_PARTY, catalogued, names_in, translated
from tests.contract.metrics import series as all_series

RULES: Final = [
    rule
    for path in (ROOT / "prometheus" / "rules").glob("*.yml")
    for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
RECORDED: Final = {rule["record"] for rule in RULES if "record" in rule}
ALERTS: Final = {rule["alert"] for rule in RULES if "alert" in rule}
METRICS: Final = (*names.METRICS, *spark_names.METRICS)
COLUMNS: Final = 24
OF_TEXT: Final = {"logs", "alertlist"}
PER_SECOND: Final = {"rate", "irate", "increase"}
COUNTER_ENDS: Final = ("_total", "_bucket", "_sum", "_count")
# Spark calls each of its numbers a gauge, and the collector's counters have no `_total`; these only grow.
GROWING: Final = re.compile(
    r"metrics_jvm_gc_(time|count)_Number|otelcol_process_cpu_seconds|otelcol_deltatocumulative_datapoints"
    r"|otelcol_(receiver|exporter)_(accepted|refused|sent|send_failed|enqueue_failed)_\w+"
)
# Jaeger 2.13 tells these of itself; the names of its older collector end as they should.
HUES: Final = ("red", "orange", "yellow", "green", "blue", "purple")
PALETTE: Final = {"text", "transparent"} | {
    shade + hue for hue in HUES for shade in ("", "super-light-", "light-", "semi-dark-", "dark-")
}
SOURCES: Final = {"prometheus": "${datasource}", "jaeger": "${traces}", "elasticsearch": "${logs}"}
UIDS: Final = {board["uid"] for board in BOARDS.values()}

of_each_board = pytest.mark.parametrize(("path", "board"), BOARDS.items(), ids=[path.stem for path in BOARDS])
PROMQL: Final = [asked for asked in queries() if asked.kind == "prometheus"]
of_each_query = pytest.mark.parametrize("asked", PROMQL, ids=str)


@of_each_board
def test_a_dashboard_is_what_its_file_is_called(path: Path, board: dict[str, Any]) -> None:
    """The uid is the stem of the file, links depend on it; nobody edits in Grafana what is made from code."""
    assert board["uid"] == path.stem
    assert board["editable"] is False
    assert board["title"]
    assert board["description"]


def test_the_promised_dashboards_are_there() -> None:
    """Each in the folder that Grafana shows it in."""
    assert {(path.parent.name, path.stem) for path in BOARDS} >= {
        ("platform", "platform-overview"),
        ("platform", "telemetry-path"),
        ("pipelines", "pipeline-runs"),
        ("pipelines", "data-quality"),
        ("spark", "spark-cluster"),
    }


@of_each_board
def test_a_panel_says_what_it_shows(path: Path, board: dict[str, Any]) -> None:
    """It has a title of its own, a description and, where there are values, a unit."""
    titles = [panel["title"] for panel in panels(board)]
    assert len(titles) == len(set(titles))
    for panel in panels(board):
        assert panel["description"].endswith(".")
        assert panel["type"] in OF_TEXT or panel["fieldConfig"]["defaults"]["unit"], panel["title"]


@of_each_board
def test_panels_lie_side_by_side(path: Path, board: dict[str, Any]) -> None:
    """Within 24 columns, none upon another; each has an id, and each query of it."""
    places = {panel["id"]: panel["gridPos"] for panel in board["panels"]}
    assert len(places) == len(board["panels"])
    assert all(place["x"] >= 0 and place["x"] + place["w"] <= COLUMNS for place in places.values())
    assert [(one, other) for one, other in combinations(places, 2) if overlap(places[one], places[other])] == []
    for panel in panels(board):
        refs = [query["refId"] for query in panel.get("targets", [])]
        assert len(refs) == len(set(refs))


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    """Whether two places have a cell in common."""
    apart = (
        one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"],
        one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"],
    )
    return not any(apart)


@of_each_board
def test_a_panel_leads_onward(path: Path, board: dict[str, Any]) -> None:
    """To a dashboard that exists, to a query in Explore of a data source that exists, or to the alerts."""
    for panel in panels(board):
        assert links(panel), panel["title"]
        for url in links(panel):
            if url.startswith("/explore?"):
                assert {query["datasource"]["uid"] for query in explored(url)} <= set(provisioned())
            else:
                found = re.fullmatch(r"/d/([\w-]+)\?\$\{__url_time_range\}.*|/alerting/list", url)
                assert found is not None, url
                assert found[1] is None or found[1] in UIDS


@of_each_board
def test_a_panel_asks_the_data_source_that_is_chosen(path: Path, board: dict[str, Any]) -> None:
    """Panels and queries name a variable, and the variable is of the type that they need."""
    variables = {each["name"]: each for each in board["templating"]["list"]}
    titles = [source["name"] for source in provisioned().values()]
    for source in values(board["panels"], "datasource"):
        # The list of alerts knows its data source by its title.
        assert source in titles or source["uid"] == SOURCES[source["type"]], source
    for kind, name in SOURCES.items():
        variable = variables[name.strip("${}")]
        assert (variable["type"], variable["query"], variable["current"]["value"]) == ("datasource", kind, kind)


@of_each_board
def test_every_variable_that_is_used_is_asked_for(path: Path, board: dict[str, Any]) -> None:
    """And is read anew when the time range changes, as pipelines come and go."""
    variables = {each["name"]: each for each in board["templating"]["list"]}
    used = set(re.findall(r"\$([a-z_]\w*)", " ".join(values(board["panels"], "expr", "query"))))
    assert {name for name in used if not name.startswith("__")} <= set(variables)
    assert all(each["refresh"] == 2 for each in variables.values() if each["type"] == "query")


@of_each_board
def test_colours_are_of_the_palette(path: Path, board: dict[str, Any]) -> None:
    """Named ones only: they fit the light theme and the dark one."""
    named = [color for color in values(board, "color", "fixedColor") if isinstance(color, str)]
    assert set(named) <= PALETTE


@of_each_board
def test_alerts_that_a_panel_names_exist(path: Path, board: dict[str, Any]) -> None:
    """A description that says `Alert: Name` is a promise."""
    for panel in panels(board):
        named = re.search(r"Alerts?: (.+?)(?:, [a-z].*)?\.$", panel["description"])
        assert named is None or set(named[1].split(", ")) <= ALERTS, panel["description"]


@of_each_query
def test_a_query_reads_only_series_that_exist(asked: Asked) -> None:
    """It parses, and each name is of the catalogue, of a program that we know, or recorded by a rule."""
    assert names_in(asked.expression()) - catalogued() - THIRD_PARTY - RECORDED == set()


@of_each_query
def test_only_counters_have_a_rate_and_over_the_right_window(asked: Asked) -> None:
    """`$__rate_interval` spans two scrapes at least; the rate of a gauge means nothing."""
    for function, selector in calls(promql_parser.parse(asked.expression())):
        if function in PER_SECOND:
            name = selector.vector_selector.name
            assert name.endswith(COUNTER_ENDS) or GROWING.fullmatch(name), name
            assert selector.range == WINDOWS["$__rate_interval"]


@of_each_query
def test_what_a_run_told_is_remembered(asked: Asked) -> None:
    """A job that is over sends nothing: what it told is read by `last_over_time`, not as of now, not by `increase`."""
    for function, selector in calls(promql_parser.parse(asked.expression())):
        name = getattr(selector, "vector_selector", selector).name
        assert name not in catalogued() or function == "last_over_time", f"{function}({name})"


@of_each_query
def test_nothing_is_made_up(asked: Asked) -> None:
    """No series is invented where there is none: an empty panel must look empty."""
    assert not re.search(r"\b(vector|absent|absent_over_time)\(", asked.query["expr"])


@of_each_query
def test_histograms_of_spans_show_their_exemplars(asked: Asked) -> None:
    """They lead to traces; other series have none."""
    buckets = {"traces_span_metrics_duration_seconds_bucket", "spark_task_duration_seconds_bucket"}
    of_spans = asked.query["range"] and not buckets.isdisjoint(names_in(asked.expression()))
    assert asked.query["exemplar"] is of_spans


def test_every_metric_of_the_catalogue_is_drawn() -> None:
    """What nobody looks at need not be measured."""
    drawn = set().union(*(names_in(asked.expression()) for asked in PROMQL))
    assert [metric.name for metric in METRICS if drawn.isdisjoint(all_series(metric))] == []


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_dashboards_and_rules_call_a_metric_the_same(metric: names.Metric) -> None:
    """Two readings of Prometheus' translation, one for what is made and one for what is checked."""
    assert series(metric) == translated(metric)


def test_the_committed_dashboards_are_those_that_the_code_makes(tmp_path: Path) -> None:
    """`python -m grafana.build` changes nothing, and leaves nothing behind that it no longer makes."""
    subprocess.run([sys.executable, "-m", "grafana.build", str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    made = {path.relative_to(tmp_path): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.json")}
    assert made == {path.relative_to(FOLDER): path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.json")}
