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


def test_queries_on_s3_write_each_row_once(
    server: s3.Server, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One that appends, and one that merges."""
    streams = on_s3(server, spark, tmp_path_factory, records=240)
    streams.run_some("events", "balances")
    assert streams.differences(of=["streaming.events", "streaming.balances"]) == {}
    assert streams.home.table("events").count() > 0


@pytest.mark.before_release
def test_killed_queries_on_s3_lose_and_double_nothing(
    server: s3.Server, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """All of them: each table is what its truth says, also after kills."""
    streams = on_s3(server, spark, tmp_path_factory, records=960)
    streams.run(kills=3, between=BETWEEN)
    assert streams.differences() == {}, streams.kills


def on_s3(server: s3.Server, spark: SparkSession, folders: pytest.TempPathFactory, *, records: int) -> Round:
    """Queries that read files of a disk, with all else on S3."""
    landing = Landed(folders.mktemp("landing") / "landing")
    return Round(S3Home(folders.mktemp("home"), spark, server), landing, records=records, seed=18)
