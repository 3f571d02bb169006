"""From which columns those of the tables of a run are computed, as the run has recorded it."""

from collections.abc import Sequence
from dataclasses import dataclass

from spark_app.report.limits import Limits
from spark_app.report.scope import Scope
from spark_app.runs.column_lineage import Origin


@dataclass(frozen=True, slots=True)
class Columns:
    """A table and its columns with those that each comes from; `total` counts columns that are not listed, too."""

    table: str
    shown: list[tuple[str, Sequence[Origin]]]
    total: int


def columns(scope: Scope, limits: Limits) -> list[Columns]:
    """The tables that a run declares; none of another application."""
    found = scope.run.columns if scope.run else []
    return [Columns(each.table, list(each.columns.items())[: limits.columns], len(each.columns)) for each in found]
