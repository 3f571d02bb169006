"""A feed whose records no longer parse."""

import time
from typing import Final

from spark_app.annexes.incidents import shop
from spark_app.annexes.incidents.incident import OF_ENVIRONMENT, Alert, Incident, Panel
from spark_app.annexes.incidents.planting import Planting, forget_data


def prepare(planting: Planting) -> None:
    """Starts the query of dead letters, and waits until it has read good records."""
    shop.install(planting)
    shop.deliver_records(planting, "good", (shop.order(number, time.time()) for number in range(100)))
    shop.start(planting, "streaming", "incident_dead_letters")
    batches = f"stream_batches_total{{{OF_ENVIRONMENT}}} > 0"
    planting.wait_until(lambda: planting.has_value(batches), "micro-batch of the query")


def plant(planting: Planting) -> None:
    """Delivers records whose amount has become text."""
    good = (shop.order(number, time.time()) for number in range(100, 200))
    shop.deliver_records(planting, "malformed", (line.replace("10.0", '"10,00 EUR"') for line in good))


INCIDENT: Final = Incident(
    does="delivers records of a topic whose amount has become text: no query can read them",
    ends="the query is stopped, and its tables are removed",
    touches=("spark-master",),
    alert=Alert("StreamDeadLetters", OF_ENVIRONMENT),
    panel=Panel("streaming", "Left out, and started again", f"sum(stream_dead_letters_total{{{OF_ENVIRONMENT}}}) > 0"),
    cause=None,
    prepare=prepare,
    plant=plant,
    undo=forget_data,
    service="spark-app streaming",
)
