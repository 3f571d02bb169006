"""The pipelines of `pyspark.ml` that are compared: the same preparation of the features, and an algorithm each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import pandas as pd
from pyspark.ml import Pipeline, Transformer
from pyspark.ml.classification import GBTClassifier, LogisticRegression, RandomForestClassifier
from pyspark.ml.evaluation import Evaluator
from pyspark.ml.feature import OneHotEncoder, StandardScaler, StringIndexer, VectorAssembler
from pyspark.ml.functions import vector_to_array
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.tuning import CrossValidator, CrossValidatorModel
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_app.models.scores import average_precision
from spark_app.runs.model_card import LABEL, Candidate

WEIGHT: Final = "weight"
FOLD: Final = "fold"
INPUT: Final = "features"
PROBABILITY: Final = "positive_probability"
ALGORITHMS: Final[Mapping[str, type]] = {
    "logistic_regression": LogisticRegression,
    "random_forest": RandomForestClassifier,
    "gradient_boosted_trees": GBTClassifier,
}
INDEXED: Final = "__index"
ENCODED: Final = "__onehot"


class UnweightedProbability(Transformer, DefaultParamsReadable["UnweightedProbability"], DefaultParamsWritable):
    """Adds the probability of the rare class, corrected for the weight that its rows had in training.

    A class that counts w times as much has w times the odds; dividing by w gives those of the data as it is (Elkan,
    The Foundations of Cost-Sensitive Learning, 2001, theorem 2).
    """

    positiveWeight: Param[float] = Param(  # noqa: N815 - as MLlib names its parameters
        Params._dummy(), "positiveWeight", "weight of the rare class in training", TypeConverters.toFloat
    )

    def __init__(self, *, positiveWeight: float = 1.0) -> None:  # noqa: N803
        """The correction for a weight."""
        super().__init__()
        self._setDefault(positiveWeight=1.0)
        self._set(positiveWeight=positiveWeight)

    def _transform(self, dataset: DataFrame) -> DataFrame:
        weighted = vector_to_array(F.col("probability"))[1]
        weight = F.lit(self.getOrDefault(self.positiveWeight))
        return dataset.withColumn(PROBABILITY, weighted / (weighted + weight * (1 - weighted)))


@dataclass(frozen=True)
class Trial:
    """An algorithm with parameters to try.

    Attributes:
        algorithm: Its name in the configuration.
        parameters: Those that are varied.
        params: The same for `CrossValidator`.
    """

    algorithm: str
    parameters: dict[str, str]
    params: dict[Param[Any], Any]

    @property
    def title(self) -> str:
        """`random_forest maxDepth=6`."""
        return " ".join([self.algorithm, *(f"{name}={value}" for name, value in self.parameters.items())])


def in_order(rows: DataFrame, key: str, *, partitions: int) -> DataFrame:
    """The same rows, in partitions and in an order that depend on their keys only.

    The order decides which rows a forest draws, and how sums are rounded.
    """
    return rows.repartition(partitions, key).sortWithinPartitions(key)


def with_weight_and_fold(rows: DataFrame, key: str, *, positive_weight: float, folds: int, seed: int) -> DataFrame:
    """Labelled rows with their weight, and with a fold that depends on the key and the seed only."""
    weight = F.when(F.col(LABEL) == 1, F.lit(positive_weight)).otherwise(F.lit(1.0))
    return rows.withColumns({WEIGHT: weight, FOLD: _fold(key, folds, seed)})


def _fold(key: str, folds: int, seed: int) -> Column:
    return F.pmod(F.xxhash64(key, F.lit(seed)), F.lit(folds)).cast("int")


def preparation(categories: Sequence[str], numbers: Sequence[str]) -> list[Any]:
    """Categories one-hot with a value for unknown ones, numbers beside them, all of unit deviation."""
    indexed, encoded = ([f"{name}{suffix}" for name in categories] for suffix in (INDEXED, ENCODED))
    coded = [
        StringIndexer(
            inputCols=list(categories), outputCols=indexed, handleInvalid="keep", stringOrderType="alphabetAsc"
        ),
        OneHotEncoder(inputCols=indexed, outputCols=encoded, handleInvalid="keep"),
    ]
    return [
        *(coded if categories else []),
        VectorAssembler(inputCols=[*encoded, *numbers], outputCol="assembled"),
        StandardScaler(inputCol="assembled", outputCol=INPUT, withMean=False, withStd=True),
    ]


@dataclass(frozen=True)
class Search:
    """What is compared: a pipeline without stages, which each trial gives it."""

    pipeline: Pipeline
    trials: list[Trial]


def search(
    categories: Sequence[str],
    numbers: Sequence[str],
    candidates: Mapping[Any, Mapping[str, Sequence[Any]]],
    *,
    positive_weight: float,
    seed: int,
) -> Search:
    """Every algorithm with every combination of its configured parameters, after the same preparation.

    Args:
        categories: Features that are text.
        numbers: Features that are numbers.
        candidates: By algorithm the values of each parameter to try.
        positive_weight: The weight of the rare class.
        seed: The seed of the algorithms that draw.
    """
    pipeline, preparing = Pipeline(stages=[]), preparation(categories, numbers)
    trials = []
    for algorithm, grid in candidates.items():
        classifier = _classifier(algorithm, seed)
        stages = [*preparing, classifier, UnweightedProbability(positiveWeight=positive_weight)]
        for values in product(*grid.values()):
            given = dict(zip(grid, values, strict=True))
            params = {classifier.getParam(name): value for name, value in given.items()}
            shown = {name: str(value) for name, value in given.items()}
            trials.append(Trial(algorithm, shown, {pipeline.stages: stages, **params}))
    return Search(pipeline, trials)


def _classifier(algorithm: str, seed: int) -> Any:
    classifier = ALGORITHMS[algorithm](featuresCol=INPUT, labelCol=LABEL, weightCol=WEIGHT)
    return classifier.setSeed(seed) if classifier.hasParam("seed") else classifier


class AveragePrecision(Evaluator):
    """The score by which versions are judged, too: the area under Spark's own curve is another number."""

    def _evaluate(self, dataset: DataFrame) -> float:
        rows: pd.DataFrame = dataset.select(LABEL, PROBABILITY).toPandas()
        return average_precision(rows[LABEL].to_numpy(dtype=float), rows[PROBABILITY].to_numpy(dtype=float))


def cross_validator(searched: Search, *, folds: int, parallelism: int) -> CrossValidator:
    """Compares the trials by their mean average precision over the folds."""
    return CrossValidator(
        estimator=searched.pipeline,
        estimatorParamMaps=[trial.params for trial in searched.trials],
        evaluator=AveragePrecision(),
        numFolds=folds,
        foldCol=FOLD,
        parallelism=parallelism,
    )


def ranked(trials: Sequence[Trial], fitted: CrossValidatorModel) -> list[Candidate]:
    """The trials with their scores, best first."""
    scores = zip(trials, fitted.avgMetrics, fitted.stdMetrics, strict=True)
    tried = [
        Candidate(algorithm=each.algorithm, parameters=each.parameters, score=float(mean), deviation=float(deviation))
        for each, mean, deviation in scores
    ]
    return sorted(tried, key=lambda each: -each.score)
