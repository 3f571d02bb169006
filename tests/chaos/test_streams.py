"""Streaming queries that are killed over and over write each row once, and lose none.

CHAOS_SEED (2) chooses other moments.
"""

import os
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from tests.integration.home import Home
from tests.kafka import running_broker
from tests.streaming.rounds import Files, Round, Topics

KILLS_ON_FILES: Final = 20
KILLS_ON_KAFKA: Final = 30
RECORDS_PER_KILL: Final = 240
SEED: Final = int(os.environ.get("CHAOS_SEED", "2"))
BROKER_KILLS: Final = (3, 9, 15, 21, 27)
BETWEEN: Final = {0: "streaming.events", 1: "streaming.dead_letters", 4: "streaming.balances", 5: "streaming.activity"}
"""Which query is killed after Delta's commit and before the checkpoint's, one of each kind: appended by Delta's sink,
appended by `foreachBatch`, merged by `foreachBatch`, aggregated in windows."""


def test_queries_that_read_files_lose_and_double_nothing(tmp_path: Path, spark: SparkSession) -> None:
    """Each table is what its truth says."""
    landing, records = Files(tmp_path / "landing"), KILLS_ON_FILES * RECORDS_PER_KILL
    streams = Round(Home(tmp_path / "home", spark), landing, records=records, seed=SEED)
    streams.run(kills=KILLS_ON_FILES)
    assert streams.differences() == {}, streams.kills


def test_queries_that_read_kafka_lose_and_double_nothing(tmp_path: Path, spark: SparkSession) -> None:
    """The broker is killed, too, while queries read from it, and comes back."""
    folder, records = tmp_path / "kafka", KILLS_ON_KAFKA * RECORDS_PER_KILL
    folder.mkdir()
    with running_broker(folder) as broker:
        streams = Round(Home(tmp_path / "home", spark), Topics(broker), records=records, seed=SEED)
        streams.run(kills=KILLS_ON_KAFKA, between=BETWEEN, disturb=dict.fromkeys(BROKER_KILLS, broker.restart))
        assert streams.differences() == {}, streams.kills
        for number, query in BETWEEN.items():
            assert f"of {query} in {streams.tables[query]} only" in streams.kills[number], streams.kills
