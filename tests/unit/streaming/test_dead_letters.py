from app import topics
from app.streaming import dead_letters


def test_every_topic_of_a_producer_is_read() -> None:
    """What does not parse of any of them is kept."""
    assert tuple(topic.name for topic in topics.INCOMING) == dead_letters.DEAD_LETTERS.topics
