"""What a project declares: sources and the functions that make tables, each with where it stands in its file."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, update_wrapper
from types import MappingProxyType
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

from spark_app.engine import history
from spark_app.engine.change_feed import ChangeFeed
from spark_app.engine.code_location import CodeLocation, columns_of, nearest, stored
from spark_app.engine.project_metric import Metric
from spark_app.quality.expectations import Expectation, Rule
from spark_app.settings import Settings, config_folder, load_settings
from spark_app.warehouse import schemas
from spark_app.warehouse.origin import DeclaredOrigin
from spark_app.warehouse.tables import Table

Transform = Callable[..., DataFrame]
TEXT: Final = StringType()
NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})
OF_SCHEMA: Final = ", which its schema has"
"""Why a function must return a column of the table or topic that it makes."""
Rules = Sequence[Rule] | Callable[[Settings], Sequence[Rule]]
"""What rows must meet, or what makes that of the settings; the names are the same whatever these are."""


@cache
def _shipped() -> Settings:
    """The settings that this program comes with, for names that are the same whatever the settings are."""
    return load_settings(config_folder())


class Source:
    """Raw rows of a day: from where it says, otherwise in files in `raw.path` below `<name>/date=YYYY-MM-DD/`.

    Attributes:
        name: Its name, and that of its folder where it says nothing else.
        origin: Where its rows come from; None for files in folders of days.
        schema: Its columns, as they are read.
        key: The columns that identify a row; of its versions one that is valid is published.
        newest: The columns that say which: of the first, then of the next, it has the largest value.
        oldest: The same, where it has the smallest.
        may_be_empty: Whether a day without rows is no error.
        delivered: Its columns under the names that they are delivered with.
        location: Where it is declared.
    """

    def __init__(
        self,
        name: str,
        origin: DeclaredOrigin | None = None,
        *,
        schema: str | StructType,
        key: str | Sequence[str],
        newest: str | Sequence[str] = (),
        oldest: str | Sequence[str] = (),
        may_be_empty: bool = False,
        columns: Mapping[str, str] = NO_NAMES,
    ) -> None:
        """Declares a source.

        Args:
            name: Its name, and that of its folder where it says nothing else.
            origin: Where its rows come from, by `files(...)`, `table(...)`, `jdbc(...)` or `kafka(...)`.
            schema: Its columns, as Spark writes them: `amount decimal(12, 2) COMMENT 'in EUR', ...`.
            key: The column, or columns, that identify a row.
            newest: The column, or columns, by whose largest value one version of a row is chosen.
            oldest: The same by the smallest value, where the first version counts, not the last.
            may_be_empty: Whether a day without rows is no error.
            columns: By columns of the schema, the names that they are delivered with where these are other ones:
                `{"order_id": "Order ID"}`.

        Raises:
            DeclarationError: The schema cannot be read, or lacks a column; or nothing says which version counts.
        """
        self.name, self.location, self.may_be_empty = name, CodeLocation.of_caller(), may_be_empty
        self.origin, self.schema = origin, stored(schema, self.location)
        for field in self.schema:
            if isinstance(field.dataType, ArrayType | MapType | StructType):
                raise self.location.error(
                    f"source {name}: {field.name} is {field.dataType.simpleString()}, and raw values are read as text: "
                    f"declare it as string, and let the function read it with F.from_json"
                )
        if origin is not None and not isinstance(origin, DeclaredOrigin):
            raise self.location.error(
                f"source {name}: {origin!r} does not say where rows come from: write files({origin!r}, ...), "
                f"table({origin!r}, by=...), jdbc(...) or kafka(...)"
            )
        if origin is not None and (problem := origin.problem(self.schema)):
            raise self.location.error(f"source {name}: {problem}")
        self.key, self.newest, self.oldest = columns_of(key), columns_of(newest), columns_of(oldest)
        if bool(self.newest) == bool(self.oldest):
            raise self.location.error(
                f"source {name} needs newest or oldest: the columns that choose a version of a row"
            )
        self.location.require((*self.key, *self.newest, *self.oldest, *columns), self.schema.names, f"source {name}")
        delivered = [columns.get(each, each) for each in self.schema.names]
        if repeated := next((each for each in delivered if delivered.count(each) > 1), None):
            raise self.location.error(f"source {name}: two of its columns are delivered as {repeated}")
        fields = zip(delivered, self.schema, strict=True)
        self.delivered = StructType([StructField(each, field.dataType) for each, field in fields])

    @property
    def order(self) -> list[Column]:
        """The order of the versions of a row, of which the first is published.

        Versions of the same instant are ordered by their content, so that the same rows give the same result in
        whatever order they come.
        """
        chosen = [*(F.col(name).desc() for name in self.newest), *(F.col(name).asc() for name in self.oldest)]
        return [*chosen, F.xxhash64(*self.schema.names).desc()]


@dataclass(eq=False)
class Declared:
    """A function that makes a table of a day; it stays callable with DataFrames.

    Attributes:
        function: The function; its name is the table's, and its parameters are what it reads.
        schema: The columns that it returns.
        partition_by: The columns that the files are partitioned by; the first is the day. A state has none.
        expectations: What every row must meet.
        source: The source whose rows are its first parameter; None for one that reads tables only.
        key: The columns that identify a row of the table; empty where nothing says so.
        location: Where it is declared.
        metrics: What is measured of its rows of a day.
        valid: Of a history, the columns with the time in which a row is true.
        newest: Of a state, the columns by which the newest change of a key is known.
        deleted: Of a state, the SQL condition that a change deletes its row.
        is_history: Whether it is a state that keeps each change as a version of its row.
    """

    function: Transform
    schema: StructType
    partition_by: tuple[str, ...]
    expectations: Rules
    source: Source | None
    key: tuple[str, ...]
    location: CodeLocation
    metrics: tuple[Metric, ...] = ()
    valid: tuple[str, str] | None = None
    newest: tuple[str, ...] = ()
    deleted: str = ""
    is_history: bool = False

    def __post_init__(self) -> None:
        update_wrapper(self, self.function)

    def __call__(self, *arguments: Any, **named: Any) -> DataFrame:
        """Calls the function."""
        return self.function(*arguments, **named)

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.function.__name__

    def rules(self, settings: Settings | None = None) -> list[Rule]:
        """What its rows must meet; without settings, by those that this program comes with."""
        if callable(self.expectations):
            return list(self.expectations(settings or _shipped()))
        return list(self.expectations)

    @property
    def feed(self) -> ChangeFeed:
        """Of a state, how its changes are ordered, and which of them delete a row."""
        return ChangeFeed(self.key, self.newest, self.deleted, self.is_history)

    @property
    def is_state(self) -> bool:
        """Whether its rows are merged into those of before, which it also gets."""
        return not self.partition_by

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters, without that of the rows of the source."""
        names = list(inspect.signature(self.function).parameters)
        return names[1:] if self.source else names

    @property
    def reads(self) -> list[str]:
        """The names of the tables that it reads; not that of its own state."""
        return [name for name in self.parameters if not (self.is_state and name == self.name)]

    @property
    def table(self) -> Table:
        """The table, as the warehouse knows it."""
        if self.is_history:
            schema = history.versioned(self.schema, self.newest[0])
            return Table(self.name, schema, key=(*self.key, history.USUAL[0]), validity=history.USUAL)
        if self.is_state:
            return Table(self.name, self.schema, key=self.key, validity=self.valid or history.usual(self.schema))
        if self.source is None:
            return Table(self.name, self.schema, self.partition_by)
        return Table(self.name, schemas.bronze(self.schema.fields), ("date",), source=self.source.name)


