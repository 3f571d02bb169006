from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pytest
from pyspark.ml import PipelineModel
from pyspark.ml.evaluation import BinaryClassificationEvaluator
from pyspark.ml.linalg import Vectors
from pyspark.sql import DataFrame, SparkSession
from sklearn import metrics

from spark_app.models import estimators
from spark_app.models.estimators import FOLD, PROBABILITY, UnweightedProbability
from spark_app.runs.model_card import LABEL


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> Iterator[DataFrame]:
    """Labelled rows: one channel and great amounts are refunded more often; keys are in order."""
    is_refunded = [number % 5 == 0 or (number % 3 == 1 and number % 7 > 3) for number in range(210)]
    values = [
        (f"t-{number:03}", ("web", "app", None)[number % 3], float(number % 7), float(is_refunded[number]))
        for number in range(210)
    ]
    frame = spark.createDataFrame(values, "transaction_id string, channel string, amount double, label double")
    ordered = estimators.in_order(frame, "transaction_id", partitions=2).persist()
    yield ordered
    ordered.unpersist()


Candidates = Mapping[str, Mapping[str, Sequence[Any]]]
FOREST: Final[Candidates] = {"random_forest": {"numTrees": [3], "maxDepth": [3]}}
BOOSTED: Final[Candidates] = {"gradient_boosted_trees": {"maxIter": [2], "maxDepth": [2], "subsamplingRate": [0.6]}}


def fitted(rows: DataFrame, candidates: Candidates = FOREST, *, seed: int = 7) -> tuple[PipelineModel, DataFrame]:
    """A few trees, and the rows with their probabilities."""
    search = estimators.search(["channel"], ["amount"], candidates, positive_weight=6.0, seed=seed)
    weighted = estimators.with_weight_and_fold(rows, "transaction_id", positive_weight=6.0, folds=2, seed=7)
    model: Any = search.pipeline.fit(weighted, search.trials[0].params)
    return model, model.transform(rows)


def probabilities(scored: DataFrame) -> list[float]:
    """In the order of the keys."""
    return [row[0] for row in scored.orderBy("transaction_id").select(PROBABILITY).collect()]


def test_the_same_seed_gives_the_same_model_and_a_saved_one_is_the_same(rows: DataFrame, tmp_path: Path) -> None:
    """Fitted twice, and once saved and loaded, with the transformer of our own: equal to the last digit."""
    model, scored = fitted(rows)
    first = probabilities(scored)
    assert probabilities(fitted(rows)[1]) == first
    model.write().save(str(tmp_path / "model"))
    loaded = PipelineModel.load(str(tmp_path / "model"))
    assert isinstance(loaded.stages[-1], UnweightedProbability)
    assert probabilities(loaded.transform(rows)) == first
    assert len(set(first)) > 3


def test_the_same_seed_gives_the_same_boosted_trees(rows: DataFrame) -> None:
    """Also of rows that come in another order and in other partitions; another seed draws other rows."""
    models: list[Any] = [
        fitted(estimators.in_order(part, "transaction_id", partitions=2), BOOSTED, seed=seed)[0].stages[-2]
        for part, seed in ((rows, 7), (rows.repartition(3, LABEL), 7), (rows, 8))
    ]
    trees = [model.toDebugString.partition("\n")[2] for model in models]
    assert trees[0] == trees[1]
    assert trees[0] != trees[2]


def test_candidates_are_compared_by_the_score_that_judges_versions(rows: DataFrame) -> None:
    """Spark's own area under the curve is another number, and the table of the candidates says average precision."""
    _, scored = fitted(rows)
    found: pd.DataFrame = scored.select(LABEL, PROBABILITY).toPandas()
    expected = metrics.average_precision_score(found[LABEL], found[PROBABILITY])
    evaluator = estimators.cross_validator(
        estimators.search(["channel"], ["amount"], FOREST, positive_weight=6.0, seed=7), folds=2, parallelism=1
    ).getEvaluator()
    assert evaluator.evaluate(scored) == expected
    spark_area = BinaryClassificationEvaluator(labelCol=LABEL, metricName="areaUnderPR").evaluate(scored)
    assert abs(spark_area - expected) > 0.001
    assert evaluator.evaluate(scored.where("label = 0")) == 0


def test_the_weight_of_the_rare_class_is_taken_out_of_the_probability(spark: SparkSession) -> None:
    """Odds of 1 with a sixfold weight are odds of 1 to 6."""
    frame = spark.createDataFrame([(Vectors.dense(0.5, 0.5),), (Vectors.dense(1.0, 0.0),)], ["probability"])
    found = UnweightedProbability(positiveWeight=6.0).transform(frame).select(PROBABILITY).collect()
    assert [row[0] for row in found] == [pytest.approx(1 / 7), 0.0]


def test_a_fold_depends_on_the_key_and_the_seed_only(rows: DataFrame) -> None:
    """Rows in another order, in other partitions, are in the same folds; each fold has its part of them."""
    first, other = (
        {
            row.transaction_id: row[FOLD]
            for row in estimators.with_weight_and_fold(
                part, "transaction_id", positive_weight=1, folds=3, seed=7
            ).collect()
        }
        for part in (rows, rows.repartition(3, LABEL))
    )
    assert first == other
    assert sorted(set(first.values())) == [0, 1, 2]
    assert min(list(first.values()).count(fold) for fold in range(3)) > 40
