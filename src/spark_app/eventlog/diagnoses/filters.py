"""The filters that stand directly above scans, and the rows that they let pass."""

from collections.abc import Iterable, Mapping

from spark_app.eventlog.model.operators import Operator, value
from spark_app.eventlog.model.plan_names import OUTPUT_ROWS


def filters_of(operators: Iterable[Operator]) -> Mapping[tuple[int, ...], Operator]:
    """The filters whose rows come from a scan alone, by the numbers of the scan."""
    return {scan.accumulables: each for each in operators if (scan := _filtered(each)) is not None}


def rows_of_filter(scan: Operator, above: Operator | None) -> tuple[float | None, float | None]:
    """The rows of a scan, and those that the filter above it let pass: without a number, none did."""
    return value(scan, OUTPUT_ROWS), None if above is None else value(above, OUTPUT_ROWS) or 0.0


def _filtered(operator: Operator) -> Operator | None:
    """The scan whose rows a filter takes; None for another operator, or where others are in between."""
    inputs = operator.inputs
    if operator.name != "Filter" or len(inputs) != 1:
        return None
    below = inputs[0]
    while len(below.inputs) == 1 and (below.is_wrapper or below.name == "ColumnarToRow"):
        below = below.inputs[0]
    return None if below.inputs else below
