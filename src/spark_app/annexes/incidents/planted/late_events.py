"""Events that come after the watermark."""

import time
from typing import Final

from spark_app.annexes.incidents import shop
from spark_app.annexes.incidents.incident import OF_ENVIRONMENT, Alert, Incident, Panel
from spark_app.annexes.incidents.planting import Planting, forget_data

HOUR: Final = 3600


def prepare(planting: Planting) -> None:
    """Starts the query that keeps orders, and waits until it has read some of now."""
    shop.install(planting)
    shop.deliver_records(planting, "good", (shop.order(number, time.time()) for number in range(100)))
    shop.start(planting, "streaming", "incident_orders_stored")
    batches = f"stream_batches_total{{{OF_ENVIRONMENT}}} > 0"
    planting.wait_until(lambda: planting.has_value(batches), "micro-batch of the query")


def plant(planting: Planting) -> None:
    """Delivers orders of three hours ago, whose watermark has passed by then."""
    late = (shop.order(number, time.time() - 3 * HOUR) for number in range(100, 200))
    shop.deliver_records(planting, "late", late)


INCIDENT: Final = Incident(
    does="delivers events of three hours ago to a query whose watermark is a minute behind now: it drops them",
    ends="the query is stopped, and its tables are removed",
    touches=("spark-master",),
    alert=Alert("StreamLateRows", OF_ENVIRONMENT),
    panel=Panel("streaming", "Left out, and started again", f"sum(stream_rows_late_total{{{OF_ENVIRONMENT}}}) > 0"),
    cause=None,
    prepare=prepare,
    plant=plant,
    undo=forget_data,
    service="spark-app streaming",
)
