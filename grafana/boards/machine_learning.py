"""Models: how good the candidate and the one in production are, what became of versions, and what they predict."""

from typing import Final

from grafana import links
from grafana.board import Board, Choice, Row
from grafana.look import Column, Look
from grafana.panels import FIRST, VALUES, Panel, Query, bars, figure, points, ranking, rows, top
from grafana.queries import INTERVAL, OF_PIPELINE, RANGE, added, grown, largest, last, legend, mean
from grafana.verdict import verdict
from spark_app.runs.model_card import SHIFTED, SHIFTING
from spark_app.vocabulary import names
from spark_app.vocabulary.prometheus_names import label, series

ONWARD: Final = (links.RUNS_OF, links.TRACES_OF, links.LOGS_OF)
MODELS: Final = Choice("pipeline", "Model", series(names.ML_PROMOTIONS), names.PIPELINE)
ALL_ROWS: Final = f'{OF_PIPELINE}, {label(names.DATA_SLICE)}="all"'
SLICES: Final = f'{OF_PIPELINE}, {label(names.DATA_SLICE)}!="all", {label(names.MODEL_ROLE)}="candidate"'
OF_STREAMS: Final = f'{label(names.PIPELINE)}=~"streaming[.].+"'
DRIFTED: Final = {None: "green", SHIFTING: "yellow", SHIFTED: "red"}


def board() -> Board:
    """The chosen models."""
    return Board(
        "machine-learning",
        "pipelines",
        "Machine learning: is the model in production good?",
        "How good models are, what became of their versions, and what they predict.",
        (
            Row("Is it well, since when, where to look", verdict("machine-learning")),
            Row("In production", (_version(), _promotions())),
            Row("Scores on held-out rows", (_slices(), _scores().sized(12, 12))),
            Row("Drift of features", (_drift(), _probabilities().sized(12, 12))),
            Row("Predictions and training", (_predictions(), _fits())),
            Row("Requests", (_served(), _answers(), _latency())),
        ),
        by=(MODELS,),
        since="now-7d",
    )


def _version() -> Panel:
    columns = (
        Column(label(names.PIPELINE), "Model", links=(links.RUNS_OF_CELL, links.TRACES_OF_CELL, links.LOGS_OF_CELL)),
        Column("Value #A", "Version"),
        Column("Value #B", "Trained", "dateTimeFromNow"),
        Column("Value #C", "Training rows", "locale"),
        Column("Value #D", "AUC candidate", "none"),
        Column("Value #E", "AUC production", "none"),
        Column("Value #F", "Largest drift", "none", colors=DRIFTED),
    )
    text = "Each model as it was when a run last promoted, rolled back or confirmed a version."
    candidate, production = (
        f'{ALL_ROWS}, {label(names.SCORE_NAME)}="roc_auc", {label(names.MODEL_ROLE)}="{role}"'
        for role in names.MODEL_ROLES
    )
    by = names.PIPELINE
    return rows(
        "Models",
        Look(text, "none", (links.RUNS, links.ALL_TRACES), empty="No model was trained in this time range"),
        columns,
        Query(largest(last(names.ML_VERSION), by)),
        Query(f"1000 * {largest(last(names.ML_TRAINED), by)}"),
        Query(largest(last(names.ML_ROWS), by)),
        Query(largest(last(names.ML_SCORE, RANGE, candidate), by)),
        Query(largest(last(names.ML_SCORE, RANGE, production), by)),
        Query(largest(last(names.ML_DRIFT), by)),
    ).sized(18, 6)


def _promotions() -> Panel:
    text = "Versions that were promoted, refused by the gate or rolled back, in the time range."
    query = added(grown(names.ML_PROMOTIONS, RANGE), names.PROMOTION_ACTION)
    return figure("Decisions", Look(text, "locale", ONWARD), Query(query, legend(names.PROMOTION_ACTION))).sized(6, 6)


def _scores() -> Panel:
    text = (
        "Scores of the candidate and of the version in production on the same held-out rows: one point per evaluation."
    )
    by = (names.PIPELINE, names.MODEL_ROLE, names.SCORE_NAME)
    query = largest(last(names.ML_SCORE, INTERVAL, ALL_ROWS), *by)
    look = Look(text, "none", ONWARD, interval="1m")
    return points("Scores", look, *top(query, legend(*by), *by, others="max"))


