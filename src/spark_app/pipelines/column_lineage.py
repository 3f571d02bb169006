"""Leaves in the folder of a run of which columns those of a declared table are made."""

from collections.abc import Mapping
from typing import Final

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from spark_app.errors import InputError
from spark_app.pipeline.context import DailyContext
from spark_app.pipelines.declaration import Declared
from spark_app.runs import column_lineage
from spark_app.runs.column_lineage import TableColumns
from spark_app.spark import plan_columns

RAW: Final = " (raw)"
"""What follows the name of a source, which may be that of a table, too."""


def record(
    context: DailyContext,
    declared: Declared,
    rows: DataFrame,
    tables: Mapping[str, DataFrame],
    raw: DataFrame | None = None,
) -> None:
    """Records it by the plan of the rows; what cannot be found or written is noted, and the run goes on.

    Args:
        context: The run.
        declared: The table.
        rows: What its function returned.
        tables: The tables that the function got.
        raw: The rows of its source that the function got; a replay has them from the table itself.
    """
    try:
        inputs = dict(tables)
        places: dict[str, str | None] = {name: context.warehouse.path(name) for name in tables}
        if declared.source and raw is not None:
            name, root = f"{declared.source.name}{RAW}", context.settings.raw_path.rstrip("/")
            inputs[name] = raw
            places[name] = None if context.is_replay else f"{root}/{declared.source.name}"
        found = plan_columns.origins(rows, inputs)
        columns = {name: found[name] for name in declared.schema.names if name in found}
        added = TableColumns(declared.name, context.warehouse.path(declared.name), places, columns)
        column_lineage.add(context.run.identity.folder, added)
    except (InputError, LookupError, OSError, Py4JError, ValueError) as error:
        context.note(f"no columns of {declared.name} for the lineage: {error}")
