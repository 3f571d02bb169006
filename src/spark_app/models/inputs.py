"""What a model is told: its examples, which are rows of a table, and their features."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pyspark.sql import Column, DataFrame, Row

Kind = Literal["category", "number"]


@dataclass(frozen=True)
class Feature:
    """One input of a model.

    Attributes:
        name: Its column.
        kind: A category is text and may be null; a number never is.
        group: What it is about: the drifts of the features of a group are seen together.
        meaning: One line.
        value: Builds the column; it reads the columns that are known of an example, and those of its history.
    """

    name: str
    kind: Kind
    group: str
    meaning: str
    value: Callable[[], Column]


@dataclass(frozen=True)
class Examples:
    """The rows that a model is about.

    Attributes:
        table: Their table, which has a day.
        key: The column that identifies one.
        entity: The column that identifies whose history counts, such as a customer.
        at: The column with the instant at which a model is asked about one.
        known: The columns that are known at that instant; others change afterwards.
        as_made: What columns that change afterwards have at that instant; those that are not here, null.
    """

    table: str
    key: str
    entity: str
    at: str
    known: Sequence[str]
    as_made: Mapping[str, Any] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, str, str]:
        """The columns that are no features, and that each row of features has."""
        return self.key, self.entity, self.at

    def row_as_made(self, row: Row, *, day: str | None) -> Row:
        """A row of the table as a request knows it: with the columns that are known at its instant, and its day."""
        known = {*self.known, day}
        values = row.asDict()
        return Row(**{name: value if name in known else self.as_made.get(name) for name, value in values.items()})


@dataclass(frozen=True)
class FeatureSource:
    """What computes the features of examples.

    Attributes:
        examples: The examples.
        reads: The tables that it reads.
        inputs: Makes the features of the examples of the days `first` to `last` from the tables, each by its name.
    """

    examples: Examples
    reads: Sequence[str]
    inputs: Callable[..., DataFrame]
