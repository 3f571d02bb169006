from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_app.models import registry
from spark_app.models.registry import Action, Promotion, previous, withdrawn
from tests import models
from tests.integration.home import Home


def changes(*made: tuple[int, Action]) -> list[Promotion]:
    """Changes of what is in production, in their order."""
    return [Promotion(number, version, action) for number, (version, action) in enumerate(made, start=1)]


def test_a_rollback_leads_to_the_version_before_the_last_promotion() -> None:
    """A second rollback leads to the same one, since it only repeats the first."""
    assert previous([]) is None
    assert previous(changes((1, "promoted"))) is None
    assert previous(changes((1, "promoted"), (2, "promoted"))) == 1
    assert previous(changes((1, "promoted"), (2, "promoted"), (1, "rolled_back"))) == 1
    assert previous(changes((1, "promoted"), (2, "promoted"), (1, "rolled_back"), (3, "promoted"))) == 1


def test_a_version_that_was_rolled_back_is_withdrawn_until_it_is_promoted_again() -> None:
    """The others are not."""
    assert withdrawn(changes((1, "promoted"), (2, "promoted"))) == set()
    assert withdrawn(changes((1, "promoted"), (2, "promoted"), (1, "rolled_back"))) == {2}
    assert withdrawn(changes((1, "promoted"), (2, "promoted"), (1, "rolled_back"), (2, "promoted"))) == set()


@pytest.mark.parametrize("is_old", [False, True])
def test_a_warehouse_that_moved_takes_its_models_along(tmp_path: Path, spark: SparkSession, is_old: bool) -> None:  # noqa: FBT001
    """Artifacts are named relative to the warehouse; versions of before have the path of where it was."""
    home = Home(tmp_path / "home", spark)
    version = models.promote(home, 1, 0.25)
    if is_old:
        row = home.table("models").withColumn("artifact", F.lit(version.artifact))
        home.warehouse.replace_where(row.localCheckpoint(), "models", registry.where_version(models.MODEL, 1), "old")
    stored = home.table("models").head()
    assert stored is not None
    assert Path(stored.artifact).is_absolute() == is_old
    home.folder.rename(tmp_path / "moved")
    found = registry.production(Home(tmp_path / "moved", spark).warehouse, models.MODEL)
    assert found is not None
    rows = registry.load(found).transform(spark.range(1)).collect()
    assert [row.positive_probability for row in rows] == [0.25]
