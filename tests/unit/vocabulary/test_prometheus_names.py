import pytest

from spark_app.vocabulary import names
from spark_app.vocabulary.names import Attribute, Metric
from spark_app.vocabulary.prometheus_names import label, series


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (names.RUNS, "pipeline_runs_total"),
        (names.RUN_DURATION, "pipeline_run_duration_seconds"),
        (names.LAST_SUCCESS, "pipeline_run_last_success_timestamp_seconds"),
        (names.READ, "pipeline_rows_read_total"),
        (names.READ_BYTES, "pipeline_bytes_read_total"),
        (names.FRESHNESS, "pipeline_data_freshness_seconds"),
        (names.QUALITY_VIOLATIONS, "pipeline_quality_violations_total"),
        (names.QUALITY_VIOLATION, "pipeline_quality_violation_ratio"),
    ],
    ids=lambda case: case.name if isinstance(case, Metric) else "",
)
def test_a_series_has_the_unit_and_the_kind_in_its_name(metric: Metric, name: str) -> None:
    """Units in braces are dropped, a unit in the name is not repeated, counters end in total, shares in ratio."""
    assert series(metric) == name


def test_no_two_metrics_become_one_series() -> None:
    """Different metrics of the catalogue have different series."""
    made = [series(metric) for metric in names.METRICS]
    assert len(made) == len(set(made))


def test_an_unknown_unit_is_an_error() -> None:
    """A guess would make a panel without data."""
    with pytest.raises(KeyError, match="ms"):
        series(Metric("pipeline.delay", "gauge", "ms", "How late", (names.PIPELINE,)))


@pytest.mark.parametrize(
    ("attribute", "name"),
    [
        (names.PIPELINE, "pipeline_name"),
        (names.OUTCOME, "pipeline_run_outcome"),
        (names.ENVIRONMENT, "deployment_environment_name"),
    ],
    ids=lambda case: case.name if isinstance(case, Attribute) else "",
)
def test_dots_of_a_label_become_underscores(attribute: Attribute, name: str) -> None:
    """A label keeps its words."""
    assert label(attribute) == name
