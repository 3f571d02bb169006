from typing import Final

import pytest

from app.figures import FRESHNESS, Figure
from app.telemetry import quality
from tests.unit.telemetry.memory import InMemory

KEY: Final = ("etl.daily_sales", "amount_in_range", "bronze")
UNITS: Final = {
    "pipeline.quality.rows.checked": "{row}",
    "pipeline.quality.violations": "{row}",
    "pipeline.quality.violation": "1",
    "pipeline.quality.threshold": "1",
    "pipeline.quality.breaches": "{breach}",
    "pipeline.quality.nulls": "{row}",
}


@pytest.fixture
def told(telemetry: InMemory) -> InMemory:
    """A run whose one promise is breached."""
    with telemetry.run() as run:
        quality.declare(run, table="bronze", promises=["amount_in_range"])
        figures = [Figure("amount_in_range", 0.15, 0.1, 30, 200), Figure(FRESHNESS, 9e4, 8e4)]
        quality.record_promises(run, figures, table="bronze")
        quality.record_nulls(run, table="bronze", nulls={"amount": 4, "status": 0})
    return telemetry


def test_figures_have_exactly_these_names_units_and_values(told: InMemory) -> None:
    """Rows checked and in violation, their ratio, the threshold, the breach; nulls per column, 0 if there are none."""
    found = {metric.name: metric.unit for metric in told.metrics if metric.name.startswith("pipeline.quality.")}
    assert found == UNITS
    assert told.values("pipeline.quality.rows.checked") == {KEY: 200}
    assert told.values("pipeline.quality.violations") == {KEY: 30}
    assert told.values("pipeline.quality.violation") == {KEY: 0.15}
    assert told.values("pipeline.quality.threshold") == {KEY: 0.1}
    assert told.values("pipeline.quality.breaches") == {KEY: 1}
    assert told.values("pipeline.quality.nulls") == {
        ("amount", "etl.daily_sales", "bronze"): 4,
        ("status", "etl.daily_sales", "bronze"): 0,
    }


def test_a_declared_promise_is_sent_as_0_first(told: InMemory) -> None:
    """An alert on breaches fires on an increase, which needs a value before the first breach."""
    told.telemetry.close()
    metrics = told.metrics_kept.kept[1].resource_metrics[0].scope_metrics[0].metrics
    found = {metric.name: [getattr(point, "value", None) for point in metric.data.data_points] for metric in metrics}
    assert found["pipeline.quality.breaches"] == [0]


def test_no_rows_have_no_ratio_and_no_limit_no_threshold(telemetry: InMemory) -> None:
    """Nothing of nothing is not 0 percent; a promise that is only watched has no threshold to draw."""
    with telemetry.run() as run:
        quality.record_promises(run, [Figure("amount_in_range", 0, None, 0, 0)], table="bronze")
    assert telemetry.values("pipeline.quality.rows.checked") == {KEY: 0}
    assert telemetry.values("pipeline.quality.violation") == {}
    assert telemetry.values("pipeline.quality.threshold") == {}
