"""A model whose rows are no longer like those that it was trained on."""

import json
from typing import Final

from spark_app.annexes.incidents import shop
from spark_app.annexes.incidents.incident import OF_ENVIRONMENT, Alert, Cause, Incident, Panel
from spark_app.annexes.incidents.planting import MASTER, Planting, forget_data

ALERT: Final = "ModelFeatureDrift"
FEATURE: Final = "amount"
DAYS: Final = ("2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05")
"""One for the history of customers, one to train on, one between, one to judge, and the newest."""
LAST: Final = DAYS[-1]
ROWS: Final = 1000
CONFIG: Final = {
    "history_days": 5,
    "held_out_days": 1,
    "folds": 2,
    "bootstrap": 10,
    "gate": {"resamples": 100, "lift": 1, "calibration": 0.3},
}


def prepare(planting: Planting) -> None:
    """Trains a model on some days, promotes it, and publishes the newest day anew with amounts five times as large."""
    shop.install(planting)
    planting.docker.write(MASTER, f"{planting.folder}/config/ml/incident_returns.yml", json.dumps(CONFIG).encode())
    for day in DAYS:
        shop.deliver_day(planting, day, shop.sales(day, rows=ROWS))
    shop.start(planting, "etl", "--from", DAYS[0], "--to", LAST)
    shop.wait(planting)
    shop.start(planting, "ml", "--date", LAST)
    shop.wait(planting)
    shop.deliver_day(planting, LAST, shop.sales(LAST, rows=ROWS, amount=100))
    shop.start(planting, "etl", "--date", LAST)
    shop.wait(planting)


def plant(planting: Planting) -> None:
    """Scores the day."""
    shop.start(planting, "ml", "score", "--date", LAST)


def undo(planting: Planting) -> None:
    """Delivers the day as it was and scores it again, so that the alert ends; then removes tables and model."""
    planting.end_programs()
    if shop.is_installed(planting):
        shop.deliver_day(planting, LAST, shop.sales(LAST, rows=ROWS))
        shop.start(planting, "etl", "--date", LAST)
        shop.wait(planting)
        shop.start(planting, "ml", "score", "--date", LAST)
        shop.wait(planting)
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
