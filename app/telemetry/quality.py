"""Records what quality checks found: figures per promise, and nulls per column."""

from collections.abc import Iterable, Mapping

from app.figures import Figure
from app.telemetry import names
from app.telemetry.names import Attribute
from app.telemetry.runs import Run


def declare(run: Run, *, table: str, promises: Iterable[str]) -> None:
    """Starts the counters of promises at 0, before anything is counted: so that even a first breach is an increase."""
    for promise in promises:
        for metric in (names.QUALITY_CHECKED, names.QUALITY_VIOLATIONS, names.QUALITY_BREACHES):
            run.measure(metric, 0, {names.TABLE: table, names.PROMISE: promise})
    run.export_metrics()


def record_promises(run: Run, figures: Iterable[Figure], *, table: str) -> None:
    """Counts the rows checked and in violation, states ratio and threshold, and counts a breach.

    Figures that are no share are left out; no rows have no ratio.
    """
    for figure in figures:
        if figure.broken is None or figure.total is None:
            continue
        labels: dict[Attribute, str] = {names.TABLE: table, names.PROMISE: figure.promise}
        run.measure(names.QUALITY_CHECKED, figure.total, labels)
        run.measure(names.QUALITY_VIOLATIONS, figure.broken, labels)
        run.measure(names.QUALITY_BREACHES, int(figure.is_breached), labels)
        if figure.total:
            run.measure(names.QUALITY_VIOLATION, figure.value, labels)
        if figure.limit is not None:
            run.measure(names.QUALITY_THRESHOLD, figure.limit, labels)


def record_nulls(run: Run, *, table: str, nulls: Mapping[str, int]) -> None:
    """Counts the rows without a value, per column."""
    for column, rows in nulls.items():
        run.measure(names.QUALITY_NULLS, rows, {names.TABLE: table, names.COLUMN: column})
