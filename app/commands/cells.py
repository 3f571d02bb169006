"""How one value looks to a person: counts, sizes, times, cells of rows; none of it is taken for markup."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Final

UNKNOWN: Final = "-"
NULL: Final = "null"
UNITS: Final = ("B", "kB", "MB", "GB", "TB")


def count(number: int | None) -> str:
    """A whole number with thousands separated: `1,234,567`; `-` when it is not known."""
    return UNKNOWN if number is None else f"{number:,}"


def size(number: int | None) -> str:
    """A number of bytes in the largest unit that leaves at least 1: `12.3 MB`; `-` when it is not known."""
    if number is None:
        return UNKNOWN
    if number < 1000:
        return f"{number} {UNITS[0]}"
    power = next((power for power in (1, 2, 3) if number < 999.95 * 1000**power), 4)
    return f"{number / 1000**power:.1f} {UNITS[power]}"


def duration(seconds: float | None) -> str:
    """A length of time: `0.4 s`, `2 min 05 s`, `1 h 02 min`; `-` when it is not known."""
    if seconds is None:
        return UNKNOWN
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def moment(instant: datetime | None) -> str:
    """An instant in UTC to the second: `2024-01-01 08:15:30Z`; `-` when it is not known."""
    if instant is None:
        return UNKNOWN
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def place(path: Path | str) -> str:
    """A path as it is typed from here: relative when it lies below the working folder; a URI as it is."""
    text = str(path)
    here = Path.cwd()
    if ":/" in text or not Path(text).is_relative_to(here):
        return literal(text)
    return literal(str(Path(text).relative_to(here)))


def literal(text: str) -> str:
    r"""The text on one line, with what a terminal would act on (control and invisible characters) as `\x1b`."""
    return "".join(part if part.isprintable() else _escaped(part) for part in text)


def value(content: object) -> str:
    """One cell of a row: decimals with all their digits, instants in UTC, text shown literally."""
    match content:
        case None:
            return NULL
        case str():
            return literal(content)
        case bool():
            return str(content).lower()
        case Decimal():
            return format(content, "f")
        case datetime():
            return iso(content)
        case date():
            return content.isoformat()
        case bytes() | bytearray():
            return content.hex()
        case Mapping():
            return "{" + ", ".join(f"{value(key)}: {value(item)}" for key, item in content.items()) + "}"
        case Sequence():
            return "[" + ", ".join(value(item) for item in content) + "]"
    return literal(str(content))


def iso(instant: datetime) -> str:
    """An instant as `2024-01-01T08:15:30.123456Z`; without the `Z` when it carries no time zone."""
    if instant.tzinfo is None:
        return instant.isoformat()
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
