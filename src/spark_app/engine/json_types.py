"""What values of JSON the columns of a topic are read from: strictly, no value is bent into another type."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    TimestampType,
)

INSTANT: Final = r"^(?!0000)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z\z"
"""An instant in UTC. Spark's own cast takes `12:30` for today, and Python has no year 0; `$` lets line feeds follow."""
DATE: Final = r"^(?!0000)\d{4}-\d\d-\d\d\z"
NAMES: Final = (
    "string, tinyint, smallint, int, bigint, decimal, float, double, boolean, date, timestamp, array<string>, "
    "map<string,string>"
)


class Value(NamedTuple):
    """A value of JSON.

    Attributes:
        kind: Its type, as `schema_of_variant` names it: STRING, BIGINT, DECIMAL(2,1), DOUBLE, BOOLEAN, OBJECT, ARRAY.
        read: Makes the column that has it in a type of Spark.
    """

    kind: Column
    read: Callable[[str], Column]

    @property
    def is_number(self) -> Column:
        """Whether it is a number whose digits are all known: not one with an exponent."""
        return (self.kind == "BIGINT") | self.kind.startswith("DECIMAL")


def is_known(kind: DataType) -> bool:
    """Whether a column of a type can be read from JSON."""
    if isinstance(kind, MapType):
        return kind.keyType == kind.valueType == StringType()
    if isinstance(kind, ArrayType):
        return kind.elementType == StringType()
    return isinstance(kind, DecimalType) or type(kind) in _NAMES


def column(value: Value, kind: DataType) -> Column:
    """A value in the type of a column; null if it has another type.

    Text is a string, an integer a number without a fraction, an amount a number or its digits as a string, an instant a
    string in UTC, a date a string; what is in an array or an object becomes text.
    """
    return F.when(*_condition_and_value(value, kind))


def name(kind: DataType) -> str:
    """How the type is called where a value has another one."""
    return _NAMES.get(type(kind), kind.simpleString())


def digits(kind: DecimalType) -> str:
    """What a number looks like that has room in a column, all its digits kept."""
    return rf"^-?0*\d{{1,{kind.precision - kind.scale}}}(\.\d{{1,{kind.scale}}}0*)?\z"


def _condition_and_value(value: Value, kind: DataType) -> tuple[Column, Column]:
    is_text, text = value.kind == "STRING", value.read("string")
    if isinstance(kind, StringType):
        return is_text, text
    if isinstance(kind, TimestampType):
        return is_text & text.rlike(INSTANT), text.try_cast(kind)
    if isinstance(kind, DateType):
        return is_text & text.rlike(DATE), text.try_cast(kind)
    if isinstance(kind, DecimalType):
        return (is_text | value.is_number) & text.rlike(digits(kind)), text.try_cast(kind)
    if isinstance(kind, DoubleType | FloatType):
        return value.is_number | (value.kind == "DOUBLE"), value.read(kind.simpleString())
    if isinstance(kind, BooleanType):
        return value.kind == "BOOLEAN", value.read("boolean")
    if isinstance(kind, MapType):
        return value.kind == "OBJECT", value.read("map<string,string>")
    if isinstance(kind, ArrayType):
        return value.kind.startswith("ARRAY"), value.read("array<string>")
    return value.kind == "BIGINT", text.try_cast(kind)


_NAMES: Final[Mapping[type[DataType], str]] = {
    ArrayType: "array",
    BooleanType: "boolean",
    ByteType: "integer",
    DateType: "date",
    DoubleType: "number",
    FloatType: "number",
    IntegerType: "integer",
    LongType: "integer",
    MapType: "object",
    ShortType: "integer",
    StringType: "text",
    TimestampType: "instant in UTC",
}
