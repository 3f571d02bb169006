"""Which expectations the data violate, and how close to the limit."""

from grafana import links
from grafana.board import PIPELINES, Board, Row
from grafana.look import NONE_IS_GOOD, UNKNOWN, Column, Look
from grafana.panels import Panel, Query, bars, figure, points, ranking, rows, top
from grafana.queries import INTERVAL, RANGE, added, grown, known, largest, last, legend
from grafana.verdict import verdict
from spark_app.vocabulary import names
from spark_app.vocabulary.prometheus_names import label

ONWARD = (links.RUNS_OF, links.TRACES_OF, links.LOGS_OF)
BY_EXPECTATION = (names.PIPELINE, names.TABLE, names.EXPECTATION)
EXPECTATION_LEGEND = legend(names.TABLE, names.EXPECTATION)
NEAR_ITS_LIMIT = {None: "green", 0.5: "yellow", 1: "red"}


def board() -> Board:
    """Quality of the data of the chosen pipelines."""
    return Board(
        "data-quality",
        "pipelines",
        "Data quality: which expectations do the data violate?",
        "How many rows violate which expectation, and how close that is to the limit.",
        (
            Row("Is it well, since when, where to look", verdict("data-quality")),
            Row("In the time range", (_breaches(), _violations(), _quarantined(), _worst())),
            Row("Expectations", (_expectations(), _shares(), _violations_over_time())),
            Row("Nulls and unpublished rows", (_nulls(), _set_aside())),
        ),
        by=(PIPELINES,),
        since="now-24h",
    )


def _breaches() -> Panel:
    text = "Runs that were rejected because of an expectation; they published nothing. Alert: PipelineQualityBreach."
    look = Look(text, "locale", (links.RUNS, links.ALL_TRACES), NONE_IS_GOOD, empty=UNKNOWN)
    return figure("Runs rejected", look, Query(known(added(grown(names.QUALITY_BREACHES, RANGE))))).sized(6, 4)


def _violations() -> Panel:
    text = "Violations: a row counts once for each expectation that it violates."
    look = Look(text, "locale", (links.RUNS, links.TROUBLE), empty=UNKNOWN)
    return figure("Violations", look, Query(known(added(grown(names.QUALITY_VIOLATIONS, RANGE))))).sized(6, 4)


def _quarantined() -> Panel:
    text = "Share of the rows read that were quarantined as invalid; `spark-app show quarantine` shows them."
    kept_apart, read = (added(grown(metric, RANGE)) for metric in (names.QUARANTINED, names.READ))
    look = Look(text, "percentunit", (links.RUNS, links.TROUBLE))
    return figure("Rows quarantined", look, Query(f"{kept_apart} / ({read} > 0)")).sized(6, 4)


def _worst() -> Panel:
    text = "The expectation that came closest to its limit in its last run. Above 100 % the run is rejected."
    look = Look(text, "percentunit", ONWARD, NEAR_ITS_LIMIT, empty="No expectation with a limit was checked")
    return figure("Closest to its limit", look, Query(f"topk(1, {_used()})", EXPECTATION_LEGEND)).sized(6, 4)


def _used() -> str:
    """The share of violating rows divided by the allowed share, if that is not 0."""
    share = largest(last(names.QUALITY_VIOLATION), *BY_EXPECTATION)
    allowed = largest(last(names.QUALITY_THRESHOLD), *BY_EXPECTATION)
    return f"{share} / ({allowed} > 0)"


def _expectations() -> Panel:
    columns = (
        Column(label(names.PIPELINE), "Pipeline", links=(links.RUNS_OF_CELL, links.TRACES_OF_CELL, links.LOGS_OF_CELL)),
        Column(label(names.TABLE), "Table"),
        Column(label(names.EXPECTATION), "Expectation"),
        Column("Value #A", "Share in the last run", "percentunit"),
        Column("Value #B", "Limit", "percentunit"),
        Column("Value #C", "Limit used", "percentunit", colors=NEAR_ITS_LIMIT),
        Column("Value #D", "Rows checked", "locale"),
        Column("Value #E", "Violations", "locale"),
        Column("Value #F", "Runs rejected", colors=NONE_IS_GOOD),
    )
    text = "Each expectation with the result of its last run; counts are for the time range. Limits are in config/etl/."
    return rows(
        "Expectations",
        Look(text, "none", (links.RUNS, links.ALL_TRACES)),
        columns,
        Query(f"sort_desc({largest(last(names.QUALITY_VIOLATION), *BY_EXPECTATION)})"),
        Query(largest(last(names.QUALITY_THRESHOLD), *BY_EXPECTATION)),
        Query(_used()),
        Query(added(grown(names.QUALITY_CHECKED, RANGE), *BY_EXPECTATION)),
        Query(added(grown(names.QUALITY_VIOLATIONS, RANGE), *BY_EXPECTATION)),
        Query(added(grown(names.QUALITY_BREACHES, RANGE), *BY_EXPECTATION)),
    ).sized(24, 10)


def _shares() -> Panel:
    text = "Share of the checked rows that violate an expectation: one point per run, for those with the most."
    query = largest(last(names.QUALITY_VIOLATION, INTERVAL), *BY_EXPECTATION)
    look = Look(text, "percentunit", ONWARD, interval="1m")
    shown = top(query, EXPECTATION_LEGEND, *BY_EXPECTATION, others="max")
    return points("Share of violating rows", look, *shown)


def _violations_over_time() -> Panel:
    text = "Rows that violate each expectation. A new expectation among the bars usually means a change at the source."
    query = added(grown(names.QUALITY_VIOLATIONS, INTERVAL), *BY_EXPECTATION)
    return bars(
        "Violations by expectation", Look(text, "locale", ONWARD), *top(query, EXPECTATION_LEGEND, *BY_EXPECTATION)
    )


def _nulls() -> Panel:
    text = "Nulls in the columns with the most. Nulls may be allowed; check a sudden increase."
    by = (names.PIPELINE, names.TABLE, names.COLUMN)
    shown = top(f"{added(grown(names.QUALITY_NULLS, RANGE), *by)} > 0", legend(names.TABLE, names.COLUMN), *by)
    return ranking("Nulls by column", Look(text, "locale", ONWARD), *shown)


def _set_aside() -> Panel:
    text = "Rows quarantined as invalid, older versions of a key, and unaccounted rows, which are a bug."
    return bars(
        "Rows not published",
        Look(text, "locale", (links.RUNS, links.TROUBLE)),
        Query(added(grown(names.QUARANTINED, INTERVAL)), "quarantined"),
        Query(added(grown(names.DUPLICATE, INTERVAL)), "duplicate"),
        Query(added(grown(names.UNACCOUNTED, INTERVAL)), "unaccounted"),
    ).sized(12, 12)