def _slices() -> Panel:
    text = "ROC AUC of the last candidate by slice: the gate refuses one that makes a slice much worse."
    by = (names.PIPELINE, names.DATA_SLICE)
    query = largest(last(names.ML_SCORE, RANGE, SLICES), *by)
    look = Look(text, "none", ONWARD, maximum=1)
    return ranking("ROC AUC by slice", look, Query(f"bottomk({FIRST + 1}, {query})", legend(*by)))


def _predictions() -> Panel:
    text = "Rows scored in batch, by whether their probability reached the threshold."
    flagged, not_flagged = (
        added(grown(names.ML_PREDICTIONS, INTERVAL, f'{OF_PIPELINE}, {label(names.IS_FLAGGED)}="{value}"'))
        for value in ("true", "false")
    )
    look = Look(text, "locale", (links.RUNS, links.ALL_TRACES))
    return bars("Rows scored", look, Query(flagged, "flagged"), Query(not_flagged, "not flagged"))


def _probabilities() -> Panel:
    text = (
        "Quantiles of the probabilities of each scored batch. A jump without a new version means that the data changed."
    )
    by = (names.PIPELINE, names.QUANTILE)
    look = Look(text, "percentunit", ONWARD, interval="1m")
    shown = top(
        largest(last(names.ML_PROBABILITY, INTERVAL), *by),
        f"{legend(names.PIPELINE)} q{legend(names.QUANTILE)}",
        *by,
        others="max",
    )
    return points("Probabilities", look, *shown)


def _drift() -> Panel:
    text = (
        "Population stability index of the rows seen last against the training rows of the candidate and of the "
        "version in production, of each feature and of the probability, which is the group prediction: above "
        f"{SHIFTING} one moved, above {SHIFTED} it shifted."
    )
    by = (names.PIPELINE, names.MODEL_ROLE, names.FEATURE_GROUP, names.FEATURE)
    query = largest(last(names.ML_DRIFT), *by)
    shown = top(query, legend(*by[1:]), *by, others="max")
    return ranking("Drift of features", Look(text, "none", ONWARD, DRIFTED), *shown)


def _fits() -> Panel:
    text = "Mean duration of a fit by algorithm; each has a span with its fold, parameters and score."
    by = (names.PIPELINE, names.ALGORITHM)
    look = Look(text, "s", ONWARD, interval="1m")
    return points("Duration of a fit", look, *top(mean(names.ML_FITS, INTERVAL, *by), legend(*by), *by, others="max"))


def _served() -> Panel:
    text = "The version that answered the last requests. Alert: ModelVersionSkew, if it is not the one in production."
    query = f"topk({VALUES}, {largest(last(names.ML_SERVED, RANGE, OF_STREAMS), names.MODEL)})"
    look = Look(text, "none", (links.STREAMING, links.TROUBLE), empty="No request was scored in this time range")
    return figure("Version that answers", look, Query(query, legend(names.MODEL))).sized(4, 9)


def _answers() -> Panel:
    text = (
        "Requests that were scored, by whether the threshold was reached, and errors; beside them those that were "
        "scored without the days before them. Alerts: ModelScoringErrors, ModelHistoryStale."
    )
    flagged, not_flagged = (
        added(grown(names.ML_PREDICTIONS, INTERVAL, f'{OF_STREAMS}, {label(names.IS_FLAGGED)}="{value}"'))
        for value in ("true", "false")
    )
    return bars(
        "Requests",
        Look(text, "locale", (links.STREAMING, links.TROUBLE)),
        Query(flagged, "flagged"),
        Query(not_flagged, "not flagged"),
        Query(added(grown(names.ML_ERRORS, INTERVAL, OF_STREAMS)), "errors"),
        Query(added(grown(names.ML_STALE, INTERVAL, OF_STREAMS)), "stale history"),
    ).sized(10, 9)


def _latency() -> Panel:
    text = "From the timestamp of a request to its reply, in each micro-batch. Alert: ModelScoringSlow."
    by = (names.PIPELINE, names.QUANTILE)
    query = largest(last(names.ML_LATENCY, INTERVAL, OF_STREAMS), *by)
    look = Look(text, "s", ONWARD, interval="1m")
    shown = top(query, f"{legend(names.PIPELINE)} q{legend(names.QUANTILE)}", *by, others="max")
    return points("Latency", look, *shown).sized(10, 9)
