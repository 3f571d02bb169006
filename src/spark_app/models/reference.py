"""Reference rows of a version: a few rows of the tables that it was trained on, and the features of them.

By their values a program finds out whether it computes the features that a version was trained on, whatever became of
the code since. At training the same rows show whether a feature knows what is not known yet when it is served.
"""

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, AtomicType, DateType, StructField, StructType

from spark_app.errors import FeatureLeakError, InputError
from spark_app.models.inputs import DAY, Examples, FeatureSet, in_days
from spark_app.models.registry import Version
from spark_app.warehouse.tables import Warehouse

FOLDER: Final = "reference"
"""The folder of an artifact with its reference rows."""
FEATURES: Final = "features"
DATE: Final = "date"
MAX_ROWS: Final = 1_000
"""So many rows of all tables with the entity, and of each other table."""
TOLERANCE: Final = 1e-9
"""The last digits of a logarithm or a sine differ from one Java to another."""


@dataclass(frozen=True)
class LocalRows:
    """Rows on the driver."""

    schema: StructType
    rows: Sequence[Row]


@dataclass(frozen=True)
class Reference:
    """The reference rows of a version.

    Attributes:
        date: The day of the examples whose features they are.
        tables: By name the rows of each table: of some entities, on that day and those around it.
        features: Their features.
    """

    date: datetime.date
    tables: Mapping[str, LocalRows]
    features: LocalRows

    def values(self, examples: Examples) -> list[tuple[str, dict[str, Any]]]:
        """By example its features, of which numbers are cut to the digits that every machine agrees on."""
        found = _by_key(self.features, examples)
        return [(key, {name: _cut(value) for name, value in found[key].items()}) for key in sorted(found)]


def sample(
    warehouse: Warehouse,
    versions: Mapping[str, int | None],
    inputs: FeatureSet,
    *,
    date: datetime.date,
) -> Reference:
    """The reference rows of tables at versions; the same rows each time.

    Args:
        warehouse: The tables.
        versions: The versions of the tables that the features are computed from.
        inputs: Computes the features.
        date: A day with examples.
    """
    since = date - inputs.window_days * DAY
    around = {
        name: in_days(warehouse.table(name, version=version), warehouse.tables[name].day, since, date + DAY)
        for name, version in versions.items()
    }
    entity, entities = inputs.examples.entity, _entities(around, inputs.examples, date)
    tables = {
        name: rows.where(F.col(entity).isin(entities)) if entity in rows.columns else _first(rows)
        for name, rows in around.items()
    }
    collected = {name: LocalRows(rows.schema, rows.collect()) for name, rows in tables.items()}
    return Reference(date, collected, _computed(warehouse, inputs, collected, date))


def require_no_leak(warehouse: Warehouse, inputs: FeatureSet, reference: Reference) -> None:
    """Computes the features of some examples, one of an entity, from what serving would have.

    That are the tables as of the end of the day before, in which the examples are not, and of those with the entity
    the rows of the entities asked about.

    Raises:
        FeatureLeakError: A feature has another value than with all rows: it knows what comes later, or of others.
    """
    date, examples = reference.date, inputs.examples
    found = _by_key(reference.features, examples)
    for key, features in _by_key(_served(warehouse, inputs, reference), examples).items():
        for name, value in features.items():
            if not _is_same(found[key][name], value):
                raise FeatureLeakError(
                    f"{name} knows the future: for {examples.key} {key} it is {found[key][name]}, but {value} from "
                    f"what serving has, the columns of {examples.table} that are known at its instant, and the tables "
                    f"as of the end of {date - DAY}, of which those with {examples.entity} only with the rows of who "
                    "is asked about: compute it from those alone"
                )


def write(warehouse: Warehouse, reference: Reference, artifact: str) -> None:
    """Adds the reference rows to an artifact, as one row of one Parquet file."""
    parts = dict(reference.tables) | {FEATURES: reference.features}
    fields = [StructField(name, ArrayType(part.schema)) for name, part in parts.items()]
    schema = StructType([StructField(DATE, DateType()), *fields])
    row = (reference.date, *(list(part.rows) for part in parts.values()))
    frame = warehouse.spark.createDataFrame([row], schema).coalesce(1)
    frame.write.mode("overwrite").parquet(f"{artifact}/{FOLDER}")


def read(warehouse: Warehouse, artifact: str) -> Reference | None:
    """The reference rows of an artifact; None if it has none, as those of older programs."""
    try:
        frame = warehouse.spark.read.parquet(f"{artifact}/{FOLDER}")
    except AnalysisException:
        return None
    [row] = frame.collect()
    parts = {
        field.name: LocalRows(field.dataType.elementType, row[field.name])
        for field in frame.schema
        if isinstance(field.dataType, ArrayType) and isinstance(field.dataType.elementType, StructType)
    }
    return Reference(row[DATE], parts, parts.pop(FEATURES))


