"""Every panel can be read, queries only series that exist, in the right way, and links onward."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Final

import msgspec
import yaml

from grafana import drawn
from spark_app.vocabulary import names, spark_names
from spark_app.vocabulary.prometheus_names import label, series
from tests.contract.dashboards import (
    BOARDS,
    FOLDER,
    ROOT,
    WINDOWS,
    Board,
    Query,
    calls,
    explored,
    links,
    panels,
    provisioned,
    queries,
    values,
)
from tests.contract.metrics import SCRAPED, catalogued, names_in, parsed, translated
from tests.contract.metrics import series as all_series
from tests.contract.violations import violations

RULES: Final = [
    rule
    for path in (ROOT / "prometheus" / "rules").glob("*.yml")
    for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
RECORDED: Final = {rule["record"] for rule in RULES if "record" in rule}
ALERTS: Final = {rule["alert"] for rule in RULES if "alert" in rule}
KNOWN: Final = catalogued() | SCRAPED | RECORDED
METRICS: Final = (*names.METRICS, *spark_names.METRICS)
COLUMNS: Final = 24
WITHOUT_VALUES: Final = {"logs", "alertlist"}
PER_SECOND: Final = {"rate", "irate"}
COUNTER_ENDS: Final = ("_total", "_bucket", "_sum", "_count")
# Spark calls each of its numbers a gauge, and the collector's counters have no `_total`; these only grow.
GROWING: Final = re.compile(
    r"metrics_jvm_gc_(time|count)_Number|otelcol_process_cpu_seconds|otelcol_deltatocumulative_datapoints"
    r"|otelcol_(receiver|exporter)_(accepted|refused|sent|send_failed|enqueue_failed)_\w+"
)
HUES: Final = ("red", "orange", "yellow", "green", "blue", "purple")
PALETTE: Final = {"text", "transparent"} | {
    shade + hue for hue in HUES for shade in ("", "super-light-", "light-", "semi-dark-", "dark-")
}
SOURCES: Final = {"prometheus": "${datasource}", "jaeger": "${traces}", "elasticsearch": "${logs}"}
UIDS: Final = {board.content["uid"] for board in BOARDS}
PROMQL: Final = [query for query in queries() if query.kind == "prometheus"]


def test_dashboard_matches_its_file() -> None:
    """Links depend on the uid, which is the stem of the file; Grafana cannot edit what is generated."""

    def rule(board: Board) -> Iterator[str]:
        if board.content["uid"] != board.path.stem:
            yield f"its uid is {board.content['uid']}"
        if board.content["editable"] or "grafana.build" not in board.content["__generated"]:
            yield "it is not marked as generated"
        if not (board.content["title"] and board.content["description"]):
            yield "it has no title or no description"

    assert violations(rule, BOARDS) == []


def test_documented_dashboards_exist() -> None:
    """Each in the folder that Grafana shows it in."""
    assert {(board.path.parent.name, board.path.stem) for board in BOARDS} >= {
        ("platform", "platform-overview"),
        ("platform", "telemetry-path"),
        ("pipelines", "pipeline-runs"),
        ("pipelines", "data-quality"),
        ("spark", "spark-cluster"),
    }


def test_panel_has_title_description_and_unit() -> None:
    """The titles of a dashboard differ, a description is a sentence, and values have a unit."""

    def rule(board: Board) -> Iterator[str]:
        titles = [panel["title"] for panel in panels(board)]
        yield from {f"two panels are called {title}" for title in titles if titles.count(title) > 1}
        for panel in panels(board):
            if not panel["description"].endswith("."):
                yield f"{panel['title']} has no sentence as its description"
            if panel["type"] not in WITHOUT_VALUES and not panel["fieldConfig"]["defaults"].get("unit"):
                yield f"{panel['title']} has no unit"

    assert violations(rule, BOARDS) == []


def test_empty_panel_says_what_that_means() -> None:
    """That nothing happened, or that nothing is known: a count says the one by 0, and the other in words."""

    def rule(board: Board) -> Iterator[str]:
        for panel in panels(board):
            if not panel["fieldConfig"]["defaults"].get("noValue"):
                yield f"{panel['title']} says nothing"
            has_colors = len(panel["fieldConfig"]["defaults"]["thresholds"]["steps"]) > 1
            unknown = [
                each["options"] for each in panel["fieldConfig"]["defaults"]["mappings"] if each["type"] == "special"
            ]
            if has_colors and [(each["match"], each["result"]["color"]) for each in unknown] != [
                ("null", "transparent")
            ]:
                yield f"{panel['title']} has the color of 0 where nothing is known"

    assert violations(rule, BOARDS) == []


def test_values_are_drawn_from_0_on() -> None:
    """Half a bar is half of the largest value, and a line at the top is not the largest of 40 that differ by 1 %."""

    def rule(board: Board) -> Iterator[str]:
        for panel in panels(board):
            defaults = panel["fieldConfig"]["defaults"]
            if panel["type"] == "bargauge" and defaults.get("min") != 0:
                yield f"the bars of {panel['title']} begin anywhere"
            if panel["type"] == "timeseries" and defaults["custom"].get("axisSoftMin") != 0:
                yield f"the axis of {panel['title']} begins anywhere"

    assert violations(rule, BOARDS) == []


def test_first_row_says_whether_it_is_well_since_when_and_where_to_look() -> None:
    """By the alerts that lead to the dashboard, which somebody must act on; the title asks what it answers."""

    def rule(board: Board) -> Iterator[str]:
        if not board.content["title"].endswith("?"):
            yield "its title asks nothing"
        first = [panel["title"] for panel in panels(board)[:4]]
        if first != ["Is it well?", "Alert began", "Telemetry", "Where to look"]:
            yield f"its first row is {first}"
        names_of_alerts = set(re.findall(r"\b[A-Z]\w+", panels(board)[0]["targets"][0]["expr"])) - {"ALERTS"}
        if str(board) != "platform-overview" and names_of_alerts != leading_to(str(board)):
            yield f"its verdict is that of {sorted(names_of_alerts ^ leading_to(str(board)))}"

    assert violations(rule, BOARDS) == []


def leading_to(uid: str) -> set[str]:
    """The alerts whose notification links to a dashboard."""
    alerts = [rule for rule in RULES if "alert" in rule]
    return {rule["alert"] for rule in alerts if f"/d/{uid}" in rule["annotations"].get("dashboard_url", "")}


def test_each_dashboard_is_shown_in_two_pictures() -> None:
    """When all is well and in an incident, small enough for a clone; the page asks what the title asks."""
    page = (ROOT / "docs" / "dashboards.md").read_text(encoding="utf-8")

    def rule(board: Board) -> Iterator[str]:
        name, _, question = board.content["title"].partition(": ")
        if f"## {name}\n\n*{question[0].upper()}{question[1:]}*" not in page:
            yield "docs/dashboards.md does not ask its question"
        for state in ("healthy", "incident"):
            path = ROOT / "docs" / "dashboards" / f"{board}-{state}.webp"
            if f"(dashboards/{path.name})" not in page or not 0 < path.stat().st_size <= 150_000:
                yield f"{path.name} is not shown, or is too large"

    assert violations(rule, BOARDS) == []


def test_a_color_has_one_meaning() -> None:
    """A series that is named on several dashboards has the same color on all of them."""
    colors: dict[str, set[str]] = {}
    for board in BOARDS:
        for panel in panels(board):
            for override in panel["fieldConfig"]["overrides"]:
                for each in override["properties"]:
                    if each["id"] == "color" and "fixedColor" in each["value"]:
                        colors.setdefault(override["matcher"]["options"], set()).add(each["value"]["fixedColor"])
    assert {name: found for name, found in colors.items() if len(found) > 1} == {}
    assert {"succeeded", "failed", "others", "read", "written"} <= set(colors)


def test_panels_do_not_overlap() -> None:
    """They lie within 24 columns; ids of panels and of their queries are unique."""

    def rule(board: Board) -> Iterator[str]:
        positions = {panel["id"]: panel["gridPos"] for panel in board.content["panels"]}
        if len(positions) != len(board.content["panels"]):
            yield "two panels have one id"
        for number, position in positions.items():
            if position["x"] < 0 or position["x"] + position["w"] > COLUMNS:
                yield f"panel {number} leaves the grid"
        for left, right in combinations(positions, 2):
            if overlap(positions[left], positions[right]):
                yield f"panels {left} and {right} overlap"
        for panel in panels(board):
            letters = [query["refId"] for query in panel.get("targets", [])]
            if len(letters) != len(set(letters)):
                yield f"two queries of {panel['title']} have one letter"

    assert violations(rule, BOARDS) == []


def overlap(left: dict[str, int], right: dict[str, int]) -> bool:
    """Whether two positions have a cell in common."""
    return (
        left["x"] < right["x"] + right["w"]
        and right["x"] < left["x"] + left["w"]
        and left["y"] < right["y"] + right["h"]
        and right["y"] < left["y"] + left["h"]
    )


def test_panel_links_onward() -> None:
    """To a dashboard that exists, to a query in Explore of a data source that exists, or to the alerts."""

    def rule(board: Board) -> Iterator[str]:
        for panel in panels(board):
            if not links(panel):
                yield f"{panel['title']} has no link"
            for url in links(panel):
                if not leads_somewhere(url):
                    yield f"{panel['title']} links to {url}"

    assert violations(rule, BOARDS) == []


def leads_somewhere(url: str) -> bool:
    """Whether a link leads to what exists."""
    if url in {"${reports}/", "${reports}/${__value.text}.html"}:
        return any(each["name"] == "reports" for board in BOARDS for each in board.content["templating"]["list"])
    if url.startswith("/explore?"):
        return {query["datasource"]["uid"] for query in explored(url)} <= set(provisioned())
    match = re.fullmatch(r"/d/([\w-]+)\?\$\{__url_time_range\}.*|/alerting/list", url)
    return match is not None and (match[1] is None or match[1] in UIDS)


def test_panel_queries_the_chosen_data_source() -> None:
    """Panels and queries name a variable, and the variable is of the type that they need."""
    titles = [source["name"] for source in provisioned().values()]

    def rule(board: Board) -> Iterator[str]:
        variables = {each["name"]: each for each in board.content["templating"]["list"]}
        for source in values(board.content["panels"], "datasource"):
            # The list of alerts knows its data source by its title.
            if source not in titles and source["uid"] != SOURCES[source["type"]]:
                yield f"{source} is not a variable"
        for kind, name in SOURCES.items():
            variable = variables[name.strip("${}")]
            if (variable["type"], variable["query"], variable["current"]["value"]) != ("datasource", kind, kind):
                yield f"{name} does not choose a data source of type {kind}"

    assert violations(rule, BOARDS) == []


def test_colors_are_of_the_palette() -> None:
    """Named colors fit the light theme and the dark one."""

    def rule(board: Board) -> set[str]:
        return {color for color in values(board.content, "color", "fixedColor") if isinstance(color, str)} - PALETTE

    assert violations(rule, BOARDS) == []


def test_alerts_that_a_panel_names_exist() -> None:
    """A description may end with `Alert: Name`."""

    def rule(board: Board) -> Iterator[str]:
        for panel in panels(board):
            match = re.search(r"Alerts?: (.+?)(?:, [a-z].*)?\.$", panel["description"])
            yield from set(match[1].split(", ")) - ALERTS if match else ()

    assert violations(rule, BOARDS) == []


def test_query_reads_only_series_that_exist() -> None:
    """It parses, and each name is of the catalogue, of a program that we know, or recorded by a rule."""
    assert violations(lambda query: names_in(query.expression()) - KNOWN, PROMQL) == []


def test_rates_are_of_counters_over_the_right_window() -> None:
    """`$__rate_interval` spans at least two scrapes; the rate of a gauge means nothing."""

    def rule(query: Query) -> Iterator[str]:
        for function, selector in calls(parsed(query.expression())):
            if function in PER_SECOND:
                name = selector.vector_selector.name
                if not (name.endswith(COUNTER_ENDS) or GROWING.fullmatch(name)):
                    yield f"{function}({name}) is of no counter"
                # A panel ranks its series by the whole time range.
                whole = selector.vector_selector.at is not None
                if selector.range != WINDOWS["$__range" if whole else "$__rate_interval"]:
                    yield f"{function}({name}) is over {selector.range}"

    assert violations(rule, PROMQL) == []


def test_series_of_applications_are_read_after_their_end() -> None:
    """A finished one sends nothing: an instant would not find its last value, and a rate would show nothing."""

    def rule(query: Query) -> Iterator[str]:
        for function, selector in calls(parsed(query.expression())):
            name = getattr(selector, "vector_selector", selector).name
            if name in catalogued() and function not in {"last_over_time", "max_over_time", "increase"}:
                yield f"{function}({name})"

    assert violations(rule, PROMQL) == []


def test_increases_are_exact_and_cheap() -> None:
    """Without `anchored` they extrapolate; a subquery would evaluate its expression thousands of times."""

    def rule(query: Query) -> Iterator[str]:
        expression = query.expression()
        if expression.count("increase(") != expression.count(" anchored)"):
            yield "an increase is not anchored"
        if re.search(r"\[[^\]]+:[^\]]*\]", expression):
            yield "has a subquery"

    assert violations(rule, PROMQL) == []


def test_empty_panels_look_empty() -> None:
    """No query invents a series where there is none."""
    invented = re.compile(r"\b(?:vector|absent|absent_over_time)\(")
    assert violations(lambda query: invented.findall(query.content["expr"]), PROMQL) == []


def test_histograms_of_spans_show_exemplars() -> None:
    """They lead to traces; other series have none."""
    buckets = {"traces_span_metrics_duration_seconds_bucket", "spark_task_duration_seconds_bucket"}

    def rule(query: Query) -> Iterator[str]:
        has_traces = query.content["range"] and not buckets.isdisjoint(names_in(query.expression()))
        if query.content["exemplar"] is not has_traces:
            yield f"exemplar is {query.content['exemplar']}"

    assert violations(rule, PROMQL) == []


def test_streaming_queries_of_one_name_in_two_programs_are_two() -> None:
    """Wherever the name of a query filters, groups, or names a line, that of its application does, too."""

    def rule(query: Query) -> Iterator[str]:
        parts = re.findall(r"by \([^)]*\)|\{[^}]*\}", query.content["expr"])
        for part in [*parts, query.content["legendFormat"]]:
            if (label(names.PIPELINE) in part) != (label(names.APPLICATION) in part):
                yield part

    assert violations(rule, [query for query in PROMQL if str(query.board) == "streaming"]) == []


def test_links_of_a_streaming_query_lead_to_its_micro_batches() -> None:
    """Spans of any program are of the service of its name, which the label has, or a column of the table."""
    of_series = f"${{__field.labels.{label(names.APPLICATION)}}}"

    def rule(query: Query) -> Iterator[str]:
        columns = {each["matcher"]["options"] for each in query.panel["fieldConfig"]["overrides"]}
        services = {of_series, *(f"${{__data.fields.{column}}}" for column in columns)}
        urls = [url for url in links(query.panel) if url.startswith("/explore?")]
        for search in [search for url in urls for search in explored(url) if "operation" in search]:
            if search["service"] not in services or not search["operation"].startswith("batch "):
                yield f"{search['operation']} of {search['service']}"

    assert violations(rule, [query for query in PROMQL if str(query.board) == "streaming"]) == []


def test_every_metric_of_the_catalogue_is_drawn() -> None:
    """A metric that no panel shows need not be measured."""
    drawn = set().union(*(names_in(query.expression()) for query in PROMQL))
    assert [metric.name for metric in METRICS if drawn.isdisjoint(all_series(metric))] == []


def test_series_names_are_those_of_prometheus() -> None:
    """Two readings of Prometheus' translation, one that generates queries and one that checks them, agree."""
    metrics = (*METRICS, *spark_names.BRIDGE_METRICS)
    assert {metric.name: series(metric) for metric in metrics} == {
        metric.name: translated(metric) for metric in metrics
    }


