import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from app.ml import refunds
from spark_app.errors import FeatureLeakError, InputError
from spark_app.models import reference
from spark_app.models.inputs import Feature, FeatureSet
from spark_app.models.reference import Reference
from spark_app.models.registry import Version
from tests.integration.home import Home
from tests.shop_rows import DAY, FIRST, refunded, sold
from tests.unit.report import cards

DAYS: Final = [FIRST + age * DAY for age in range(4)]
JUDGED: Final = DAYS[2]
INPUTS: Final = refunds.refunded.inputs
FEATURES: Final = {each.name: each.meaning for each in INPUTS.features}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Home:
    """A shop with four days of sales, and the refunds of them."""
    home = Home(tmp_path_factory.mktemp("shop"), spark)
    home.warehouse.create(sold(spark, *DAYS, rows=300), "transactions", "sales")
    home.warehouse.create(refunded(spark, *DAYS, rows=300), "refund_events", "refunds")
    return home


def sampled(home: Home, inputs: FeatureSet = INPUTS) -> Reference:
    """The reference rows of a model."""
    return reference.sample(home.warehouse, dict.fromkeys(inputs.reads), inputs, date=JUDGED)


def joined(name: str, found: Callable[[DataFrame, DataFrame], DataFrame], key: str) -> FeatureSet:
    """The features of `ml.refunds`, and one of a user's own, which a function computes from the tables."""

    def with_more(rows: DataFrame, transactions: DataFrame, refund_events: DataFrame) -> DataFrame:
        known = INPUTS.function(rows, transactions, refund_events)
        values = found(transactions, refund_events)
        return known.join(values.select(key, F.col("value").alias(name)), key, "left")

    more = (*INPUTS.features, Feature(name, "category", "own", "one of a user's own"))
    return replace(INPUTS, function=with_more, features=more)


def refunds_ever(transactions: DataFrame, refund_events: DataFrame) -> DataFrame:
    """Counts refunds that come later, too."""
    return refund_events.groupBy("customer_id").agg(F.count("*").alias("value"))


def status_now(transactions: DataFrame, refund_events: DataFrame) -> DataFrame:
    """Knows a column that is set later."""
    return transactions.select("transaction_id", F.col("status").alias("value"))


def purchases_today(transactions: DataFrame, refund_events: DataFrame) -> DataFrame:
    """Counts purchases of the day that are still to come."""
    today = transactions.where(F.col("processed_date") == F.lit(JUDGED))
    return today.groupBy("customer_id").agg(F.count("*").alias("value"))


def prices_today(transactions: DataFrame, refund_events: DataFrame) -> DataFrame:
    """A mean over other customers, of which serving has those of the day before."""
    return transactions.groupBy("category").agg(F.avg("amount").cast("double").alias("value"))


def prices_before(transactions: DataFrame, refund_events: DataFrame) -> DataFrame:
    """A mean of the days before over other customers, of whom serving has none."""
    before = transactions.where(F.col("processed_date") < F.lit(JUDGED))
    return prices_today(before, refund_events)


@pytest.mark.parametrize(
    ("name", "found", "key"),
    [
        ("refunds_ever", refunds_ever, "customer_id"),
        ("status_now", status_now, "transaction_id"),
        ("purchases_today", purchases_today, "customer_id"),
        ("prices_today", prices_today, "category"),
        ("prices_before", prices_before, "category"),
    ],
)
def test_a_feature_of_a_user_that_knows_the_future_is_refused(
    home: Home, name: str, found: Callable[[DataFrame, DataFrame], DataFrame], key: str
) -> None:
    """The message has the feature, the transaction, and the values with and without what comes later."""
    inputs = joined(name, found, key)
    known = sampled(home, inputs)
    with pytest.raises(FeatureLeakError) as raised:
        reference.require_no_leak(home.warehouse, inputs, known)
    match = re.search(
        r"^(\w+) knows the future: for transaction_id (\S+) it is (\S+), but (\S+) from what", str(raised.value)
    )
    assert match is not None, str(raised.value)
    [row] = [row for row in known.features.rows if row.transaction_id == match[2]]
    assert (match[1], match[3]) == (name, str(row[name]))
    assert match[4] != match[3]
    assert raised.value.exit_code == 4


