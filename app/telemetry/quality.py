"""Records what quality checks found: figures per promise, and nulls per column."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.telemetry import names
from app.telemetry.names import Attribute
from app.telemetry.runs import Run


@dataclass(frozen=True, slots=True)
class PromiseFigures:
    """What was found about one promise on one table in one run.

    The threshold is the share of rows (0 to 1) that may break the promise, or None where it is only watched.
    """

    table: str
    promise: str
    rows_checked: int
    violations: int
    threshold: float | None = None
    is_breached: bool = False

    @property
    def violation_ratio(self) -> float | None:
        """The share of the checked rows that break the promise; None of no rows."""
        return self.violations / self.rows_checked if self.rows_checked else None


def declare(run: Run, *, table: str, promises: Iterable[str]) -> None:
    """Starts the counters of promises at 0, before anything is counted: so that even a first breach is an increase."""
    for promise in promises:
        for metric in (names.QUALITY_CHECKED, names.QUALITY_VIOLATIONS, names.QUALITY_BREACHES):
            run.measure(metric, 0, {names.TABLE: table, names.PROMISE: promise})
    run.export_metrics()


def record_promises(run: Run, figures: Iterable[PromiseFigures]) -> None:
    """Counts the rows checked and in violation, states ratio and threshold, and counts a breach."""
    for figure in figures:
        labels: dict[Attribute, str] = {names.TABLE: figure.table, names.PROMISE: figure.promise}
        run.measure(names.QUALITY_CHECKED, figure.rows_checked, labels)
        run.measure(names.QUALITY_VIOLATIONS, figure.violations, labels)
        run.measure(names.QUALITY_BREACHES, int(figure.is_breached), labels)
        if figure.violation_ratio is not None:
            run.measure(names.QUALITY_VIOLATION, figure.violation_ratio, labels)
        if figure.threshold is not None:
            run.measure(names.QUALITY_THRESHOLD, figure.threshold, labels)


def record_nulls(run: Run, *, table: str, nulls: Mapping[str, int]) -> None:
    """Counts the rows without a value, per column."""
    for column, rows in nulls.items():
        run.measure(names.QUALITY_NULLS, rows, {names.TABLE: table, names.COLUMN: column})
