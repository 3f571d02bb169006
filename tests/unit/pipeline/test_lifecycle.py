from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from app import features
from app.errors import InputError
from app.execution import pipelines
from app.ml import refunds
from app.models import registry, scores
from app.pipeline import lifecycle
from app.pipeline.model import Data
from app.pipeline.slice import Day
from app.pipeline.training import TrainingContext
from app.runs.model_card import PREDICTION, ModelCard
from app.settings import load_pipeline_config
from app.warehouse.tables import Warehouse
from tests import models
from tests.integration.home import Home
from tests.shop_rows import DAY, FIRST
from tests.unit.report import cards
from tests.unit.telemetry.memory import InMemory

LAST = FIRST + 6 * DAY
MODEL = refunds.MODEL


SAME = {"country": {"same": 1.0}}
"""The distribution of the rows of these tests."""


class Raced(Warehouse):
    """A warehouse in which another run promotes something just before this one holds the lock of the registry."""

    def __init__(self, home: Home, promotion: Callable[[], object]) -> None:
        """The tables of a home."""
        super().__init__(home.spark, home.settings.warehouse_path, pipelines.declared_tables())
        self.promotion = promotion

    def lock(self, key: str, *, on_wait: Callable[[], None] | None = None) -> AbstractContextManager[None]:
        """The lock, which the other run has released."""
        if key == f"{MODEL.name}-registry":
            self.promotion()
        return super().lock(key, on_wait=on_wait)


