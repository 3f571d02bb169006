"""A topic as a source: by its name, or as it is declared."""

import pytest

from spark_app import Topic, kafka
from spark_app.engine.code_location import DeclarationError

CLICKS = Topic("clicks", schema="click_id string, clicked_at timestamp", key="click_id", event_time="clicked_at")


def test_a_topic_is_named_or_declared() -> None:
    """Both are the same."""
    assert kafka("clicks").topic == kafka(CLICKS).topic == "clicks"


def test_a_topic_without_a_name_is_refused() -> None:
    """With its place."""
    with pytest.raises(DeclarationError, match=r"test_kafka\.py:\d+: kafka names a topic"):
        kafka(" ")
