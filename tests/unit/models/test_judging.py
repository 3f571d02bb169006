from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_app.models import estimators, judging
from spark_app.models.judging import SHUFFLES
from tests.unit.models.test_estimators import Candidates

DEEP: Candidates = {"random_forest": {"numTrees": [5], "maxDepth": [10]}}


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> Iterator[DataFrame]:
    """Great amounts are refunded; which of forty shops sold is chance."""
    values = [
        (f"t-{number:04}", f"shop {number * 7919 % 41}", float(number * 31 % 97), float(number * 31 % 97 > 70))
        for number in range(1_000)
    ]
    frame = spark.createDataFrame(values, "transaction_id string, shop string, amount double, label double")
    ordered = estimators.in_order(frame, "transaction_id", partitions=2).persist()
    yield ordered
    ordered.unpersist()


def forest(rows: DataFrame) -> Any:
    """Trees so deep that they learn rows by heart."""
    search = estimators.search(["shop"], ["amount"], DEEP, positive_weight=1.0, seed=7)
    weighted = estimators.with_weight_and_fold(rows, "transaction_id", positive_weight=1.0, folds=2, seed=7)
    return search.pipeline.fit(weighted, search.trials[0].params)


def test_a_category_of_many_values_is_not_important_for_having_them(rows: DataFrame) -> None:
    """Its columns are shuffled together, and on rows that the trees have not seen it tells nothing."""
    model = forest(rows.where("transaction_id < 't-0500'"))
    held_out = rows.where("transaction_id >= 't-0500'")
    found = judging.importances(model, held_out, ["shop", "amount"], key="transaction_id", seed=7)
    assert list(found) == ["amount", "shop"]
    assert found["amount"] > 0.3
    assert abs(found["shop"]) < 0.05
    assert found == judging.importances(model, held_out, ["shop", "amount"], key="transaction_id", seed=7)


def test_importances_take_few_jobs_however_many_features_there_are(rows: DataFrame) -> None:
    """One reads some rows, one scores all shuffles of all features."""
    model, context = forest(rows), rows.sparkSession.sparkContext
    context.setLocalProperty("spark.jobGroup.id", "importances")
    judging.importances(model, rows, ["shop", "amount"], key="transaction_id", seed=7)
    context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    jobs = context.statusTracker().getJobIdsForGroup("importances")
    assert 0 < len(jobs) < 2 * SHUFFLES
