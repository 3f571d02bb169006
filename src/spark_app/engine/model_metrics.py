"""Measures what is known of versions of models: how good they are, what they score, and what is in production."""

import datetime
from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame

from spark_app.engine.context import Context
from spark_app.engine.model import Model, ModelConfig
from spark_app.models import registry
from spark_app.runs.model_card import AVERAGE_PRECISION, PREDICTION, Evaluation
from spark_app.vocabulary import names

MAX_SLICES: Final = 50
"""So many are measured, those with the most positives: each is a series, and values of columns come from data. The
card has all."""


def main_scores(found: Evaluation) -> dict[str, float | None]:
    """The scores that distinguish versions at a glance."""
    return {name: found.scores[name].value for name in (AVERAGE_PRECISION, "roc_auc") if name in found.scores}


def measure_evaluation(context: Context, model: Model, config: ModelConfig, found: Evaluation, role: str) -> None:
    """Measures the scores of an evaluation, of all rows and of the large slices, and the drift of the features."""
    measure_drift(context, model, found.drift, role)
    for name, estimate in found.scores.items():
        if estimate.value is not None:
            labels = {names.MODEL_ROLE: role, names.SCORE_NAME: name, names.DATA_SLICE: "all"}
            context.telemetry.measure(names.ML_SCORE, estimate.value, labels)
    large = [each for each in found.slices if each.positives >= config.gate.slice_positives]
    for each in sorted(large, key=lambda each: -each.positives)[:MAX_SLICES]:
        if each.roc_auc is not None:
            labels = {names.MODEL_ROLE: role, names.SCORE_NAME: "roc_auc", names.DATA_SLICE: each.title}
            context.telemetry.measure(names.ML_SCORE, each.roc_auc, labels)


def measure_drift(context: Context, model: Model, drift: Mapping[str, float], role: str) -> None:
    """Measures how far features and probabilities are from those that a version was trained on."""
    groups = {feature.name: feature.group for feature in model.features} | {PREDICTION: "prediction"}
    for feature in drift.keys() & groups.keys():  # an old version may have had others
        labels = {names.MODEL_ROLE: role, names.FEATURE_GROUP: groups[feature], names.FEATURE: feature}
        context.telemetry.measure(names.ML_DRIFT, drift[feature], labels)


def measure_production(context: Context, model: Model) -> None:
    """Measures which version is in production, and when it was trained."""
    version = registry.production(context.warehouse, model.name)
    if version is not None:
        context.telemetry.measure(names.ML_VERSION, version.number)
        trained_at = datetime.datetime.fromisoformat(version.card.trained_at)
        context.telemetry.measure(names.ML_TRAINED, trained_at.timestamp())


def measure_scores(context: Context, scores: DataFrame, *, flagged: int, rows: int) -> None:
    """Measures how many rows of a day were flagged, and how probable they are."""
    from spark_app.models.statistics import QUANTILE_ERROR

    for text, count in (("true", flagged), ("false", rows - flagged)):
        context.telemetry.measure(names.ML_PREDICTIONS, count, {names.IS_FLAGGED: text})
    found = scores.approxQuantile(PREDICTION, list(names.QUANTILES), QUANTILE_ERROR)
    for quantile, value in zip(names.QUANTILES, found, strict=True):
        context.telemetry.measure(names.ML_PROBABILITY, value, {names.QUANTILE: str(quantile)})
