"""Streaming queries whose tables, checkpoints and model are on a real S3 server write each row once, and lose none.

Needs versitygw on PATH.
"""

from collections.abc import Mapping
from typing import Final

import pytest
from pyspark.sql import SparkSession

from tests import s3
from tests.stack.s3_home import S3Home
from tests.streaming.rounds import Files, Round

BETWEEN: Final = {0: "streaming.events", 1: "streaming.balances"}
"""Which query is killed after Delta's commit and before the checkpoint's."""


class Landed(Files):
    """Files of records that say of any time that they happened then: all are from the first seconds of the stream."""

    @property
    def variables(self) -> Mapping[str, str]:
        """The landing folder, and no limit for the times of records."""
        return {**super().variables, "SPARK_APP_STREAM__EVENT_TIME_AFTER_MAX": "null"}


@pytest.mark.parametrize("kills", [0, pytest.param(3, marks=pytest.mark.before_release)])
def test_queries_on_s3_lose_and_double_nothing(
    server: s3.Server, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, kills: int
) -> None:
    """Each table is what its truth says, also after kills."""
    landing, records = Landed(tmp_path_factory.mktemp("landing") / "landing"), 480 + 160 * kills
    streams = Round(S3Home(tmp_path_factory.mktemp("home"), spark, server), landing, records=records, seed=18)
    streams.run(kills=kills, between=BETWEEN)
    assert streams.differences() == {}, streams.kills