def test_committed_dashboards_are_what_the_code_generates(tmp_path: Path) -> None:
    """`python -m grafana.build` changes nothing and removes what it no longer generates."""
    stale = tmp_path / "spark" / "stale.json"
    stale.parent.mkdir()
    stale.write_text("{}", encoding="utf-8")
    subprocess.run([sys.executable, "-m", "grafana.build", str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    generated = {path.relative_to(tmp_path): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.json")}
    assert generated == {path.relative_to(FOLDER): path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.json")}


def test_changed_panel_is_a_changed_line() -> None:
    """Each panel has a line of its own, so that a review shows which one changed."""

    def rule(board: Board) -> Iterator[str]:
        lines = board.path.read_text(encoding="utf-8").splitlines()
        for panel in board.content["panels"]:
            if json.dumps(panel, ensure_ascii=False) not in {line.rstrip(",") for line in lines}:
                yield f"{panel['title']} is not on a line"

    assert violations(rule, BOARDS) == []


def test_a_picture_with_too_much_or_nothing_that_is_right_is_a_fault(tmp_path: Path) -> None:
    """Tiles, bars and legends have their limits; what cannot be drawn, has no answer or no number is named."""
    good = {"board": "Streaming", "panel": "States", "type": "stat", "answers": [{"series": 1}]}
    bad = [
        {**good, "shown": [[f"query {number}", "1"] for number in range(7)]},
        {**good, "type": "timeseries", "legend": ['{job="x"}', *map(str, range(10))], "nan": 2},
        {**good, "type": "bargauge", "negative": 1},
        {**good, "answers": [{"error": "parse error"}]},
        {**good, "failed": "TypeError: x\n at y"},
    ]
    assert drawn.main(tmp_path) == 2
    (tmp_path / "report-1600.json").write_text(json.dumps([good]), encoding="utf-8")
    assert drawn.main(tmp_path) == 0
    (tmp_path / "report-400.json").write_text(json.dumps(bad), encoding="utf-8")
    assert drawn.main(tmp_path) == 1
    counts = [len(list(drawn.faults(msgspec.convert(each, drawn.Panel)))) for each in bad]
    assert counts == [1, 3, 1, 1, 1]
