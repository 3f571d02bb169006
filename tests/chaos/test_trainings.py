"""Trainings of a model that are repeated with another seed, or killed while they write: what is in production stays."""

from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from spark_app.errors import PromotionError
from spark_app.models import registry
from tests.integration.home import Home
from tests.integration.processes import kill_when, make_quick
from tests.integration.refunds_shop import MODEL, OPEN, do, production, train

FOREST: Final = {"logistic_regression": None, "random_forest": {"numTrees": [5], "maxDepth": [5]}}
ARTIFACT: Final = "_models/*/*/stages/5_*/metadata/_SUCCESS"
"""The last file of an artifact."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Home:
    """A shop with six days of sales, and a model that was trained and promoted."""
    return train(Home(tmp_path_factory.mktemp("trained"), spark))


@pytest.fixture
def shop(trained: Home, tmp_path: Path) -> Home:
    """A copy of it."""
    return trained.copied(tmp_path / "shop")


def test_another_seed_on_the_same_rows_is_not_promoted(shop: Home) -> None:
    """Its forest scores higher by chance: on other rows of the same kind it does not."""
    shop.configure(MODEL, seed=9, candidates=FOREST, gate=OPEN | {"margin": 1})
    do(shop, "run")
    assert production(shop) == 2
    shop.configure(MODEL, seed=7, gate={"margin": 0.02, "max_age_days": 7})
    with pytest.raises(PromotionError, match=r"version 3 is not promoted, .*not better than that of version 2"):
        do(shop, "run")
    card = registry.evaluation(shop.warehouse, MODEL, 3)
    assert card is not None
    assert card.comparison is not None
    assert (card.comparison.difference.value or 0) > 0.005, "no difference that a limit of 0.005 takes for progress"
    assert production(shop) == 2


def artifacts(home: Home) -> list[Path]:
    """The folders of fitted pipelines that are whole, oldest first."""
    return sorted(path.parents[3] for path in Path(home.settings.warehouse_path).glob(ARTIFACT))


def test_a_training_that_is_killed_before_its_version_has_a_row_leaves_nothing_behind(
    shop: Home, tmp_path: Path
) -> None:
    """Its artifact is whole and nobody's; the next training writes one of its own."""
    make_quick(shop)
    shop.configure(MODEL, seed=8, candidates={"random_forest": {"numTrees": [2], "maxDepth": [2]}}, gate=OPEN)
    kill_when(shop, ARTIFACT, stderr=tmp_path / "stderr", command=("ml",))
    [first], [_, orphan] = registry.versions(shop.warehouse, MODEL), artifacts(shop)
    assert (first.number, production(shop)) == (1, 1)
    do(shop, "train")
    [_, second] = registry.versions(shop.warehouse, MODEL)
    assert second.artifact != str(orphan)
    assert Path(second.artifact) in artifacts(shop)
