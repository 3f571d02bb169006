"""Streaming queries that are killed at some moments write each row once, and lose none: a short round."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from tests.integration.home import Home
from tests.kafka import running_broker
from tests.streaming import tables
from tests.streaming.rounds import RULES, Round, Topics
from tests.streaming.sentinels import SENTINEL_USER

KILLS: Final = 2
BROKER_KILL: Final = 1
"""The incarnation of the queries in which the broker is killed, too."""
BETWEEN: Final = {0: "streaming.balances"}
"""Which query is killed after Delta's commit and before the checkpoint's: merged by `foreachBatch`.
`tests/chaos/test_streams.py` has each kind."""


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Round]:
    """Two kills of queries that read Kafka, and one of Kafka; the queries have drained it then."""
    folder = tmp_path_factory.mktemp("kafka")
    home = Home(tmp_path_factory.mktemp("home"), spark)
    with running_broker(folder) as broker:
        streams = Round(home, Topics(broker), records=1_260, seed=18)
        streams.run(kills=KILLS, between=BETWEEN, disturb={BROKER_KILL: broker.restart})
        yield streams


def test_killed_queries_lose_and_double_nothing(streams: Round) -> None:
    """Each table is what its truth says."""
    assert streams.differences() == {}, streams.kills
    assert min(rows.total() for rows in tables.expected(streams.sent, RULES).values()) > 0


def test_queries_were_killed_between_the_two_commits_of_a_batch(streams: Round) -> None:
    """The batch was in the table and not in the checkpoint, so that its query wrote it a second time."""
    for number, query in BETWEEN.items():
        assert f"of {query} in {streams.tables[query]} only" in streams.kills[number], streams.kills


@pytest.mark.parametrize(("kept", "added", "finding"), [(0, 1, "too much"), (1, 0, "lost")])
def test_a_row_too_many_or_too_few_is_reported(
    streams: Round, tmp_path: Path, kept: int, added: int, finding: str
) -> None:
    """In each table: without that, the comparison with the truth would prove nothing."""
    home = streams.home.copied(tmp_path / "home")
    for table in streams.tables.values():
        content = home.table(table)
        rows = [row for row in content.collect() if row.asDict().get("user_id") != SENTINEL_USER]
        changed = home.spark.createDataFrame(rows[kept:] + rows[:added], content.schema)
        changed.write.format("delta").mode("overwrite").save(home.warehouse.path(table))
    differences = streams.differences(home)
    assert {query: differences[query][finding] for query in streams.tables} == dict.fromkeys(streams.tables, 1)
