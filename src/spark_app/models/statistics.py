"""Statistics of labelled rows by `pyspark.ml.stat`, what is worth a look in them, and the distributions of features."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from pyspark.ml.feature import StringIndexer, VectorAssembler
from pyspark.ml.stat import ChiSquareTest, Correlation, Summarizer
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_app.runs.model_card import LABEL, PREDICTION, FeatureFinding, Statistics

DECILES: Final = [tenth / 10 for tenth in range(1, 10)]
QUANTILE_ERROR: Final = 0.001
STRONG: Final = 0.8
"""A correlation of a feature with the label beyond this is rarely honest: the feature may know the label."""
INSIGNIFICANT: Final = 0.05


def statistics(rows: DataFrame, *, categories: Sequence[str], numbers: Sequence[str]) -> Statistics:
    """Summary and correlation of the numbers, tests of the categories against the label, and all distributions."""
    vectors = VectorAssembler(inputCols=[*numbers, LABEL], outputCol="numbers").transform(rows).select("numbers")
    summary = _summary(vectors, numbers)
    correlations = _correlations(vectors, numbers)
    p_values = _p_values(rows, categories)
    deciles = rows.approxQuantile(list(numbers), DECILES, QUANTILE_ERROR)
    bounds = {name: sorted(set(found)) for name, found in zip(numbers, deciles, strict=True)}
    return Statistics(
        numbers=summary,
        correlations=correlations,
        p_values=p_values,
        bounds=bounds,
        distributions=distributions(rows, categories=categories, bounds=bounds),
        findings=findings(summary, correlations, p_values),
    )


def with_prediction(found: Statistics, scored: DataFrame, deciles: Sequence[float]) -> Statistics:
    """The same, with the distribution of the probabilities of the rows.

    Args:
        found: The statistics of the features.
        scored: The probabilities.
        deciles: Theirs.
    """
    bounds = {PREDICTION: sorted(set(deciles))}
    shares = distributions(scored, categories=(), bounds=bounds)
    return msgspec.structs.replace(found, bounds=found.bounds | bounds, distributions=found.distributions | shares)


def _summary(vectors: DataFrame, numbers: Sequence[str]) -> dict[str, dict[str, float]]:
    measures = ("mean", "std", "min", "max")
    [found] = vectors.select(Summarizer.metrics(*measures).summary(F.col("numbers")).alias("of")).collect()
    by_measure = {measure: found["of"][measure].toArray() for measure in measures}
    return {
        name: {measure: float(values[position]) for measure, values in by_measure.items()}
        for position, name in enumerate(numbers)
    }


def _correlations(vectors: DataFrame, numbers: Sequence[str]) -> dict[str, float | None]:
    """With the label, which is the last of the vector; None for a number that never varies."""
    matrix = Correlation.corr(vectors, "numbers").head()[0].toArray()  # type: ignore[index]
    with_label = zip(numbers, matrix[-1], strict=False)
    return {name: None if math.isnan(value) else float(value) for name, value in with_label}


def _p_values(rows: DataFrame, categories: Sequence[str]) -> dict[str, float]:
    if not categories:
        return {}
    indexed = [f"{name}__index" for name in categories]
    indexer = StringIndexer(inputCols=list(categories), outputCols=indexed, handleInvalid="keep")
    coded = indexer.fit(rows).transform(rows)
    vectors = VectorAssembler(inputCols=indexed, outputCol="codes").transform(coded)
    found: Any = ChiSquareTest.test(vectors, "codes", LABEL).head()
    return dict(zip(categories, map(float, found["pValues"].toArray()), strict=True))


def findings(
    summary: Mapping[str, Mapping[str, float]],
    correlations: Mapping[str, float | None],
    p_values: Mapping[str, float],
) -> list[FeatureFinding]:
    """Numbers that never vary or nearly are the label, and categories that the label does not depend on."""
    constant = [
        FeatureFinding(feature=name, text=f"{name} never varies: it tells a model nothing")
        for name, measures in summary.items()
        if measures["std"] == 0
    ]
    suspicious = [
        FeatureFinding(
            feature=name, text=f"{name} has a correlation of {value:.2f} with the label: it may know the future"
        )
        for name, value in correlations.items()
        if value is not None and abs(value) > STRONG
    ]
    useless = [
        FeatureFinding(feature=name, text=f"{name} is independent of the label as far as can be seen (p = {value:.2g})")
        for name, value in p_values.items()
        if value > INSIGNIFICANT
    ]
    return [*suspicious, *constant, *useless]


def distributions(
    rows: DataFrame, *, categories: Sequence[str], bounds: Mapping[str, Sequence[float]]
) -> dict[str, dict[str, float]]:
    """By feature the share of the rows with each value, or in each bin, in one pass."""
    bins = {name: F.coalesce(F.col(name), F.lit("null")) for name in categories}
    bins |= {name: _bin(name, limits) for name, limits in bounds.items()}
    pairs = F.array(*(F.struct(F.lit(name).alias("feature"), value.alias("bin")) for name, value in bins.items()))
    counts = rows.select(F.explode(pairs).alias("pair")).groupBy("pair.feature", "pair.bin").count().collect()
    totals = {name: sum(row["count"] for row in counts if row["feature"] == name) for name in bins}
    shares: dict[str, dict[str, float]] = {name: {} for name in bins}
    for row in sorted(counts, key=lambda row: row["bin"]):
        shares[row["feature"]][row["bin"]] = row["count"] / totals[row["feature"]]
    return shares


def _bin(name: str, limits: Sequence[float]) -> Column:
    """How many bounds the value is above, as text."""
    above = [F.when(F.col(name) > F.lit(limit), 1).otherwise(0) for limit in limits]
    return sum(above, F.lit(0)).cast("string")
