"""A service that a streaming query asks has become slow."""

from typing import Final

from spark_app.annexes.incidents.incident import OF_APPLICATION, Alert, Incident, Panel, finding
from spark_app.annexes.incidents.planting import forget_data

INCIDENT: Final = Incident(
    does="lets a streaming query ask a service about each row, which takes a second to answer",
    ends="the query ends by itself",
    touches=("spark-master",),
    alert=Alert("SparkStreamBehind", OF_APPLICATION),
    panel=Panel(
        "streaming",
        "Batches by their trigger",
        f"increase(stream_batch_duration_seconds_sum{{{OF_APPLICATION}}}[1m])"
        f" / increase(stream_batch_duration_seconds_count{{{OF_APPLICATION}}}[1m])"
        f" > on () group_left () max(last_over_time(stream_trigger_interval_seconds{{{OF_APPLICATION}}}[1m]))",
    ),
    cause=finding("external_wait"),
    plant=lambda planting: planting.run_program("slow_service.py"),
    undo=forget_data,
)
