"""Numbers and instants as the JSON document has them: as exact as their unit, and null where they are unknown."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

DIGITS: Final = 4
_WHOLE: Final = ("ms", "bytes")


def ratio(value: float | None) -> float | None:
    """A share, or hours, with four digits; unknown if it is no number."""
    return None if value is None or not math.isfinite(value) else round(value, DIGITS)


def whole(value: float | None) -> int | None:
    """Milliseconds, bytes or a count; never below 0, as clocks that were set back would have it."""
    return None if value is None or not math.isfinite(value) else max(0, round(value))


def instant(milliseconds: float | None) -> datetime | None:
    """Milliseconds since the epoch as an instant in UTC; unknown if no calendar has it."""
    if milliseconds is None:
        return None
    try:
        return datetime.fromtimestamp(round(milliseconds) / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def evidence(numbers: Mapping[str, float]) -> dict[str, int | float]:
    """The numbers of a finding, each as exact as its unit, which its name ends with."""
    return {name: _rounded(name, number) for name, number in numbers.items() if math.isfinite(number)}


def _rounded(name: str, number: float) -> int | float:
    unit = name.rpartition("_")[2]
    if unit in _WHOLE or number == round(number):
        return round(number)
    return round(number, DIGITS if unit == "ratio" else 2)
