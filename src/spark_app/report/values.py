"""Values as the JSON document has them: numbers as exact as their unit, null where they are unknown, texts masked."""

import math
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeVar

from msgspec import Struct, inspect

from spark_app.report.formatting import instant, line, text

Document = TypeVar("Document", bound=Struct)
MAX_TEXT: Final = 800
"""Characters of a text whose type says no other number."""
DIGITS: Final = 4
_WHOLE: Final = ("ms", "bytes")


def ratio(value: float | None) -> float | None:
    """A share, or hours, with four digits; unknown if it is no number."""
    return None if value is None or not math.isfinite(value) else round(value, DIGITS)


def quotient(part: float | None, whole: float) -> float | None:
    """A part of a whole as a number; unknown where the part is, or the whole is nothing."""
    return None if part is None or whole <= 0 else part / whole


def whole(value: float | None) -> int | None:
    """Milliseconds, bytes or a count; never below 0, as clocks that were set back would have it."""
    return None if value is None or not math.isfinite(value) else max(0, round(value))


def evidence(numbers: Mapping[str, float]) -> dict[str, int | float]:
    """The numbers of a finding, each as exact as its unit, which its name ends with."""
    return {name: _rounded(name, number) for name, number in numbers.items() if math.isfinite(number)}


def _rounded(name: str, number: float) -> int | float:
    unit = name.rpartition("_")[2]
    if unit in _WHOLE or number == round(number):
        return round(number)
    return round(number, DIGITS if unit == "ratio" else 2)


def document(kind: type[Document], source: object) -> Document:
    """What the document says of an object, by the attributes that have the names of the fields.

    Args:
        kind: A struct of the schema: its types say how exact numbers are, and how long texts.
        source: Has the attributes; may have more.
    """
    return kind(**{name: _shown(each, getattr(source, name)) for name, each in _fields(kind).items()})


@cache
def _fields(kind: type[Struct]) -> dict[str, inspect.Type]:
    about = inspect.type_info(kind)
    return {field.name: field.type for field in about.fields} if isinstance(about, inspect.StructType) else {}


def _shown(kind: inspect.Type, value: Any) -> Any:
    """A value as its type says; what is neither a text nor a number is taken as it is."""
    match kind:
        case inspect.UnionType(types=types):
            known = next(each for each in types if not isinstance(each, inspect.NoneType))
            return None if value is None else _shown(known, value)
        case inspect.Metadata():
            return _annotated(kind, value)
        case inspect.StrType():
            return text(value, MAX_TEXT)
        case inspect.IntType() | inspect.FloatType():
            return _number(kind, value)
        case inspect.DateTimeType():
            return value if isinstance(value, datetime) else instant(value)
        case inspect.ListType(item_type=item):
            return [_shown(item, each) for each in value]
        case inspect.DictType(key_type=key, value_type=item):
            return {_shown(key, name): _shown(item, each) for name, each in value.items()}
        case inspect.StructType(cls=cls):
            return cls(*value) if type(value) is tuple else document(cls, value)
    return value


def _annotated(kind: inspect.Metadata, value: Any) -> Any:
    """A value as the annotation of its type says."""
    match kind:
        case inspect.Metadata(extra={"shown": shown}):
            return shown(value)
        case inspect.Metadata(extra={"line": most}):
            return line(value, most)
    return _shown(kind.type, value)


def _number(kind: inspect.IntType | inspect.FloatType, value: float) -> float | None:
    """A number as exact as its type; the whole numbers of the domain are not rounded yet."""
    if isinstance(kind, inspect.FloatType) and kind.multiple_of != 1:
        return ratio(value)
    return whole(value) if kind.ge == 0 else round(value)
