"""Records the results of quality checks: rows per expectation, and nulls per column."""

from collections.abc import Iterable, Mapping

from spark_app.quality.results import ExpectationResult
from spark_app.telemetry.run_telemetry import RunTelemetry
from spark_app.vocabulary import names
from spark_app.vocabulary.names import Attribute


def declare_expectations(run: RunTelemetry, *, table: str, expectations: Iterable[str]) -> None:
    """Starts the counters of expectations at 0 before anything is counted, so that a first breach is an increase."""
    for expectation in expectations:
        for metric in (names.QUALITY_CHECKED, names.QUALITY_VIOLATIONS, names.QUALITY_BREACHES):
            run.measure(metric, 0, {names.TABLE: table, names.EXPECTATION: expectation})
    run.export_metrics()


def record_expectations(run: RunTelemetry, results: Iterable[ExpectationResult], *, table: str) -> None:
    """Counts the checked and the violating rows and the breaches, and sets ratio and threshold.

    Results that are not a share of rows are left out; a ratio of no rows is not set.
    """
    for result in results:
        if result.violations is None or result.total is None:
            continue
        labels: dict[Attribute, str] = {names.TABLE: table, names.EXPECTATION: result.expectation}
        run.measure(names.QUALITY_CHECKED, result.total, labels)
        run.measure(names.QUALITY_VIOLATIONS, result.violations, labels)
        run.measure(names.QUALITY_BREACHES, int(result.is_breached), labels)
        if result.total:
            run.measure(names.QUALITY_VIOLATION, result.value, labels)
        if result.limit is not None:
            run.measure(names.QUALITY_THRESHOLD, result.limit, labels)


def record_nulls(run: RunTelemetry, *, table: str, nulls: Mapping[str, int]) -> None:
    """Counts the rows without a value, per column."""
    for column, rows in nulls.items():
        run.measure(names.QUALITY_NULLS, rows, {names.TABLE: table, names.COLUMN: column})
