from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.streaming import activity
from tests.unit.streaming.drained import Drained, dropped, event, events, observed


def test_a_window_has_a_row_per_event_type_and_one_about_all(spark: SparkSession) -> None:
    """Users count once per row; the row about all has the share of viewers who purchased."""
    rows = events(
        spark,
        event(1, 0, "view", 1),
        event(2, 1, "view", 1),
        event(3, 2, "view", 2),
        event(4, 3, "purchase", 2),
        event(5, 5, "purchase", 2),
    )
    found = activity.activity(rows)
    columns = ["minute(window_start)", "event_type", "events", "users", "conversion_ratio"]
    texts = [str(tuple(row)) for row in found.selectExpr(*columns).collect()]
    assert sorted(texts) == [
        "(0, 'purchase', 1, 1, None)",
        "(0, 'view', 3, 2, None)",
        "(0, None, 4, 2, 0.5)",
        "(5, 'purchase', 1, 1, None)",
        "(5, None, 1, 1, None)",
    ]


def test_sketches_of_windows_can_be_joined(spark: SparkSession) -> None:
    """The users of an hour are not the sum of those of its windows."""
    rows = events(spark, *(event(number, number % 20, "view", number % 7) for number in range(40)))
    found = activity.activity(rows)
    joined = found.where("event_type = 'view'").selectExpr("hll_sketch_estimate(hll_union_agg(users_sketch))")
    assert [row[0] for row in joined.collect()] == [7]


def test_the_estimate_of_many_users_is_near(spark: SparkSession) -> None:
    """Within four standard errors of 1.6 %."""
    rows = spark.range(20_000).selectExpr(
        "string(id) event_id", "concat('c-', id) user_id", "'view' event_type",
        "timestamp'2024-01-01 12:00:00' timestamp", "map('', '') properties",
    )  # fmt: skip
    found = activity.activity(rows).where("event_type = 'view'")
    assert [row.users for row in found.collect()] == [pytest.approx(20_000, rel=4 * 0.0163)]


def test_late_events_count_and_too_late_ones_are_dropped(tmp_path: Path, spark: SparkSession) -> None:
    """A window is written once, when the watermark has passed its end; a repetition is no event."""
    query = Drained(tmp_path, spark, activity, watermark="10 minutes", window="5 minutes")
    query.deliver("user_events", event(1, 1), event(2, 12), event(2, 12), b"broken")
    assert [batch["malformed"] for batch in observed(query.drain(), "rows")] == [1, 0]
    assert query.rows("activity", "events") == []
    query.deliver("user_events", event(3, 3, user=2), event(1, 1), event(4, 30))
    assert dropped(query.drain()) == 1  # the repetition of event 1, which is older than 2 minutes by now
    assert query.rows("activity", "minute(window_start)", "events", "users", "event_type IS NULL") == [
        (0, 2, 2, False),
        (0, 2, 2, True),
        (10, 1, 1, False),
        (10, 1, 1, True),
    ]
    columns = query.columns()["activity"]
    assert columns["window_start"] == [("user_events (topic)", "timestamp")]
    assert columns["events"] == []
    assert {origin.column for origin in columns["conversion_ratio"]} == {"event_type", "user_id"}
