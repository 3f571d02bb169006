from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from spark_app.engine import expectation_metrics
from spark_app.quality.results import FRESHNESS, ExpectationResult
from tests.unit.telemetry.memory import InMemory

KEY: Final = ("amount_in_range", "etl.daily_sales", "bronze")
UNITS: Final = {
    "pipeline.quality.rows.checked": "{row}",
    "pipeline.quality.violations": "{row}",
    "pipeline.quality.violation": "1",
    "pipeline.quality.threshold": "1",
    "pipeline.quality.breaches": "{breach}",
    "pipeline.quality.nulls": "{row}",
}


@pytest.fixture
def telemetry(tmp_path: Path) -> Iterator[InMemory]:
    """Telemetry that keeps what it would send."""
    memory = InMemory(tmp_path)
    yield memory
    memory.telemetry.close()


@pytest.fixture
def breached(telemetry: InMemory) -> InMemory:
    """A run whose one expectation is breached."""
    with telemetry.run() as run:
        expectation_metrics.declare_expectations(run, table="bronze", expectations=["amount_in_range"])
        figures = [ExpectationResult("amount_in_range", 0.15, 0.1, 30, 200), ExpectationResult(FRESHNESS, 9e4, 8e4)]
        expectation_metrics.record_expectations(run, figures, table="bronze")
        expectation_metrics.record_nulls(run, table="bronze", nulls={"amount": 4, "status": 0})
    return telemetry


def test_results_have_exactly_these_names_units_and_values(breached: InMemory) -> None:
    """Checked and violating rows, their ratio, the threshold and the breach; nulls per column, 0 included."""
    units = {metric.name: metric.unit for metric in breached.metrics if metric.name.startswith("pipeline.quality.")}
    assert units == UNITS
    assert breached.values("pipeline.quality.rows.checked") == {KEY: 200}
    assert breached.values("pipeline.quality.violations") == {KEY: 30}
    assert breached.values("pipeline.quality.violation") == {KEY: 0.15}
    assert breached.values("pipeline.quality.threshold") == {KEY: 0.1}
    assert breached.values("pipeline.quality.breaches") == {KEY: 1}
    assert breached.values("pipeline.quality.nulls") == {
        ("amount", "etl.daily_sales", "bronze"): 4,
        ("status", "etl.daily_sales", "bronze"): 0,
    }


def test_a_declared_expectation_starts_at_0(breached: InMemory) -> None:
    """An alert on breaches fires on an increase, which needs a value before the first breach."""
    breached.telemetry.close()
    metrics = breached.metrics_kept.kept[1].resource_metrics[0].scope_metrics[0].metrics
    values = {metric.name: [getattr(point, "value", None) for point in metric.data.data_points] for metric in metrics}
    assert values["pipeline.quality.breaches"] == [0]


def test_no_rows_have_no_ratio_and_no_limit_has_no_threshold(telemetry: InMemory) -> None:
    """A ratio of no rows is undefined; an expectation without a limit has no threshold to draw."""
    with telemetry.run() as run:
        expectation_metrics.record_expectations(
            run, [ExpectationResult("amount_in_range", 0, None, 0, 0)], table="bronze"
        )
    assert telemetry.values("pipeline.quality.rows.checked") == {KEY: 0}
    assert telemetry.values("pipeline.quality.violation") == {}
    assert telemetry.values("pipeline.quality.threshold") == {}
