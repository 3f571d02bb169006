"""A consumer that reads less than comes."""

from typing import Final

from spark_app.annexes.incidents.incident import OF_APPLICATION, Alert, Incident, Panel, finding
from spark_app.annexes.incidents.planting import forget_topics

INCIDENT: Final = Incident(
    does="sends more records to a topic than its streaming query may read",
    ends="the query ends by itself, and the topic is deleted",
    touches=("spark-master", "kafka"),
    alert=Alert("SparkStreamBehind", OF_APPLICATION),
    panel=Panel("streaming", "Unread records", f"stream_lag_records{{{OF_APPLICATION}}} > 500"),
    cause=finding("falling_behind"),
    plant=lambda planting: planting.run_program("orders_stream.py", "400", "40", "35"),
    undo=forget_topics,
)
