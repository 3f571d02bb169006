"""A day of which many rows violate an expectation."""

from typing import Final

from spark_app.annexes.incidents import shop
from spark_app.annexes.incidents.incident import OF_ENVIRONMENT, Alert, Cause, Incident, Panel
from spark_app.annexes.incidents.planting import Planting, forget_data

ALERT: Final = "PipelineQualityBreach"
EXPECTATION: Final = "amount.range"


def plant(planting: Planting) -> None:
    """Delivers a day a third of whose amounts are negative, and runs it."""
    shop.deliver_day(planting, shop.DAY, shop.sales(shop.DAY, negative=0.3))
    shop.start(planting, "etl", "--date", shop.DAY)


def undo(planting: Planting) -> None:
    """Delivers the day again and runs it, so that the alert ends; then removes the tables."""
    planting.end_programs()
    if shop.is_installed(planting):
        shop.deliver_day(planting, shop.DAY, shop.sales(shop.DAY))
        shop.start(planting, "etl", "--date", shop.DAY)
        shop.wait(planting)
    forget_data(planting)


INCIDENT: Final = Incident(
    does="delivers a day of sales a third of which have a negative amount: nothing of it is published",
    ends="the day is delivered again and published, and the tables are removed",
    touches=("spark-master",),
    alert=Alert(ALERT, OF_ENVIRONMENT),
    panel=Panel(
        "data-quality",
        "Runs rejected",
        f"sum by (pipeline_name) (pipeline_quality_breaches_total{{{OF_ENVIRONMENT}}}) > 0",
    ),
    cause=Cause(EXPECTATION, f'ALERTS{{alertname="{ALERT}", pipeline_expectation="{EXPECTATION}", {OF_ENVIRONMENT}}}'),
    prepare=shop.install,
    plant=plant,
    undo=undo,
    service="spark-app",
)
