"""Version numbers and promotions of models on a real S3 server, where several runs take them at once, without locks.

Needs versitygw on PATH.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import s3
from tests.stack.s3_home import S3Home
from tests.unit.engine import test_training_phases as phases


@pytest.fixture
def training_run(tmp_path: Path, spark: SparkSession, server: s3.Server) -> Iterator[phases.TrainingRun]:
    """One that is open."""
    opened = phases.TrainingRun(tmp_path, S3Home(tmp_path / "home", spark, server))
    yield opened
    opened.memory.telemetry.close()


def test_trainings_at_once_each_have_a_version_of_their_own(training_run: phases.TrainingRun) -> None:
    """As on a disk."""
    phases.test_trainings_at_once_each_have_a_version_of_their_own(training_run)


def test_a_rollback_beside_another_change_does_not_undo_it(training_run: phases.TrainingRun) -> None:
    """As on a disk."""
    phases.test_a_rollback_beside_another_change_does_not_undo_it(training_run)
