"""Values, paths and text from elsewhere as a terminal shows them; control characters are escaped."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Final

NULL: Final = "null"


def shown_path(path: Path | str) -> str:
    """A path relative to the working folder if it is below it; other paths and URIs unchanged."""
    text = str(path)
    here = Path.cwd()
    if ":/" in text or not Path(text).is_relative_to(here):
        return literal(text)
    return literal(str(Path(text).relative_to(here)))


def uri(location: Path | str) -> str:
    """The address of a file for a browser; URIs unchanged."""
    return str(location) if ":/" in str(location) else Path(location).absolute().as_uri()


def literal(text: str) -> str:
    r"""The text on one line, with control and invisible characters as escapes such as `\x1b`.

    A terminal obeys them; a page shows them all but those of control, as languages need some (`report.formatting`).
    """
    return "".join(part if part.isprintable() else _escaped(part) for part in text)


def value(content: object) -> str:
    """One cell of a row: decimals with all their digits, instants in UTC, text with escapes."""
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
    """An instant as `2024-01-01T08:15:30.123456Z`; without the `Z` if it has no time zone."""
    if instant.tzinfo is None:
        return instant.isoformat()
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
