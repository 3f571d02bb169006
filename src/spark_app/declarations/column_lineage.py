"""Leaves in the folder of a run of which columns those of a declared table are made."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pyspark.sql import DataFrame

from spark_app.engine.context import Context
from spark_app.runs import column_lineage
from spark_app.runs.column_lineage import TableColumns
from spark_app.spark import plan_columns

RAW: Final = " (raw)"
TOPIC: Final = " (topic)"
"""What follows the name of a source or a topic, which may be that of a table, too."""


class FunctionInput(NamedTuple):
    """What a function got, and its path; None for what has none, such as a topic."""

    rows: DataFrame
    path: str | None


def of_tables(context: Context, tables: Mapping[str, DataFrame]) -> dict[str, FunctionInput]:
    """Rows of tables of the warehouse, by their names."""
    return {name: FunctionInput(rows, context.warehouse.path(name)) for name, rows in tables.items()}


def record(
    context: Context, table: str, columns: Sequence[str], rows: DataFrame, inputs: Mapping[str, FunctionInput]
) -> None:
    """Records it by the plan of the rows; what cannot be found or written is noted, and the run goes on.

    Args:
        context: The run.
        table: The table.
        columns: Those that are declared.
        rows: What its function returned.
        inputs: What the function got, by name.
    """
    try:
        found = plan_columns.origins(rows, {name: each.rows for name, each in inputs.items()})
        paths = {name: each.path for name, each in inputs.items()}
        known = {name: found[name] for name in columns if name in found}
        added = TableColumns(table, context.warehouse.path(table), paths, known)
        column_lineage.add(context.telemetry.identity.folder, added)
    except Exception as error:  # noqa: BLE001 - a plan of a form that nobody has seen never makes a run fail
        context.note(f"no columns of {table} for the lineage: {error}")
