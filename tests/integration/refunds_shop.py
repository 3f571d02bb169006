"""A shop with some days of sales and refunds, and its model: trained, judged and promoted in the session of tests."""

from typing import Any, Final

from spark_app.execution.run import load_jobs
from spark_app.execution.training import Phase, run_phase
from spark_app.models import registry
from spark_app.runs import model_card
from spark_app.runs.model_card import ModelCard
from tests import shop_rows
from tests.integration.home import Home
from tests.shop_rows import DAY, FIRST

MODEL: Final = "ml.refunds"
DAYS: Final = [FIRST + age * DAY for age in range(6)]
HELD_OUT: Final = DAYS[4]
ROWS: Final = 4_000
QUICK: Final[dict[str, Any]] = {
    "history_days": len(DAYS),
    "held_out_days": 1,
    "folds": 2,
    "bootstrap": 20,
    "candidates": {
        "logistic_regression": {"regParam": [0.003], "maxIter": [30]},
        "random_forest": None,
        "gradient_boosted_trees": None,
    },
}
OPEN: Final = {"margin": 0, "max_age_days": 0, "lift": 1, "slice_loss": 1, "calibration": 1}
"""A gate that refuses nothing but a worse version."""


def sell(home: Home, rows: int = ROWS) -> None:
    """Gives a home six days with so many sales each, and their refunds."""
    home.warehouse.create(shop_rows.sold(home.spark, *DAYS, rows=rows), "transactions", "sales")
    home.warehouse.create(shop_rows.refunded(home.spark, *DAYS, rows=rows), "refund_events", "refunds")


def train(home: Home) -> Home:
    """Gives a home six days of sales, and a model that was trained and promoted; returns it."""
    sell(home)
    home.configure(MODEL, **QUICK)
    do(home, "run")
    return home


def do(home: Home, phase: Phase, **options: Any) -> ModelCard | None:
    """Runs a phase as `spark-app ml` does, and returns the card that it left."""
    with home.application("spark-app ml") as application:
        [job] = load_jobs(home.settings, "ml", [MODEL])
        run_phase(application, job, phase, **options)
    [result] = application.results
    return model_card.read(result.folder) if (result.folder / model_card.CARD).exists() else None


def production(home: Home) -> int | None:
    """The number of the version in production."""
    found = registry.production(home.warehouse, MODEL)
    return None if found is None else found.number
