"""The broker of Kafka is killed while a streaming query reads from it."""

from typing import Final

from spark_app.annexes.incidents.incident import OF_APPLICATION, Alert, Incident, Panel
from spark_app.annexes.incidents.planting import KAFKA, Planting, forget_topics


def prepare(planting: Planting) -> None:
    """Starts a query that reads a topic, and waits until it has read."""
    planting.run_program("orders_stream.py", "20", "1000", "600")
    planting.wait_for_line("batch 3")


def undo(planting: Planting) -> None:
    """Starts the broker, ends the query, and deletes its topic and its checkpoint."""
    planting.docker.start(KAFKA)
    forget_topics(planting)


INCIDENT: Final = Incident(
    does="kills the broker while a streaming query reads a topic of it",
    ends="the broker is started again; the query has failed before",
    touches=("spark-master", KAFKA),
    alert=Alert("KafkaDown", 'severity="critical"'),
    panel=Panel("streaming", "States", f'stream_query_state{{stream_state="failed", {OF_APPLICATION}}} == 1'),
    cause=None,
    prepare=prepare,
    plant=lambda planting: planting.docker.kill(KAFKA),
    undo=undo,
    seconds=180,
)