def test_features_of_what_serving_has_are_not_refused(home: Home) -> None:
    """Those of the shop, and a user's own that counts whole days before."""

    def before(transactions: DataFrame, refund_events: DataFrame) -> DataFrame:
        earlier = refund_events.where(F.col("refunded_at") < F.lit(JUDGED).cast("timestamp"))
        return earlier.groupBy("customer_id").agg(F.count("*").alias("value"))

    for inputs in (INPUTS, joined("refunds_before_today", before, "customer_id")):
        reference.require_no_leak(home.warehouse, inputs, sampled(home, inputs))


def test_the_reference_rows_of_the_same_tables_are_the_same(home: Home) -> None:
    """They are few, have a history, and come back from an artifact as they were written."""
    found = sampled(home)
    assert found.values(INPUTS.examples) == sampled(home).values(INPUTS.examples)
    assert sum(len(table.rows) for table in found.tables.values()) <= reference.MAX_ROWS
    assert any(row.customer_purchases_log > 0 for row in found.features.rows)
    assert any(row.customer_refund_ratio > 0.05 for row in found.features.rows)
    artifact = f"{home.settings.warehouse_path}/_models/a"
    reference.write(home.warehouse, found, artifact)
    stored = reference.read(home.warehouse, artifact)
    assert stored is not None
    assert stored.values(INPUTS.examples) == found.values(INPUTS.examples)
    assert (stored.date, stored.tables) == (found.date, found.tables)


@pytest.fixture(scope="module")
def version(home: Home) -> Version:
    """A version with the reference rows of this program."""
    artifact = f"{home.settings.warehouse_path}/_models/version"
    reference.write(home.warehouse, sampled(home), artifact)
    card = cards.card(model="ml.refunds", version=3, features=FEATURES, git_commit="c0ffee")
    return Version("ml.refunds", 3, "fingerprint", artifact, card)


def test_a_program_computes_the_features_that_it_trained_with(home: Home, version: Version) -> None:
    """On the reference rows of the version."""
    assert reference.difference(home.warehouse, version, INPUTS) is None


def test_code_that_computes_the_same_values_is_no_difference(home: Home, version: Version) -> None:
    """Neither is a feature that the version does not know."""
    changed = with_ratio(lambda purchases_before, refunds_before: (1 + refunds_before) / (20 + purchases_before))
    more = Feature("new", "number", "own", "no version knows it", lambda: F.lit(1))
    both = replace(changed, features=[*changed.features, more])
    assert reference.difference(home.warehouse, version, both) is None


def with_ratio(value: Callable[..., Column]) -> FeatureSet:
    """The features, with another function for the ratio of refunds."""
    is_ratio = "customer_refund_ratio"
    features = [replace(each, value=value) if each.name == is_ratio else each for each in INPUTS.features]
    return replace(INPUTS, features=features)


def test_a_version_whose_features_are_computed_otherwise_is_refused(home: Home, version: Version) -> None:
    """One sentence with the feature, the transaction, both values, and what to do."""
    changed = with_ratio(lambda purchases_before: purchases_before / 2)
    with pytest.raises(InputError) as raised:
        reference.require_same(home.warehouse, version, changed)
    assert re.fullmatch(
        r"version 3 of ml\.refunds was trained on other features than this program computes: "
        r"customer_refund_ratio of transaction_id t-20240103-\d+ was [\d.]+ and is [\d.]+ now: "
        r"train a new version with `spark-app ml`, or check out c0ffee, which trained it",
        str(raised.value),
    )


def test_a_feature_or_a_row_that_is_gone_is_a_difference(home: Home, version: Version) -> None:
    """A model cannot score without it."""
    fewer = replace(INPUTS, features=[each for each in INPUTS.features if each.name != "is_abroad"])
    none = replace(INPUTS, function=empty)
    for inputs, message in (
        (fewer, "is_abroad of transaction_id t-.* is missing now"),
        (none, "transaction_id t-.* had features and has none now"),
    ):
        assert re.match(message, str(reference.difference(home.warehouse, version, inputs)))


def empty(rows: DataFrame, transactions: DataFrame, refund_events: DataFrame) -> DataFrame:
    """What the features are computed of, without a row."""
    return INPUTS.function(rows, transactions, refund_events).where("false")


def test_a_version_of_an_older_program_is_refused(home: Home, version: Version, tmp_path: Path) -> None:
    """It has no reference rows, and the features of its time had another history."""
    old = Version(version.model, 1, "fingerprint", str(tmp_path), version.card)
    with pytest.raises(
        InputError, match="computes: it has no reference rows, which an older program did not keep: train"
    ):
        reference.require_same(home.warehouse, old, INPUTS)
