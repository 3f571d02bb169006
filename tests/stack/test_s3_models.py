"""Version numbers and promotions of models on a real S3 server, where several runs take them at once, without locks.

Needs versitygw on PATH.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_app.models import judging
from tests import s3
from tests.integration import refunds_shop
from tests.stack.s3_home import S3Home
from tests.unit.engine import test_training_phases as phases

ROWS = 2_000
"""Sales of a day."""


@pytest.fixture
def training_run(tmp_path: Path, spark: SparkSession, server: s3.Server) -> Iterator[phases.TrainingRun]:
    """One that is open."""
    opened = phases.TrainingRun(tmp_path, S3Home(tmp_path / "home", spark, server))
    yield opened
    opened.memory.telemetry.close()


def test_trainings_at_once_each_have_a_version_of_their_own(training_run: phases.TrainingRun) -> None:
    """As on a disk."""
    phases.test_trainings_at_once_each_have_a_version_of_their_own(training_run)


@pytest.mark.before_release
def test_a_rollback_beside_another_change_does_not_undo_it(training_run: phases.TrainingRun) -> None:
    """As on a disk."""
    phases.test_a_rollback_beside_another_change_does_not_undo_it(training_run)


@pytest.mark.before_release
def test_a_model_is_trained_judged_promoted_and_scored(
    tmp_path: Path, spark: SparkSession, server: s3.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole of `spark-app ml`: the artifact, its reference and the scores of a day are in the bucket."""
    monkeypatch.setattr(judging, "IMPORTANCE_ROWS", 100)
    home = S3Home(tmp_path / "home", spark, server)
    refunds_shop.sell(home, rows=ROWS)
    home.configure(refunds_shop.MODEL, **refunds_shop.QUICK, gate=refunds_shop.OPEN)
    card = refunds_shop.do(home, "run")
    assert card is not None
    assert refunds_shop.production(home) == 1
    refunds_shop.do(home, "score", date=refunds_shop.DAYS[-1])
    scored = home.table("refund_scores")
    assert scored.where("model_version = 1 AND probability BETWEEN 0 AND 1").count() == scored.count() > ROWS / 2
    assert list(home.tables.glob("_models/*/*/metadata/_SUCCESS"))
