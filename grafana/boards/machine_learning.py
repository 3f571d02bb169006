"""Models: how good the candidate and the one in production are, what became of versions, and what they predict."""

from typing import Final

from grafana import links
from grafana.board import Board, Choice, Row
from grafana.look import Look
from grafana.panels import Panel, Query, bars, figure, lines, points, ranking
from grafana.queries import INTERVAL, OF_PIPELINE, RANGE, added, grown, largest, last, legend, mean
from spark_app.runs.model_card import SHIFTED, SHIFTING
from spark_app.telemetry import names
from spark_app.telemetry.prometheus_names import label, series

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
        "Machine learning",
        "How good models are, what became of their versions, and what they predict.",
        (
            Row("In production", (_version(), _trained(), _rows(), _promotions())),
            Row("Scores on held-out rows", (_scores(), _slices())),
            Row("Predictions", (_predictions(), _probabilities())),
            Row("Drift and training", (_drift(), _fits())),
            Row("Requests", (_served(), _answers(), _latency())),
        ),
        by=(MODELS,),
        since="now-7d",
    )


def _version() -> Panel:
    text = "The version in production when a run last promoted, rolled back or confirmed one."
    query = largest(last(names.ML_VERSION), names.PIPELINE)
    return figure("Version", Look(text, "none", ONWARD), Query(query, legend(names.PIPELINE))).sized(6, 4)


def _trained() -> Panel:
    text = "When the version in production was trained."
    query = f"1000 * {largest(last(names.ML_TRAINED), names.PIPELINE)}"
    return figure("Trained", Look(text, "dateTimeFromNow", ONWARD), Query(query, legend(names.PIPELINE))).sized(6, 4)


def _rows() -> Panel:
    text = "Rows that the last version was trained on."
    query = largest(last(names.ML_ROWS), names.PIPELINE)
    return figure("Training rows", Look(text, "locale", ONWARD), Query(query, legend(names.PIPELINE))).sized(6, 4)


def _promotions() -> Panel:
    text = "Versions that were promoted, refused by the gate or rolled back, in the time range."
    by = (names.PIPELINE, names.PROMOTION_ACTION)
    query = added(grown(names.ML_PROMOTIONS, RANGE), *by)
    return figure("Decisions", Look(text, "none", ONWARD), Query(query, legend(*by))).sized(6, 4)


def _scores() -> Panel:
    text = (
        "Scores of the candidate and of the version in production on the same held-out rows: one point per evaluation."
    )
    by = (names.PIPELINE, names.MODEL_ROLE, names.SCORE_NAME)
    query = largest(last(names.ML_SCORE, INTERVAL, ALL_ROWS), *by)
    look = Look(text, "none", ONWARD, interval="1m")
    return points("Scores", look, Query(query, legend(names.MODEL_ROLE, names.SCORE_NAME)))


def _slices() -> Panel:
    text = "ROC AUC of the last candidate by slice: the gate refuses one that makes a slice much worse."
    query = largest(last(names.ML_SCORE, RANGE, SLICES), names.PIPELINE, names.DATA_SLICE)
    return ranking("ROC AUC by slice", Look(text, "none", ONWARD), Query(query, legend(names.DATA_SLICE)))


def _predictions() -> Panel:
    text = "Rows scored in batch, by whether their probability reached the threshold."
    by = (names.PIPELINE, names.IS_FLAGGED)
    query = added(grown(names.ML_PREDICTIONS, INTERVAL), *by)
    return bars(
        "Rows scored",
        Look(text, "locale", ONWARD),
        Query(query, f"{legend(names.PIPELINE)} flagged: {legend(names.IS_FLAGGED)}"),
    )


def _probabilities() -> Panel:
    text = (
        "Quantiles of the probabilities of each scored batch. A jump without a new version means that the data changed."
    )
    by = (names.PIPELINE, names.QUANTILE)
    query = largest(last(names.ML_PROBABILITY, INTERVAL), *by)
    look = Look(text, "percentunit", ONWARD, interval="1m")
    return points("Probabilities", look, Query(query, f"{legend(names.PIPELINE)} q{legend(names.QUANTILE)}"))


def _drift() -> Panel:
    text = (
        "Population stability index of the rows seen last against the training rows of the candidate and of the "
        "version in production, of each feature and of the probability, which is the group prediction: above "
        f"{SHIFTING} one moved, above {SHIFTED} it shifted."
    )
    query = largest(last(names.ML_DRIFT), names.PIPELINE, names.MODEL_ROLE, names.FEATURE_GROUP, names.FEATURE)
    shown = Query(query, legend(names.MODEL_ROLE, names.FEATURE_GROUP, names.FEATURE))
    return ranking("Drift of features", Look(text, "none", ONWARD, DRIFTED), shown)


def _fits() -> Panel:
    text = "Mean duration of a fit by algorithm; each has a span with its fold, parameters and score."
    query = mean(names.ML_FITS, INTERVAL, names.PIPELINE, names.ALGORITHM)
    return lines("Duration of a fit", Look(text, "s", ONWARD, interval="1m"), Query(query, legend(names.ALGORITHM)))


def _served() -> Panel:
    text = "The version that answered the last requests. Alert: ModelVersionSkew, if it is not the one in production."
    by = (names.PIPELINE, names.MODEL)
    query = largest(last(names.ML_SERVED, RANGE, OF_STREAMS), *by)
    return figure("Version that answers", Look(text, "none", ONWARD), Query(query, legend(names.MODEL))).sized(4, 8)


def _answers() -> Panel:
    text = (
        "Requests that were scored, by whether the threshold was reached, and errors; beside them those that were "
        "scored without the days before them. Alerts: ModelScoringErrors, ModelHistoryStale."
    )
    scored = added(grown(names.ML_PREDICTIONS, INTERVAL, OF_STREAMS), names.IS_FLAGGED)
    return bars(
        "Requests",
        Look(text, "locale", ONWARD),
        Query(scored, f"flagged: {legend(names.IS_FLAGGED)}"),
        Query(added(grown(names.ML_ERRORS, INTERVAL, OF_STREAMS), names.PIPELINE), "errors"),
        Query(added(grown(names.ML_STALE, INTERVAL, OF_STREAMS), names.PIPELINE), "stale history"),
    ).sized(10, 8)


def _latency() -> Panel:
    text = "From the timestamp of a request to its reply, in each micro-batch. Alert: ModelScoringSlow."
    by = (names.PIPELINE, names.QUANTILE)
    query = largest(last(names.ML_LATENCY, INTERVAL, OF_STREAMS), *by)
    look = Look(text, "s", ONWARD, interval="1m")
    return points("Latency", look, Query(query, f"q{legend(names.QUANTILE)}")).sized(10, 8)