def declared(new: Declared) -> Declared:
    """A declaration whose names are checked.

    Raises:
        DeclarationError: Its function has no parameter that it needs, or one that is no table; it expects something of
            a column that is not there; or its module has declared the table before.
    """
    parameters = require_names(new.function, new.location)
    if new.source and not parameters:
        raise new.location.error(
            f"{new.name} needs a first parameter, which gets the rows of the source {new.source.name}"
        )
    if new.is_state and new.name not in new.parameters:
        raise new.location.error(
            f"{new.name} keeps a state: it needs a parameter {new.name}, which gets the rows of before"
        )
    if not new.source and not new.reads:
        raise new.location.error(f"{new.name} reads nothing: name the tables that it reads as its parameters")
    for expectation in new.rules():
        if new.source is None and not isinstance(expectation, Expectation):
            raise new.location.error(
                f"{new.name} expects {expectation.name} of {expectation.column}, which is judged of the rows of a "
                "source: declare it with @daily.source"
            )
        if new.source and isinstance(expectation, Expectation) and expectation.counted:
            raise new.location.error(
                f"{new.name} expects {expectation.name}, and each row of a source is judged alone: its key says which "
                "rows are versions of one; expect it of a @daily.table"
            )
        if expectation.column not in new.schema.names:
            raise new.location.error(
                f"{new.name} expects something of {expectation.column}, which its schema does not have: "
                f"{nearest(expectation.column, new.schema.names)}"
            )
    before = new.function.__globals__.get(new.name)
    if isinstance(before, Declared):
        raise new.location.error(f"the table {new.name} is declared twice, here and in line {before.location.line}")
    return new


def require_names(
    function: Transform, location: CodeLocation, problem: str = "is no table: name each table that it reads"
) -> Sequence[inspect.Parameter]:
    """The parameters of a function, each of which must have a name.

    Raises:
        DeclarationError: One stands for any number of names, which is a problem.
    """
    parameters = list(inspect.signature(function).parameters.values())
    for each in parameters:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            stars = "*" if each.kind is each.VAR_POSITIONAL else "**"
            raise location.error(f"{function.__name__}: {stars}{each.name} {problem}")
    return parameters
