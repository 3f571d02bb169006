"""Judges a version of a model on held-out rows."""

import datetime
import time
from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.ml import PipelineModel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.models import scores, statistics
from spark_app.models.estimators import PROBABILITY
from spark_app.models.periods import Periods
from spark_app.runs.model_card import LABEL, PREDICTION, Evaluation, ModelCard, VersionComparison
from spark_app.spark.persisted import persisted

LATENCY_ROWS: Final = 1_000
LATENCY_ATTEMPTS: Final = 3
IMPORTANCE_ROWS: Final = 5_000
SHUFFLES: Final = 3
_FEATURE: Final = "__feature"
_SHUFFLE: Final = "__shuffle"


def evaluation(
    card: ModelCard, rows: pd.DataFrame, periods: Periods, *, slices: Sequence[str], samples: int
) -> Evaluation:
    """The scores of a version.

    Args:
        card: The version.
        rows: Held-out rows: `label`, `probability`, and the columns of the slices.
        periods: Their days.
        slices: The columns by whose values they are scored.
        samples: Bootstrap samples for the intervals.
    """
    label, probability = (rows[name].to_numpy(dtype=np.float64) for name in (LABEL, PREDICTION))
    return Evaluation(
        version=card.version,
        first_date=str(periods.held_out_first),
        last_date=str(periods.held_out_last),
        rows=len(rows),
        positives=int(label.sum()),
        scores=scores.estimates(label, probability, samples=samples, seed=card.seed),
        threshold=card.threshold,
        confusion=scores.confusion(label, probability, card.threshold),
        roc=scores.roc(label, probability),
        precision_recall=scores.precision_recall(label, probability),
        calibration=scores.calibration(label, probability),
        slices=scores.by_slice(rows, slices),
    )


def comparison(
    card: ModelCard, rows: pd.DataFrame, production: ModelCard, production_rows: pd.DataFrame, *, samples: int
) -> VersionComparison:
    """How a version compares with the one in production.

    Args:
        card: The version.
        rows: Held-out rows in the order of their keys, with its `probability`.
        production: The version in production.
        production_rows: The same rows, with the probability of that one.
        samples: Bootstrap samples.
    """
    columns = (rows[LABEL], rows[PREDICTION], production_rows[PREDICTION])
    label, candidate, of_production = (column.to_numpy(dtype=np.float64) for column in columns)
    newer = datetime.date.fromisoformat(card.as_of) - datetime.date.fromisoformat(production.as_of)
    difference = scores.difference(label, candidate, of_production, samples=samples, seed=card.seed)
    return VersionComparison(difference=difference, samples=samples, days_newer=newer.days)


def importances(
    model: PipelineModel, rows: DataFrame, features: Sequence[str], *, key: str, seed: int
) -> dict[str, float]:
    """By feature, how much the average precision falls when its values are shuffled among held-out rows.

    The greatest first. A feature is shuffled as a whole, before it is encoded: one with many values gains nothing from
    its many columns (Breiman, Random Forests, 2001; Strobl et al., Bias in Random Forest Variable Importance Measures,
    2007). A value below zero is chance. Bounded: one job reads some rows, and one scores all of their shuffles.

    Args:
        model: The fitted pipeline.
        rows: Held-out rows with their labels.
        features: The names of the features.
        key: The column that identifies a row.
        seed: Draws the rows and the shuffles.
    """
    drawn = rows.orderBy(F.xxhash64(key, F.lit(seed))).limit(IMPORTANCE_ROWS)
    plain = drawn.select(*features, LABEL).toArrow()
    draws, parts = np.random.default_rng(seed), [_marked(plain, "", 0)]
    for position, name in enumerate(features):
        for shuffle in range(SHUFFLES):
            values = plain[name].take(pa.array(draws.permutation(plain.num_rows)))
            parts.append(_marked(plain.set_column(position, plain.field(name), values), name, shuffle))
    spark = rows.sparkSession
    # Without a shuffle the optimizer would compute all of it, row by row in the driver, while it plans.
    shuffled = spark.createDataFrame(pa.concat_tables(parts)).repartition(spark.sparkContext.defaultParallelism)
    scored = model.transform(shuffled)
    probabilities: pd.DataFrame = scored.select(_FEATURE, _SHUFFLE, LABEL, PROBABILITY).toPandas()
    reached = {
        key: scores.average_precision(part[LABEL].to_numpy(dtype=float), part[PROBABILITY].to_numpy(dtype=float))
        for key, part in probabilities.groupby([_FEATURE, _SHUFFLE])
    }
    whole = reached["", 0]
    falls = {name: whole - float(np.mean([reached[name, shuffle] for shuffle in range(SHUFFLES)])) for name in features}
    return dict(sorted(falls.items(), key=lambda pair: -pair[1]))


def _marked(rows: pa.Table, feature: str, shuffle: int) -> pa.Table:
    """The rows with the feature that was shuffled in them, and the number of the shuffle."""
    marks = {_FEATURE: pa.array([feature] * rows.num_rows), _SHUFFLE: pa.array([shuffle] * rows.num_rows)}
    for name, values in marks.items():
        rows = rows.append_column(name, values)
    return rows


def probabilities(model: PipelineModel, rows: DataFrame, *, key: str, keep: Sequence[str]) -> pd.DataFrame:
    """The label and the probability of each row, and the columns to keep, in the order of their keys."""
    scored = model.transform(rows).orderBy(key)
    return scored.select(*keep, LABEL, F.col(PROBABILITY).alias(PREDICTION)).toPandas()


def latency_ms(model: PipelineModel, rows: DataFrame) -> float:
    """What scoring a thousand rows takes, from rows in memory to probabilities here: the fastest of some attempts."""
    with persisted(rows.limit(LATENCY_ROWS)) as sample:
        sample.count()
        return 1_000 * min(_seconds(model, sample) for _ in range(LATENCY_ATTEMPTS))


def _seconds(model: PipelineModel, rows: DataFrame) -> float:
    started = time.monotonic()
    model.transform(rows).select(PROBABILITY).collect()
    return time.monotonic() - started


def drift(card: ModelCard, rows: DataFrame, scored: DataFrame) -> dict[str, float]:
    """By feature, and of the probability, the population stability index against the training rows of a version.

    A version that keeps no distribution of its probabilities is not judged by them.

    Args:
        card: The version.
        rows: The features.
        scored: The probabilities that it gives to the same rows.
    """
    return _drift(card, rows) | _drift(card, scored.select(PREDICTION))


def _drift(card: ModelCard, rows: DataFrame) -> dict[str, float]:
    """By column of the rows that the card has a distribution of."""
    trained, columns = card.statistics, set(rows.columns)
    names = [name for name in trained.distributions if name in columns]
    if not names:
        return {}
    bounds = {name: trained.bounds[name] for name in names if name in trained.bounds}
    now = statistics.distributions(rows, categories=[name for name in names if name not in bounds], bounds=bounds)
    return {name: scores.psi(trained.distributions[name], shares) for name, shares in now.items()}
