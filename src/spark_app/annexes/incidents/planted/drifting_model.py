"""A model whose rows are no longer like those that it was trained on."""

from typing import Final

from spark_app.annexes.incidents import shop
from spark_app.annexes.incidents.incident import OF_ENVIRONMENT, Alert, Cause, Incident, Panel
from spark_app.annexes.incidents.planting import Planting, forget_data

ALERT: Final = "ModelFeatureDrift"
FEATURE: Final = "amount"
DAYS: Final = ("2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05")
LAST: Final = "2024-01-06"
CONFIG: Final = (
    b'{"label_days": 0, "history_days": 5, "held_out_days": 1, "folds": 2, "bootstrap": 20, "gate": {"lift": 0}}'
)


def prepare(planting: Planting) -> None:
    """Trains a model on some days, promotes it, and publishes the day that it scores without fault."""
    shop.install(planting)
    planting.docker.write("spark-master", f"{planting.folder}/config/ml/incident_returns.yml", CONFIG)
    for day in (*DAYS, LAST):
        shop.deliver_day(planting, day, shop.sales(day))
    shop.run(planting, "etl", "--from", DAYS[0], "--to", LAST)
    shop.run(planting, "ml")


def plant(planting: Planting) -> None:
    """Delivers the day again with amounts five times as large, publishes it, and scores it."""
    shop.deliver_day(planting, LAST, shop.sales(LAST, amount=100))
    shop.start(planting, "etl", "--date", LAST)
    planting.wait_until(lambda: not planting.is_running(), "end of the day")
    shop.start(planting, "ml", "score", "--date", LAST)


def undo(planting: Planting) -> None:
    """Delivers the day as it was and scores it again, so that the alert ends; then removes tables and model."""
    planting.end_programs()
    if shop.is_installed(planting):
        shop.deliver_day(planting, LAST, shop.sales(LAST))
        shop.run(planting, "etl", "--date", LAST)
        shop.run(planting, "ml", "score", "--date", LAST)
    forget_data(planting)


INCIDENT: Final = Incident(
    does="scores a day whose amounts are five times those of the days that the model was trained on",
    ends="the day is delivered as it was and scored again, and tables and model are removed",
    touches=("spark-master",),
    alert=Alert(ALERT, OF_ENVIRONMENT),
    panel=Panel(
        "machine-learning",
        "Drift of features",
        f'max by (ml_feature) (ml_feature_drift_ratio{{ml_model_role="production", {OF_ENVIRONMENT}}}) > 0.25',
    ),
    cause=Cause(FEATURE, f'ALERTS{{alertname="{ALERT}", ml_feature="{FEATURE}", {OF_ENVIRONMENT}}}'),
    prepare=prepare,
    plant=plant,
    undo=undo,
    service="spark-app",
)