class Lifecycle:
    """A run of `ml.refunds` on a handful of labelled rows."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        """Nothing is trained yet."""
        self.home, self.memory, self.spark = Home(folder / "home", spark), InMemory(folder), spark
        config = load_pipeline_config("ml.refunds", refunds.Config, self.home.settings.config)
        self.config = config.model_copy(update={"bootstrap": 2})
        self.run = self.memory.run(pipeline=MODEL.name)
        self.context = TrainingContext(
            spark, self.home.warehouse, self.home.settings, Day.of(LAST), self.run, self.home
        )

    def data(self, held_out: int) -> Data:
        """Ten rows that train, and so many that judge; every other one is positive."""
        return Data(self.rows(10), self.rows(held_out), MODEL.periods(self.config, LAST), {"transactions": 0})

    def rows(self, number: int) -> DataFrame:
        """Labelled rows of transactions that differ in nothing but the key."""
        same = {name: F.lit("same") for name in MODEL.categories} | {name: F.lit(1.0) for name in MODEL.numbers}
        keys = {"transaction_id": F.format_string("t-%d", "id"), "customer_id": F.lit("c"), "created_at": F.now()}
        rows = self.spark.range(number).withColumns(keys | same).withColumn("label", (F.col("id") % 2).cast("double"))
        return rows.select(*features.SCHEMA.names, "label")


@pytest.fixture
def lifecycle_of(tmp_path: Path, spark: SparkSession) -> Iterator[Lifecycle]:
    """One that is open."""
    opened = Lifecycle(tmp_path, spark)
    yield opened
    opened.memory.telemetry.close()


@pytest.mark.parametrize("phase", [lifecycle.train, lifecycle.evaluate])
def test_without_held_out_rows_nothing_is_trained_or_judged(
    lifecycle_of: Lifecycle, phase: Callable[..., ModelCard]
) -> None:
    """The message names the days, before a long training."""
    found, data = lifecycle_of, lifecycle_of.data(held_out=0)
    version = [models.promote(found.home, 1, 0.25)] if phase is lifecycle.evaluate else []
    with found.run, pytest.raises(InputError, match="no sold transactions of 2024-01-06 to judge a model on"):
        phase(found.context, MODEL, found.config, *version, data)


def test_a_version_replaces_only_what_it_was_compared_with(lifecycle_of: Lifecycle) -> None:
    """Also where another run promotes a version between the look at the evaluation and the lock of the registry."""
    found, home = lifecycle_of, lifecycle_of.home
    models.promote(home, 1, 0.25)
    version = models.register(home, 2, 0.25)
    models.judge(home, version, production=cards.evaluation(1, less=0.1))
    found.context.warehouse = Raced(home, lambda: models.promote(home, 3, 0.25))
    with found.run, pytest.raises(InputError, match="version 2 was not compared with version 3"):
        lifecycle.promote(found.context, MODEL, found.config, version)
    assert [each.version for each in registry.promotions(home.warehouse, MODEL.name)] == [1, 3]


def test_repeating_what_is_in_production_is_no_promotion(lifecycle_of: Lifecycle) -> None:
    """It is not counted as one, and the comparison that led to the promotion stays."""
    found = lifecycle_of
    version = models.promote(found.home, 2, 0.25, statistics=cards.statistics(distributions=SAME))
    compared = cards.evaluation(1, less=0.1)
    models.judge(found.home, version, production=compared)
    with found.run:
        card = lifecycle.evaluate(found.context, MODEL, found.config, version, found.data(held_out=40))
        lifecycle.promote(found.context, MODEL, found.config, version)
    assert card.production == compared
    stored = registry.evaluation(found.home.warehouse, MODEL.name, 2)
    assert stored is not None
    assert (stored.production, stored.evaluation.rows) == (compared, 40)  # type: ignore[union-attr]
    assert found.memory.values("ml.promotions") == {}
    scores_of = {name: each.value for name, each in card.evaluation.scores.items()}  # type: ignore[union-attr]
    for name in ("step evaluate candidate", "step promote"):
        attributes = found.memory.spans[name].attributes or {}
        assert [attributes[f"ml.{each}"] for each in ("model.version", "average_precision", "roc_auc")] == [
            2, scores_of["average_precision"], scores_of["roc_auc"],
        ], name  # fmt: skip
    assert {role for role, name, *_ in found.memory.values("ml.model.score")} == {"candidate", "production"}


def test_the_first_version_in_production_has_the_scores_of_production(lifecycle_of: Lifecycle) -> None:
    """From its promotion on, not only from the next training on: the alert about worse scores needs them."""
    found = lifecycle_of
    version = models.register(found.home, 1, 0.25)
    models.judge(found.home, version, production=None)
    with found.run:
        lifecycle.promote(found.context, MODEL, found.config, version)
    values = found.memory.values("ml.model.score")
    assert values["production", "roc_auc", "all", MODEL.name] == cards.SCORES["roc_auc"]
    assert found.memory.values("ml.promotions") == {("promoted", MODEL.name): 1}


def test_drift_is_that_of_each_feature_and_of_the_probability(lifecycle_of: Lifecycle) -> None:
    """By group; of a version that keeps no distribution of its probabilities, theirs is not invented."""
    found, half = lifecycle_of, {PREDICTION: {"0": 0.5, "1": 0.5}}
    old = models.promote(found.home, 1, 0.25, statistics=cards.statistics(distributions=SAME))
    kept = cards.statistics(distributions=SAME | half, bounds={PREDICTION: [0.25]})
    new = models.register(found.home, 2, 0.25, statistics=kept)
    with found.run:
        card = lifecycle.evaluate(found.context, MODEL, found.config, new, found.data(held_out=40))
    assert card.production is not None
    assert card.production.version == old.number
    assert card.production.drift == {"country": 0.0}
    assert found.memory.values("ml.feature.drift") == {
        ("country", "place", "production", MODEL.name): 0.0,
        ("country", "place", "candidate", MODEL.name): 0.0,
        ("probability", "prediction", "candidate", MODEL.name): pytest.approx(scores.psi(half[PREDICTION], {"0": 1.0})),
    }


@pytest.mark.parametrize(("positives", "measured"), [([50, 49], [50]), (range(50, 110), range(60, 110))])
def test_only_large_slices_are_measured_and_not_too_many(
    lifecycle_of: Lifecycle, positives: Sequence[int], measured: Sequence[int]
) -> None:
    """Each is a series, and the values of a column come from data; small slices are noise."""
    found = lifecycle_of
    slices = [cards.slice_score("shop", str(number), 20 * number, 0.5) for number in positives]
    version = models.register(found.home, 1, 0.25)
    models.judge(found.home, version, production=None, slices=slices)
    with found.run:
        lifecycle.promote(found.context, MODEL, found.config, version)
    names = {part for _, _, part, _ in found.memory.values("ml.model.score")}
    assert names == {"all", *(f"shop {number}" for number in measured)}
