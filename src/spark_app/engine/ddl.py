"""Schemas as Spark writes them, `amount decimal(12, 2) COMMENT 'in EUR', ...`, read without Spark.

Spark's own parser is in its JVM, which takes seconds to start: this one finds a mistake first.
"""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
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
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

ATOMIC: Final[Mapping[str, type[DataType]]] = {
    "bigint": LongType,
    "binary": BinaryType,
    "boolean": BooleanType,
    "byte": ByteType,
    "date": DateType,
    "double": DoubleType,
    "float": FloatType,
    "int": IntegerType,
    "integer": IntegerType,
    "long": LongType,
    "real": FloatType,
    "short": ShortType,
    "smallint": ShortType,
    "string": StringType,
    "timestamp": TimestampType,
    "timestamp_ntz": TimestampNTZType,
    "tinyint": ByteType,
}
DECIMALS: Final = ("decimal", "dec", "numeric")
NESTED: Final = ("array", "map", "struct")
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*'|\"[^\"]*\")|(?P<name>`(?:[^`]|``)+`|\w+)|(?P<mark>[<>(),:])|(?P<rest>\S))"
)


def schema(text: str) -> StructType:
    """The columns that a text declares.

    Raises:
        ValueError: It cannot be read; the message says where, and names the nearest type.
    """
    reader = _Reader(text)
    fields = reader.fields(end=None)
    names = [field.name.lower() for field in fields]  # Spark takes `Hour` and `hour` for one
    for field, name in zip(fields, names, strict=True):
        if names.count(name) > 1:
            raise ValueError(f"the column {field.name} is declared twice")
    return StructType(fields)


def data_type(text: str) -> DataType:
    """The type that a text names: `decimal(10, 3)`; of several columns, `a int, b string`, that of their struct.

    Raises:
        ValueError: It cannot be read.
    """
    words = text.strip().partition("<")[0].partition("(")[0].strip().lower()
    if words in {*ATOMIC, *DECIMALS, *NESTED} or len(words.split()) == 1:
        return _Reader(text).whole_type()
    return schema(text)


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, text: str) -> None:
        self._tokens = [match for match in _TOKEN.finditer(text) if match.group().strip()]
        self._next = 0

    def whole_type(self) -> DataType:
        """The type that the whole text names."""
        kind = self._type("the function")
        if self._peek() is not None:
            raise ValueError(f"{self._peek()!r} stands where the end must be")
        return kind

    def fields(self, *, end: str | None) -> list[StructField]:
        """The columns up to a mark, or to the end of the text."""
        found = [self._field(is_nested=end is not None)]
        while self._peek() == ",":
            self._take()
            found.append(self._field(is_nested=end is not None))
        if self._peek() != end:
            raise ValueError(f"{self._peek() or 'the end'!r} stands where {end or 'a comma'!r} must be")
        return found

    def _field(self, *, is_nested: bool) -> StructField:
        name = self._name("the name of a column")
        if is_nested and self._peek() == ":":
            self._take()
        kind, is_nullable, metadata = self._type(name), True, dict[str, str]()
        while (word := (self._peek() or "").lower()) in ("not", "comment"):
            self._take()
            if word == "not":
                if (self._take() or "").lower() != "null":
                    raise ValueError(f"{name}: NOT stands without NULL")
                is_nullable = False
            else:
                metadata["comment"] = self._text(name)
        return StructField(name, kind, is_nullable, metadata)

    def _type(self, column: str) -> DataType:
        word = self._name(f"the type of {column}")
        name = word.lower()
        if name in ATOMIC:
            return ATOMIC[name]()
        if name in DECIMALS:
            return self._decimal(column)
        if name not in NESTED:
            near = get_close_matches(name, [*ATOMIC, "decimal", *NESTED], n=1)
            raise ValueError(f"{column}: {word!r} is no type of Spark{f'; do you mean {near[0]}?' if near else ''}")
        self._mark("<", column)
        made: Mapping[str, Callable[[], DataType]] = {
            "array": lambda: ArrayType(self._type(column)),
            "map": lambda: MapType(self._type(column), self._second(column)),
            "struct": lambda: StructType(self.fields(end=">")),
        }
        kind = made[name]()
        self._mark(">", column)
        return kind

    def _second(self, column: str) -> DataType:
        self._mark(",", column)
        return self._type(column)

    def _decimal(self, column: str) -> DecimalType:
        if self._peek() != "(":
            return DecimalType()
        self._take()
        numbers = [self._number(column)]
        if self._peek() == ",":
            self._take()
            numbers.append(self._number(column))
        self._mark(")", column)
        precision, scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
        if not 0 < precision <= 38 or scale > precision:
            raise ValueError(
                f"{column}: decimal({precision}, {scale}) must have 1 to 38 digits, and no more of them after the point"
            )
        return DecimalType(precision, scale)

    def _number(self, column: str) -> int:
        word = self._take() or ""
        if not word.isdecimal():
            raise ValueError(f"{column}: {word or 'the end'!r} stands where a number of digits must be")
        return int(word)

    def _name(self, what: str) -> str:
        match = self._tokens[self._next] if self._next < len(self._tokens) else None
        if match is None or match["name"] is None:
            raise ValueError(f"{self._peek() or 'the end'!r} stands where {what} must be")
        self._next += 1
        word = match["name"]
        return word[1:-1].replace("``", "`") if word.startswith("`") else word

    def _text(self, column: str) -> str:
        match = self._tokens[self._next] if self._next < len(self._tokens) else None
        if match is None or match["text"] is None:
            raise ValueError(f"{column}: COMMENT stands without a text in quotes")
        self._next += 1
        return match["text"][1:-1].replace("''", "'")

    def _mark(self, mark: str, column: str) -> None:
        word = self._take()
        if word != mark:
            raise ValueError(f"{column}: {word or 'the end'!r} stands where {mark!r} must be")

    def _peek(self) -> str | None:
        return self._tokens[self._next].group().strip() if self._next < len(self._tokens) else None

    def _take(self) -> str | None:
        word = self._peek()
        self._next += 1
        return word
