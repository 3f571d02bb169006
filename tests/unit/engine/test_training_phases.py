from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from app.ml import refunds
from spark_app.engine import promotion, training_phases
from spark_app.engine.model import Data, ModelConfig
from spark_app.engine.training import TrainingContext
from spark_app.errors import InputError, PromotionError
from spark_app.execution import pipelines
from spark_app.models import registry, scores
from spark_app.models.registry import Version
from spark_app.runs import model_card
from spark_app.runs.model_card import PREDICTION, ModelCard
from spark_app.settings import load_pipeline_config
from spark_app.warehouse.tables import Warehouse
from tests import models
from tests.integration.home import Home
from tests.shop_rows import DAY, FIRST
from tests.unit.report import cards
from tests.unit.telemetry.memory import InMemory

LAST = FIRST + 6 * DAY
MODEL = refunds.refunded
SAME = {"country": {"same": 1.0}}
"""The distribution of the rows of these tests."""


class Unlocked(Warehouse):
    """A warehouse that has no locks, as one on an object store.

    Attributes:
        racing: What another run does just before this one writes to a table, once.
    """

    def __init__(
        self, home: Home, racing: Callable[[], object] = lambda: None, spark: SparkSession | None = None
    ) -> None:
        """The tables of a home, in its session or in another one."""
        super().__init__(spark or home.spark, home.settings.warehouse_path, pipelines.declared_tables())
        self.racing = [racing]

    def lock(self, key: str, *, on_wait: Callable[[], None] | None = None) -> AbstractContextManager[None]:
        """Nothing is locked."""
        return nullcontext()

    def creation_lock(self, name: str) -> AbstractContextManager[None]:
        """Neither is this; the other run is at work now."""
        if self.racing:
            self.racing.pop()()
        return nullcontext()


class TrainingRun:
    """A run of `ml.refunds` on a handful of labelled rows."""

    def __init__(self, folder: Path, home: Home) -> None:
        """Nothing is trained yet."""
        self.home, self.memory, self.spark = home, InMemory(folder), home.spark
        config = load_pipeline_config(MODEL.name, ModelConfig, self.home.settings.config)
        self.config = config.model_copy(update={"bootstrap": 2})
        self.run = self.memory.run(pipeline=MODEL.name)
        self.context = TrainingContext(home.spark, self.home.warehouse, self.home.settings, LAST, self.run, self.home)

    def data(self, held_out: int) -> Data:
        """Ten rows that train, and so many that judge; every other one is positive."""
        return Data(self.rows(10), self.rows(held_out), MODEL.periods(self.config, LAST), {"transactions": 0})

    def rows(self, number: int) -> DataFrame:
        """Labelled rows of transactions that differ in nothing but the key."""
        same = {name: F.lit("same") for name in MODEL.categories} | {name: F.lit(1.0) for name in MODEL.numbers}
        keys = {"transaction_id": F.format_string("t-%d", "id"), "customer_id": F.lit("c"), "created_at": F.now()}
        rows = self.spark.range(number).withColumns(keys | same).withColumn("label", (F.col("id") % 2).cast("double"))
        return rows.select(*models.SCHEMA.names, "label")


@pytest.fixture
def training_run(tmp_path: Path, spark: SparkSession) -> Iterator[TrainingRun]:
    """One that is open."""
    opened = TrainingRun(tmp_path, Home(tmp_path / "home", spark))
    yield opened
    opened.memory.telemetry.close()


@pytest.mark.parametrize("phase", [training_phases.train, training_phases.evaluate])
def test_without_held_out_rows_nothing_is_trained_or_judged(
    training_run: TrainingRun, phase: Callable[..., ModelCard]
) -> None:
    """The message names the days, before a long training."""
    found, data = training_run, training_run.data(held_out=0)
    version = [models.promote(found.home, 1, 0.25)] if phase is training_phases.evaluate else []
    with found.run, pytest.raises(InputError, match="no transactions of 2024-01-06 to judge a model on"):
        phase(found.context, MODEL, found.config, *version, data)


def test_a_version_replaces_only_what_it_was_compared_with(training_run: TrainingRun) -> None:
    """Also where another run promotes a version between the look at what is in production and the promotion."""
    found, home = training_run, training_run.home
    models.promote(home, 1, 0.25)
    version = models.register(home, 2, 0.25)
    models.judge(home, version, production=cards.evaluation(1, less=0.1), comparison=models.BETTER)
    found.context.warehouse = Unlocked(home, lambda: models.promote(home, 3, 0.25))
    with found.run, pytest.raises(InputError, match="version 2 was not compared with version 3"):
        promotion.promote(found.context, MODEL, found.config, version)
    assert [each.version for each in registry.promotions(home.warehouse, MODEL.name)] == [1, 3]


def test_trainings_at_once_each_have_a_version_of_their_own(training_run: TrainingRun) -> None:
    """Where nothing is locked, and the table of versions is not there yet: no row is lost, no number is taken twice."""
    found, together, trainings = training_run, Barrier(3), 3
    card, rows = cards.card(model=MODEL.name), found.rows(1)

    def trained(training: int) -> int:
        run, spark = found.memory.run(pipeline=MODEL.name, run_id=f"run-{training}"), found.spark.newSession()
        warehouse = Unlocked(found.home, together.wait, spark)
        context = replace(found.context, spark=spark, telemetry=run, warehouse=warehouse)
        with run:
            version = Version(MODEL.name, 0, f"fingerprint {training}", f"artifact {training}", card)
            return training_phases.register(context, version, features=rows).number

    with ThreadPoolExecutor(trainings) as threads:
        numbers = list(threads.map(trained, range(trainings)))
    assert sorted(numbers) == [1, 2, 3]
    stored = registry.versions(found.home.warehouse, MODEL.name)
    assert [(each.number, each.card.version) for each in stored] == [(number, number) for number in sorted(numbers)]
    assert {each.artifact.rpartition("/")[2]: each.number for each in stored} == {
        f"artifact {training}": number for training, number in enumerate(numbers)
    }


