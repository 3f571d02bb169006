import pytest
from pyspark.ml import Pipeline
from pyspark.sql import SparkSession

from spark_app.models.estimators import INPUT, preparation
from spark_app.models.statistics import DECILES, statistics, with_prediction
from spark_app.runs import model_card
from spark_app.runs.model_card import Statistics

COLUMNS = "same string, zero double, label double"


def test_statistics_find_what_is_worth_a_look(spark: SparkSession) -> None:
    """A number that is the label, one that never varies, and a category that tells nothing; no other."""
    values = [
        (float(number % 2), 3.0, float(number), "ab"[number % 2], "xy"[number // 2 % 2], float(number % 2))
        for number in range(200)
    ]
    columns = "known double, constant double, number double, told string, useless string, label double"
    found = statistics(
        spark.createDataFrame(values, columns), categories=["told", "useless"], numbers=["known", "constant", "number"]
    )
    assert [finding.feature for finding in found.findings] == ["known", "constant", "useless"]
    assert found.correlations["known"] == pytest.approx(1)
    assert found.correlations["constant"] is None
    assert found.numbers["number"] == {"mean": 99.5, "std": pytest.approx(57.879, abs=1e-3), "min": 0.0, "max": 199.0}
    assert found.p_values["told"] < 1e-9
    assert found.distributions["told"] == {"a": 0.5, "b": 0.5}
    assert len(found.distributions["number"]) == 10
    assert sum(found.distributions["number"].values()) == pytest.approx(1)


def test_statistics_of_a_column_that_never_varies_can_be_written(spark: SparkSession) -> None:
    """Also of one that is null in every row: each figure is a number, or None where it is not defined."""
    rows = [("a", None, 0.0, float(number % 2)) for number in range(20)]
    frame = spark.createDataFrame(rows, "same string, missing string, zero double, label double")
    found = statistics(frame, categories=["same", "missing"], numbers=["zero"])
    assert model_card.decode(model_card.encode(found), Statistics) == found


def test_a_model_may_have_features_of_one_kind(spark: SparkSession) -> None:
    """Without categories nothing is tested against the label, and without numbers nothing is correlated with it."""
    frame = spark.createDataFrame([("ab"[number % 2], 1.0, float(number % 3)) for number in range(9)], COLUMNS)
    found = [statistics(frame, categories=[], numbers=["zero"]), statistics(frame, categories=["same"], numbers=[])]
    assert [(list(each.p_values), list(each.correlations)) for each in found] == [([], ["zero"]), (["same"], [])]
    for categories, numbers in (([], ["zero"]), (["same"], [])):
        prepared = Pipeline(stages=preparation(categories, numbers)).fit(frame).transform(frame)
        assert prepared.select(INPUT).count() == 9


def test_the_distribution_of_the_probabilities_is_kept_beside_those_of_the_features(spark: SparkSession) -> None:
    """In deciles, as that of a number is."""
    rows = [("a", 0.0, float(number % 2)) for number in range(20)]
    frame = spark.createDataFrame(rows, "same string, zero double, label double")
    found = statistics(frame, categories=["same"], numbers=["zero"])
    scored = spark.range(1, 101).selectExpr("id / 100D AS probability")
    kept = with_prediction(found, scored, DECILES)
    assert kept.distributions["probability"] == {str(tenth): pytest.approx(0.1) for tenth in range(10)}
    assert kept.bounds == found.bounds | {"probability": DECILES}
    assert kept.distributions.keys() == found.distributions.keys() | {"probability"}
