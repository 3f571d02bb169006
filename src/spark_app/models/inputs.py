"""The inputs of a model: its examples, which are rows of a table, and their features."""

import datetime
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_app.warehouse.tables import Table

Kind = Literal["category", "number"]
Span = tuple[datetime.date, datetime.date]
"""A first and a last day."""
DAY: Final = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Feature:
    """One input of a model.

    Attributes:
        name: Its column.
        kind: A category is text and may be null; a number never is, 0 stands for an unknown one.
        group: What it is about: the drifts of the features of a group are seen together.
        meaning: One line.
        value: Computes it of columns, each a parameter of its name; None for the column of the feature's name.
    """

    name: str
    kind: Kind
    group: str
    meaning: str
    value: Callable[..., Column] | None = None

    @property
    def reads(self) -> list[str]:
        """The columns that it is computed of."""
        return list(inspect.signature(self.value).parameters) if self.value else [self.name]

    @property
    def column(self) -> Column:
        """Its column, of rows with the columns that it is computed of."""
        value = self.value(*map(F.col, self.reads)) if self.value else F.col(self.name)
        typed = F.coalesce(value.cast("double"), F.lit(0.0)) if self.kind == "number" else value.cast("string")
        return typed.alias(self.name)


@dataclass(frozen=True)
class Examples:
    """The rows that a model is about.

    Attributes:
        table: Their table.
        day: Its column with the day.
        key: The column that identifies one.
        entity: The column that identifies whose history counts, such as a customer.
        at: The column with the instant at which a model is asked about one.
        known: The columns that are known at that instant, these three among them; others change afterwards.
    """

    table: str
    day: str
    key: str
    entity: str
    at: str
    known: Sequence[str]

    @property
    def keys(self) -> tuple[str, str, str]:
        """The columns that are no features, and that each row of features has."""
        return self.key, self.entity, self.at


@dataclass(frozen=True)
class FeatureSet:
    """Features of examples, computed alike for training, for the scores of a day, and for requests.

    It stays callable as its function is.

    Attributes:
        examples: The examples.
        features: Their features.
        window_days: How many days before an example its features look at.
        function: Adds to the columns of examples what features need beside them. Its first parameter gets the
            examples, each other one the table of its name: of one with days the rows of the days of the examples and
            of the window before, and where requests are answered, of one with the entity those of the entities asked
            about.
    """

    examples: Examples
    features: Sequence[Feature]
    window_days: int
    function: Callable[..., DataFrame]

    def __call__(self, *arguments: Any, **named: Any) -> DataFrame:
        """Calls the function."""
        return self.function(*arguments, **named)

    @property
    def reads(self) -> list[str]:
        """The tables that it reads, that of the examples first."""
        return list(dict.fromkeys([self.examples.table, *parameters(self.function)[1:]]))

    def of_days(
        self, frames: Mapping[str, DataFrame], tables: Mapping[str, Table], first: datetime.date, last: datetime.date
    ) -> DataFrame:
        """One row per example of days: its keys and its features.

        Args:
            frames: The tables that it reads, by their names.
            tables: Their declarations.
            first: The first day.
            last: The last day.
        """
        examples = in_days(frames[self.examples.table], self.examples.day, first, last)
        return self._of(examples, _in_span(frames, tables, self.span([first, last])), ())

    def of_requests(
        self,
        asked: DataFrame,
        frames: Mapping[str, DataFrame],
        tables: Mapping[str, Table],
        days: Sequence[datetime.date],
        *,
        keep: Sequence[str] = (),
    ) -> DataFrame:
        """One row per example that is asked about: its keys, its features, and the columns to keep.

        Args:
            asked: The examples, with the columns that are known of them, and those to keep.
            frames: The tables that it reads, by their names.
            tables: Their declarations.
            days: The days of the examples.
            keep: Columns that no feature sees.
        """
        given = _in_span(frames, tables, self.span(days))
        entity = self.examples.entity
        entities = F.broadcast(asked.select(entity))  # a semi join needs no shuffle that makes them distinct
        of_entities = {
            name: rows.join(entities, entity, "left_semi") if entity in rows.columns else rows
            for name, rows in given.items()
        }
        return self._of(asked, of_entities, keep)

    def span(self, days: Sequence[datetime.date]) -> Span | None:
        """The first and the last day of the tables that the features of examples of days see; None without days."""
        return (min(days) - self.window_days * DAY, max(days)) if days else None

    def _of(self, examples: DataFrame, given: Mapping[str, DataFrame], keep: Sequence[str]) -> DataFrame:
        names = parameters(self.function)[1:]
        known = self.with_history(examples.select(*self.examples.known, *keep), {name: given[name] for name in names})
        return known.select(*self.examples.keys, *(feature.column for feature in self.features), *keep)

    def with_history(self, examples: DataFrame, given: Mapping[str, DataFrame]) -> DataFrame:
        """The examples, with what the function adds to them."""
        return self.function(examples, **given)


def parameters(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters of a function that have a position."""
    found = inspect.signature(function).parameters.values()
    return [each.name for each in found if each.kind is each.POSITIONAL_OR_KEYWORD]


def in_days(rows: DataFrame, day: str | None, first: datetime.date, last: datetime.date) -> DataFrame:
    """The rows of days of a table; all rows of one without days."""
    return rows if day is None else rows.where(F.col(day).between(F.lit(first), F.lit(last)))


def _in_span(frames: Mapping[str, DataFrame], tables: Mapping[str, Table], span: Span | None) -> dict[str, DataFrame]:
    """The rows of tables in days; none without days."""
    if span is None:
        return {name: rows.where(F.lit(False)) for name, rows in frames.items()}
    return {name: in_days(rows, tables[name].day, *span) for name, rows in frames.items()}
