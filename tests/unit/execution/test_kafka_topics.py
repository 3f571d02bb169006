"""Topics that the queries of a project read and send; tests/integration creates some in a broker."""

from spark_app.execution import pipelines
from spark_app.execution.kafka_topics import partitions
from tests.declared import pipeline


def test_a_topic_that_is_read_has_a_partition_for_each_core() -> None:
    """One that is only sent has one, also where a query in a project of one's own says nothing of what it sends."""
    queries = [
        pipeline(topics=("views", "clicks"), sends=("alerts",)),
        pipeline(topics=("alerts",)),
        pipeline(topics=("clicks",), sends=("letters",)),
    ]
    expected = {"views": 4, "clicks": 4, "alerts": 4, "orders": 4, "letters": 1}
    assert partitions(queries, ["orders", "clicks"]) == expected


def test_the_topics_of_the_shop_are_those_of_its_queries() -> None:
    """What it sends, what the queries read, and what they send."""
    topics = partitions(pipelines.load("streaming").values(), [topic.name for topic in pipelines.topics()])
    read = dict.fromkeys(["user_events", "impressions", "clicks", "prediction_requests"], 4)
    assert topics == read | dict.fromkeys(["dead_letters", "purchase_alerts", "predictions"], 1)
