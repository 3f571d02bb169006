"""Applies a version of a model to features: the same for a day, and for the requests of a stream."""

from collections.abc import Sequence

from pyspark.ml import PipelineModel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.models.estimators import PROBABILITY
from spark_app.models.registry import Version
from spark_app.runs.model_card import PREDICTION


def scored(model: PipelineModel, rows: DataFrame, version: Version, *, keep: Sequence[str]) -> DataFrame:
    """One row per example: its probability, whether that reaches the threshold, and which version says so.

    Columns in: the features; those that are kept.
    Columns out: those that are kept; probability, is_flagged, model_version.

    Args:
        model: `registry.load(version)`, kept as long as the version is in production: loading takes seconds.
        rows: The features.
        version: The version.
        keep: Further columns of the rows, such as their keys.
    """
    probability = F.col(PROBABILITY)
    return model.transform(rows).select(
        *keep,
        probability.alias(PREDICTION),
        (probability >= F.lit(version.card.threshold)).alias("is_flagged"),
        F.lit(version.number).cast("long").alias("model_version"),
    )
