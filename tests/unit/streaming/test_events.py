import os
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from app.schemas import CUSTOMERS, EVENTS
from app.streaming import events as module
from tests.unit.streaming.drained import NOON, Drained, dropped, event, events, observed


def test_an_event_has_the_current_customer(spark: SparkSession) -> None:
    """An older version of the customer does not double it; an unknown user has none."""
    versions = [
        ("c-0000001", "consumer", "DE", NOON, NOON, NOON, NOON, False),
        ("c-0000001", "vip", "FR", NOON, NOON, NOON, None, True),
    ]
    customers = spark.createDataFrame(versions, CUSTOMERS)
    known = events(spark, event(1, user=1), event(2, user=2)).withColumn("extra", F.expr("map('x', '1')"))
    found = {row.event_id: row for row in module.events(known, customers).collect()}
    assert (found["e-1"].customer_segment, found["e-1"].customer_country) == ("vip", "FR")
    assert found["e-2"].customer_segment is None
    assert found["e-1"].extra == {"x": "1"}
    assert found["e-1"].event_date == NOON.date()


def test_an_event_is_appended_once(tmp_path: Path, spark: SparkSession) -> None:
    """Repetitions are found, also in a later micro-batch; what is malformed or too late is counted."""
    query = Drained(tmp_path, spark, module, watermark="10 minutes")
    query.deliver("user_events", event(1, 0), event(1, 0), event(2, 15), b"broken")
    assert max(batch["malformed"] for batch in observed(query.drain(), "rows")) == 1
    query.deliver("user_events", event(2, 15), event(3, 6), event(4, 4))
    assert dropped(query.drain()) == 1
    assert query.rows("events", "event_id") == [("e-1",), ("e-2",), ("e-3",)]


def test_the_newest_record_is_known_to_the_millisecond(tmp_path: Path, spark: SparkSession) -> None:
    """Spark reports timestamps without fractions of a second, which would be a lag of up to a second."""
    query = Drained(tmp_path, spark, module)
    query.deliver("user_events", event(1))
    (file,) = Path(query.home.settings.landing_path).glob("*/*.jsonl")
    os.utime(file, (1700000000.25, 1700000000.25))
    assert 1700000000.25 in [batch["newest"] for batch in observed(query.drain(), "input user_events")]


def test_a_table_of_an_older_program_gets_the_columns_of_this_one(tmp_path: Path, spark: SparkSession) -> None:
    """Its rows stay, and have no value there."""
    query = Drained(tmp_path, spark, module)
    older = spark.createDataFrame([], EVENTS).drop("extra")
    older.write.format("delta").partitionBy("event_date").save(query.context.warehouse.path("events"))
    query.deliver("user_events", event(1), event(2) | {"x": 1})
    query.drain()
    assert query.rows("events", "event_id", "extra['x']") == [("e-1", None), ("e-2", "1")]
