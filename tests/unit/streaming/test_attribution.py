import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from app.schemas import CLICK, IMPRESSION
from app.streaming import attribution
from tests.unit.streaming.drained import Drained, at


def text(instant: datetime.datetime) -> str:
    """An instant as producers write it."""
    return f"{instant:%Y-%m-%dT%H:%M:%S}.000Z"


def impression(number: int, minute: float) -> dict[str, Any]:
    """The value of an impression."""
    return {"impression_id": f"i-{number}", "ad_id": "a-1", "user_id": "c-1", "timestamp": text(at(minute))}


def click(number: int, on: int, minute: float) -> dict[str, Any]:
    """The value of a click."""
    return {"click_id": f"k-{number}", "impression_id": f"i-{on}", "timestamp": text(at(minute))}


def attributed(spark: SparkSession, impressions: list[Any], clicks: list[Any]) -> DataFrame:
    """The result on rows."""
    shown = spark.createDataFrame(
        [(f"i-{number}", "a-1", "c-1", at(minute)) for number, minute in impressions], IMPRESSION
    )
    clicked = spark.createDataFrame([(f"k-{number}", f"i-{on}", at(minute)) for number, on, minute in clicks], CLICK)
    return attribution.attributions(shown, clicked, click_within="10 minutes")


def test_only_clicks_in_time_are_attributed(spark: SparkSession) -> None:
    """The last instant counts; an impression without a click in time comes out once, without one."""
    impressions = [(1, 0), (2, 0), (3, 5), (4, 0)]
    clicks = [(1, 1, 0), (2, 1, 10), (3, 2, 10.1), (4, 3, 4.9), (5, 9, 1)]
    found = attributed(spark, impressions, clicks)
    assert sorted((row.impression_id, str(row.click_id)) for row in found.collect()) == [
        ("i-1", "k-1"),
        ("i-1", "k-2"),
        ("i-2", "None"),
        ("i-3", "None"),
        ("i-4", "None"),
    ]


def test_an_impression_without_click_comes_out_when_none_can_come(tmp_path: Path, spark: SparkSession) -> None:
    """A click may be read before its impression, and twice; both topics have to move on."""
    query = Drained(tmp_path, spark, attribution, watermark="20 minutes", click_within="10 minutes")
    query.deliver("impressions", impression(1, 5), impression(2, 6))
    query.deliver("clicks", click(1, 3, 5), click(2, 1, 6), click(2, 1, 6))
    query.drain()
    assert query.rows("attributions", "impression_id", "click_id") == [("i-1", "k-2")]
    query.deliver("impressions", impression(3, 4), impression(3, 4), impression(4, 100))
    query.deliver("clicks", click(9, 4, 101))
    query.drain()
    found = query.rows("attributions", "impression_id", "coalesce(click_id, '')")
    assert found == [("i-1", "k-2"), ("i-2", ""), ("i-3", "k-1"), ("i-4", "k-9")]
