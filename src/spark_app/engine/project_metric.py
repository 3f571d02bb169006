"""Metrics of a project: a number about the rows that a run has published."""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType, StructType

from spark_app.engine.code_location import CodeLocation, columns_of
from spark_app.engine.context import Context
from spark_app.vocabulary import names
from spark_app.vocabulary.names import Attribute

NAME: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
VALUE: Final = re.compile(r"(?P<function>sum|avg|min|max|count)\((?P<column>\*|\w+)\)")
OWN: Final = {"spark", "otel", "service", *(metric.name.partition(".")[0] for metric in names.METRICS)}
"""What the names of metrics of this program begin with."""
MAX_SERIES: Final = 100
"""Combinations of labels of one metric in a run; one with more has too many for a label."""


class Metric:
    """A gauge of a project, measured of the rows of a day when a table has published them.

    Attributes:
        name: Its name in OpenTelemetry, without the unit: `shop.revenue`. The label `pipeline.name` is always there.
        function, column: What is measured: `sum` of `total_amount`; `count` of `*` counts rows.
        labels: The columns whose values are its labels.
        attributes: The labels, as the catalogue has them.
        entry: The metric, as the catalogue has them.
        location: Where it is declared.
    """

    def __init__(self, name: str, value: str, *, unit: str, meaning: str, labels: str | Sequence[str] = ()) -> None:
        """Declares a metric.

        Args:
            name: Its name, in lower case and with a dot: `shop.revenue`.
            value: `sum(column)`, `avg(...)`, `min(...)`, `max(...)`, `count(column)` or `count(*)`.
            unit: The unit in UCUM: `s`, `By`, `1`, or in braces: `{EUR}`.
            meaning: What it is, in a line.
            labels: The column, or columns, with few values each.

        Raises:
            DeclarationError: The name is one of this program, or none; the value cannot be read.
        """
        self.name, self.location = name, CodeLocation.of_caller()
        self.labels = columns_of(labels)
        if not NAME.fullmatch(name):
            raise self.location.error(f"{name!r} is no name of a metric: use lower case and a dot, as in shop.revenue")
        if name.partition(".")[0] in OWN:
            raise self.location.error(
                f"metrics of spark-app begin with {name.partition('.')[0]}: name {name} otherwise"
            )
        read = VALUE.fullmatch(value.replace(" ", ""))
        if read is None:
            raise self.location.error(f"{name}: {value!r} is no sum, avg, min, max or count of a column: sum(amount)")
        self.function, self.column = read["function"], read["column"]
        self.attributes = [Attribute(label, str, f"the column {label}", is_label=True) for label in self.labels]
        self.entry = names.Metric(name, "gauge", unit, meaning, (names.PIPELINE, *self.attributes))

    def require_columns(self, schema: StructType) -> None:
        """Checks that a table has its columns.

        Raises:
            DeclarationError: One is not there, or is no number.
        """
        wanted = self.labels if self.column == "*" else (self.column, *self.labels)
        self.location.require(wanted, schema.names, f"{self.name}: the table")
        if self.function != "count" and not isinstance(schema[self.column].dataType, NumericType):
            raise self.location.error(f"{self.name}: {self.function} needs a number, and {self.column} is none")


def measure(context: Context, metrics: Sequence[Metric], rows: DataFrame) -> None:
    """Measures metrics of rows, in one pass for those with the same labels; what fails costs a remark.

    Args:
        context: The run.
        metrics: What is measured.
        rows: The rows of the day, as they are published.
    """
    errors = context.telemetry.errors
    for labels, group in groupby(sorted(metrics, key=lambda metric: metric.labels), key=lambda metric: metric.labels):
        chosen = list(group)
        shown = ", ".join(metric.name for metric in chosen)
        errors.guard(f"{shown} not measured", _measure, context, labels, chosen, rows)


def _measure(context: Context, labels: tuple[str, ...], metrics: Sequence[Metric], rows: DataFrame) -> None:
    values = [F.expr(f"{each.function}({_quoted(each.column)})").cast("double").alias(each.name) for each in metrics]
    keys = [F.coalesce(F.col(label).cast("string"), F.lit("null")).alias(label) for label in labels]
    found = rows.groupBy(*keys).agg(*values).limit(MAX_SERIES + 1).collect()
    if len(found) > MAX_SERIES:
        raise ValueError(f"more than {MAX_SERIES} values of {', '.join(labels)}: take columns with few")
    for row in found:
        for metric in metrics:
            if row[metric.name] is not None:  # of no rows there is a count, and no sum
                of_row = {attribute: row[attribute.name] for attribute in metric.attributes}
                context.telemetry.measure(metric.entry, row[metric.name], of_row)


def _quoted(column: str) -> str:
    return column if column == "*" else f"`{column}`"
