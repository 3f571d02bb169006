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
DRIFTED: Final = "2024-01-06"
ROWS: Final = 1000
CONFIG: Final = {
    "history_days": 5,
    "held_out_days": 1,
    "folds": 2,
    "bootstrap": 10,
    "gate": {"resamples": 100, "lift": 1, "calibration": 0.3},
}


def prepare(planting: Planting) -> None:
    """Publishes days, the last with amounts five times as large; trains a model on the others, and promotes it."""
    shop.install(planting)
    planting.docker.write(MASTER, f"{planting.folder}/config/ml/incident_returns.yml", json.dumps(CONFIG).encode())
    for day in DAYS:
        shop.deliver_day(planting, day, shop.sales(day, rows=ROWS))
    shop.deliver_day(planting, DRIFTED, shop.sales(DRIFTED, rows=ROWS, amount=100))
    shop.start(planting, "etl", "--from", DAYS[0], "--to", DRIFTED)
    shop.wait(planting)
    shop.start(planting, "ml", "--date", DAYS[-1])
    shop.wait(planting)


def plant(planting: Planting) -> None:
    """Scores the day."""
    shop.start(planting, "ml", "score", "--date", DRIFTED)


def undo(planting: Planting) -> None:
    """Scores a day that has not drifted, so that the alert ends; then removes tables and model."""
    planting.end_programs()
    if shop.is_installed(planting):
        shop.start(planting, "ml", "score", "--date", DAYS[-1])
        shop.wait(planting)
    forget_data(planting)


INCIDENT: Final = Incident(
    does="scores a day whose amounts are five times those of the days that the model was trained on",
    ends="a day that is like those is scored, and tables and model are removed",
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