def test_a_rollback_beside_another_change_does_not_undo_it(training_run: TrainingRun) -> None:
    """It looks again at what is in production where another run was faster, and loses no row of the registry."""
    found, home = training_run, training_run.home
    for number in (1, 2):
        models.promote(home, number, 0.25)
    found.context.warehouse = Unlocked(home, lambda: models.promote(home, 3, 0.25))
    with found.run:
        promotion.rollback(found.context, MODEL)
    changes = registry.promotions(home.warehouse, MODEL.name)
    assert [(each.number, each.version, each.action) for each in changes] == [
        (1, 1, "promoted"), (2, 2, "promoted"), (3, 3, "promoted"), (4, 2, "rolled_back"),
    ]  # fmt: skip
    assert found.memory.values("ml.promotions") == {("rolled_back", MODEL.name): 1}


@pytest.mark.parametrize("days_newer", [0, 7])
def test_an_equally_good_version_replaces_only_an_old_one(training_run: TrainingRun, days_newer: int) -> None:
    """As another seed on the same rows gives one. What is decided says why, in the card of the run, too."""
    found, home, same = training_run, training_run.home, cards.statistics(distributions=SAME)
    gate = found.config.gate.model_copy(update={"lift": 1, "calibration": 1})
    config = found.config.model_copy(update={"gate": gate})
    models.promote(home, 1, 0.25, statistics=same, as_of=str(FIRST))
    version = models.register(home, 2, 0.25, statistics=same, as_of=str(FIRST + days_newer * DAY), seed=8)
    with found.run:
        training_phases.evaluate(found.context, MODEL, config, version, found.data(held_out=40))
        with nullcontext() if days_newer else pytest.raises(PromotionError, match="not better than that of version 1"):
            promotion.promote(found.context, MODEL, config, version)
    verdict = model_card.read(found.run.identity.folder).verdict
    assert verdict is not None
    assert verdict.is_promoted == bool(days_newer)
    interval = "+0.000 (+0.000 to +0.000 in 95 % of 1,000 samples of the same rows)"
    if days_newer:
        why = f"it is as good, {interval}, and was trained 7 days later"
        assert verdict.text == f"version 2 is in production in place of version 1: {why}"
    else:
        [reason] = verdict.reasons
        assert reason.endswith(f"beyond chance: {interval}; as good is enough 7 days after that one, not 0")


def test_repeating_what_is_in_production_is_no_promotion(training_run: TrainingRun) -> None:
    """It is not counted as one, and the comparison that led to the promotion stays."""
    found = training_run
    version = models.promote(found.home, 2, 0.25, statistics=cards.statistics(distributions=SAME))
    compared = cards.evaluation(1, less=0.1)
    models.judge(found.home, version, production=compared)
    with found.run:
        card = training_phases.evaluate(found.context, MODEL, found.config, version, found.data(held_out=40))
        promotion.promote(found.context, MODEL, found.config, version)
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


def test_the_first_version_in_production_has_the_scores_of_production(training_run: TrainingRun) -> None:
    """From its promotion on, not only from the next training on: the alert about worse scores needs them."""
    found = training_run
    version = models.register(found.home, 1, 0.25)
    models.judge(found.home, version, production=None)
    with found.run:
        promotion.promote(found.context, MODEL, found.config, version)
    values = found.memory.values("ml.model.score")
    assert values["production", "roc_auc", "all", MODEL.name] == cards.SCORES["roc_auc"]
    assert found.memory.values("ml.promotions") == {("promoted", MODEL.name): 1}


def test_drift_is_that_of_each_feature_and_of_the_probability(training_run: TrainingRun) -> None:
    """By group; of a version that keeps no distribution of its probabilities, theirs is not invented."""
    found, half = training_run, {PREDICTION: {"0": 0.5, "1": 0.5}}
    old = models.promote(found.home, 1, 0.25, statistics=cards.statistics(distributions=SAME))
    kept = cards.statistics(distributions=SAME | half, bounds={PREDICTION: [0.25]})
    new = models.register(found.home, 2, 0.25, statistics=kept)
    with found.run:
        card = training_phases.evaluate(found.context, MODEL, found.config, new, found.data(held_out=40))
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
    training_run: TrainingRun, positives: Sequence[int], measured: Sequence[int]
) -> None:
    """Each is a series, and the values of a column come from data; small slices are noise."""
    found = training_run
    slices = [cards.slice_score("shop", str(number), 20 * number, 0.5) for number in positives]
    version = models.register(found.home, 1, 0.25)
    models.judge(found.home, version, production=None, slices=slices)
    with found.run:
        promotion.promote(found.context, MODEL, found.config, version)
    names = {part for _, _, part, _ in found.memory.values("ml.model.score")}
    assert names == {"all", *(f"shop {number}" for number in measured)}