def difference(warehouse: Warehouse, version: Version, inputs: FeatureSet) -> str | None:
    """How the features that a program computes differ from those that a version was trained on; None if they do not.

    Only values count: code that was rewritten and computes the same features is no difference.

    Args:
        warehouse: The tables; of these, only the declaration is used.
        version: The version.
        inputs: Computes the features.
    """
    reference = read(warehouse, version.artifact)
    if reference is None:
        return "it has no reference rows, which an older program did not keep"
    none = LocalRows(StructType(), [])
    tables = {name: reference.tables.get(name, none) for name in inputs.reads}
    now = _by_key(_computed(warehouse, inputs, tables, reference.date), inputs.examples)
    for key, features in _by_key(reference.features, inputs.examples).items():
        if key not in now:
            return f"{inputs.examples.key} {key} had features and has none now"
        for name, value in features.items():
            if name in version.card.features and not _is_same(value, now[key].get(name, "missing")):
                is_now = now[key].get(name, "missing")
                return f"{name} of {inputs.examples.key} {key} was {value} and is {is_now} now"
    return None


def require_same(warehouse: Warehouse, version: Version, inputs: FeatureSet) -> None:
    """Lets nothing be scored with a version whose features a program does not compute; see `difference`.

    Raises:
        InputError: It computes other ones.
    """
    found = difference(warehouse, version, inputs)
    if found is not None:
        commit = f", or check out {version.card.git_commit}, which trained it" if version.card.git_commit else ""
        raise InputError(
            f"version {version.number} of {version.model} was trained on other features than this program computes: "
            f"{found}: train a new version with `spark-app ml`{commit}"
        )


def _entities(tables: Mapping[str, DataFrame], examples: Examples, date: datetime.date) -> list[str]:
    """Entities with an example on a day: first those in most tables, and with most rows, while they fit."""
    entity = examples.entity
    wanted = tables[examples.table].where(F.to_date(examples.at) == F.lit(date)).select(entity).distinct()
    known = [
        table.select(entity, F.lit(name).alias("table")) for name, table in tables.items() if entity in table.columns
    ]
    counts = reduce(DataFrame.union, known).groupBy(entity)
    counted = counts.agg(F.count_distinct("table").alias("tables"), F.count("table").alias("rows")).join(wanted, entity)
    ranked = counted.where(F.col("rows") <= MAX_ROWS).orderBy(F.desc("tables"), F.desc("rows"), entity)
    found, total = list[str](), 0
    for value, _, number in ranked.limit(MAX_ROWS).collect():
        total += number
        if total > MAX_ROWS:
            break
        found.append(value)
    return found


def _first(rows: DataFrame) -> DataFrame:
    """The first rows of a table without the entity, in the order of its columns."""
    order = [field.name for field in rows.schema if isinstance(field.dataType, AtomicType)]
    return rows.orderBy(*order).limit(MAX_ROWS)


def _computed(
    warehouse: Warehouse, inputs: FeatureSet, tables: Mapping[str, LocalRows], date: datetime.date
) -> LocalRows:
    frames = {name: _frame(warehouse, name, rows) for name, rows in tables.items()}
    found = inputs.of_days(frames, warehouse.tables, date, date)
    return LocalRows(found.schema, found.collect())


def _frame(warehouse: Warehouse, name: str, rows: LocalRows) -> DataFrame:
    """Rows of a table, with the columns that the program declares by now."""
    frame = warehouse.spark.createDataFrame(list(rows.rows), rows.schema).coalesce(1)
    return frame.to(warehouse.tables[name].schema)


def _served(warehouse: Warehouse, inputs: FeatureSet, reference: Reference) -> LocalRows:
    """The features of the first example on the day of every other entity, as requests about them are answered."""
    examples, tables = inputs.examples, reference.tables
    key, entity, at = examples.keys
    newest_first = sorted(reference.features.rows, key=lambda row: (row[at], row[key]), reverse=True)
    first = {row[entity]: row[key] for row in newest_first}
    chosen = {first[each] for each in sorted(first)[::2]}
    rows = tables[examples.table]
    asked = LocalRows(rows.schema, [row for row in rows.rows if row[key] in chosen])
    frames = {
        name: _frame(
            warehouse, name, LocalRows(table.schema, _before(table.rows, warehouse.tables[name].day, reference.date))
        )
        for name, table in tables.items()
    }
    asked_about = _frame(warehouse, examples.table, asked).select(*examples.known)
    found = inputs.of_requests(asked_about, frames, warehouse.tables, [reference.date])
    return LocalRows(found.schema, found.collect())


def _before(rows: Sequence[Row], column: str | None, date: datetime.date) -> list[Row]:
    return [row for row in rows if column is None or row[column] < date]


def _by_key(features: LocalRows, examples: Examples) -> dict[str, dict[str, Any]]:
    """The features of each example by its key."""
    rows = [row.asDict() for row in features.rows]
    return {row[examples.key]: {name: row[name] for name in row if name not in examples.keys} for row in rows}


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


def _cut(value: Any) -> Any:
    return f"{value:.8g}" if isinstance(value, float) else value
