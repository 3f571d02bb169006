from pathlib import Path

from pyspark.sql import SparkSession

from app.streaming import sessions
from tests.unit.streaming.drained import Drained, event, events


def test_a_gap_ends_a_session(spark: SparkSession) -> None:
    """Users have sessions of their own; an event after just the gap belongs to the session."""
    rows = events(
        spark, event(1, 0), event(2, 9), event(3, 4, "purchase"), event(4, 19.1), event(5, 5, user=2), event(6, 29.1)
    )
    found = sessions.sessions(rows, gap="10 minutes")
    columns = ["user_id", "minute(started_at)", "minute(ended_at)", "events", "purchases"]
    assert sorted(tuple(row) for row in found.selectExpr(*columns).collect()) == [
        ("c-0000001", 0, 9, 3, 1),
        ("c-0000001", 19, 29, 2, 0),
        ("c-0000002", 5, 5, 1, 0),
    ]


def test_a_late_event_joins_two_sessions(tmp_path: Path, spark: SparkSession) -> None:
    """A session is written once, when no event can prolong it; a repeated event counts once."""
    query = Drained(tmp_path, spark, sessions, watermark="20 minutes", gap="10 minutes")
    query.deliver("user_events", event(1, 0), event(2, 15), event(2, 15))
    query.drain()
    assert query.rows("sessions", "events") == []
    query.deliver("user_events", event(3, 8), event(4, 100, user=2))
    query.drain()
    assert query.rows("sessions", "minute(started_at)", "minute(ended_at)", "events") == [(0, 15, 3)]
