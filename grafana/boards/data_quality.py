"""How well the data kept its promises, and how near it came to being rejected."""

from app.telemetry import names
from app.telemetry.prometheus_names import label
from grafana import links
from grafana.board import PIPELINES, Board, Row
from grafana.look import NONE_IS_GOOD, Column, Look
from grafana.panels import Panel, Query, bars, figure, points, ranking, rows
from grafana.queries import INTERVAL, RANGE, added, grown, largest, last, legend

ONWARD = (links.RUNS_OF, links.TRACES_OF, links.LOGS_OF)
BY_PROMISE = (names.PIPELINE, names.TABLE, names.PROMISE)
OF_PROMISE = legend(names.TABLE, names.PROMISE)
NEAR_ITS_LIMIT = {None: "green", 0.5: "yellow", 1: "red"}


def board() -> Board:
    """Quality of the data of the chosen pipelines."""
    return Board(
        "data-quality",
        "pipelines",
        "Data quality",
        "How many rows broke which promise, how near that is to the limit, and what became of them.",
        (
            Row("In the time range", (_breaches(), _violations(), _quarantined(), _worst())),
            Row("Promises", (_promises(), _shares(), _violations_over_time())),
            Row("What is not there", (_nulls(), _set_aside())),
        ),
        by=PIPELINES,
        since="now-24h",
    )


def _breaches() -> Panel:
    text = "Runs that a promise rejected; nothing of them was published. Alert: PipelineQualityBreach."
    query = added(grown(names.QUALITY_BREACHES, RANGE), names.PIPELINE)
    return figure("Breaches", Look(text, "none", ONWARD, NONE_IS_GOOD), Query(query, legend(names.PIPELINE))).sized(
        6, 4
    )


def _violations() -> Panel:
    text = "Rows in violation, each counted for every promise that it breaks."
    query = added(grown(names.QUALITY_VIOLATIONS, RANGE), names.PIPELINE)
    return figure("Violations", Look(text, "locale", ONWARD), Query(query, legend(names.PIPELINE))).sized(6, 4)


def _quarantined() -> Panel:
    text = "Share of the rows read that were kept apart as invalid; `spark-app show quarantine` shows them."
    kept_apart = added(grown(names.QUARANTINED, RANGE), names.PIPELINE)
    read = added(grown(names.READ, RANGE), names.PIPELINE)
    return figure(
        "Quarantined", Look(text, "percentunit", ONWARD), Query(f"{kept_apart} / ({read} > 0)", legend(names.PIPELINE))
    ).sized(6, 4)


def _worst() -> Panel:
    text = "The promise that came nearest to its limit in its last run: at 100 % the run is rejected."
    query = largest(_used(), names.PIPELINE)
    return figure(
        "Nearest to a limit", Look(text, "percentunit", ONWARD, NEAR_ITS_LIMIT), Query(query, legend(names.PIPELINE))
    ).sized(6, 4)


def _used() -> str:
    """The share of rows in violation as a share of what is allowed, where something is."""
    share = largest(last(names.QUALITY_VIOLATION), *BY_PROMISE)
    allowed = largest(last(names.QUALITY_THRESHOLD), *BY_PROMISE)
    return f"{share} / ({allowed} > 0)"


def _promises() -> Panel:
    columns = (
        Column(label(names.PIPELINE), "Pipeline", links=(links.RUNS_OF_CELL, links.TRACES_OF_CELL, links.LOGS_OF_CELL)),
        Column(label(names.TABLE), "Table"),
        Column(label(names.PROMISE), "Promise"),
        Column("Value #A", "Share in the last run", "percentunit"),
        Column("Value #B", "Limit", "percentunit"),
        Column("Value #C", "Limit used", "percentunit", colors=NEAR_ITS_LIMIT),
        Column("Value #D", "Rows checked", "locale"),
        Column("Value #E", "Violations", "locale"),
        Column("Value #F", "Breaches", colors=NONE_IS_GOOD),
    )
    text = "Each promise with what its last run found; counts are those of the time range. Limits are in config/etl/."
    return rows(
        "Promises",
        Look(text, "none", (links.RUNS, links.ALL_TRACES)),
        columns,
        Query(largest(last(names.QUALITY_VIOLATION), *BY_PROMISE)),
        Query(largest(last(names.QUALITY_THRESHOLD), *BY_PROMISE)),
        Query(_used()),
        Query(added(grown(names.QUALITY_CHECKED, RANGE), *BY_PROMISE)),
        Query(added(grown(names.QUALITY_VIOLATIONS, RANGE), *BY_PROMISE)),
        Query(added(grown(names.QUALITY_BREACHES, RANGE), *BY_PROMISE)),
    ).sized(24, 10)


def _shares() -> Panel:
    text = "Share of the checked rows that break a promise: one point for each run."
    query = largest(last(names.QUALITY_VIOLATION, INTERVAL), *BY_PROMISE)
    return points(
        "Share of rows in violation", Look(text, "percentunit", ONWARD, interval="1m"), Query(query, OF_PROMISE)
    )


def _violations_over_time() -> Panel:
    text = "Rows that break a promise, by promise. A bar that was never there before is a change at the source."
    query = added(grown(names.QUALITY_VIOLATIONS, INTERVAL), *BY_PROMISE)
    return bars("Violations by promise", Look(text, "locale", ONWARD), Query(query, OF_PROMISE))


def _nulls() -> Panel:
    text = (
        "Rows without a value, for the 20 columns that have most of them; nulls may be allowed, a jump is worth a look."
    )
    query = f"topk(20, {added(grown(names.QUALITY_NULLS, RANGE), names.PIPELINE, names.TABLE, names.COLUMN)})"
    return ranking(
        "Nulls by column", Look(text, "locale", ONWARD), Query(query, legend(names.TABLE, names.COLUMN))
    ).sized(12, 10)


def _set_aside() -> Panel:
    text = "Rows kept apart as invalid, rows with a later version of their key, and rows that are nowhere (a bug)."
    return bars(
        "Rows not published",
        Look(text, "locale", ONWARD),
        Query(added(grown(names.QUARANTINED, INTERVAL), names.PIPELINE), f"{legend(names.PIPELINE)} quarantined"),
        Query(added(grown(names.DUPLICATE, INTERVAL), names.PIPELINE), f"{legend(names.PIPELINE)} duplicate"),
        Query(added(grown(names.UNACCOUNTED, INTERVAL), names.PIPELINE), f"{legend(names.PIPELINE)} unaccounted"),
    ).sized(12, 10)
