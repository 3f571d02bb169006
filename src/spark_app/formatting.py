"""Numbers as people read them, the same in tables, findings and reports; an unknown number is `-`, never 0.

Sizes are in powers of 1024 (KiB, MiB, GiB), as in Spark's UI and settings. A small number that would round to 0 is
shown as less than the smallest number: `< 0.1`.
"""

from datetime import UTC, datetime
from typing import Final

UNKNOWN: Final = "-"
_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")


def count(number: float | None) -> str:
    """A count with thousands separators: `1,234,567`, `2.5`."""
    if number is None:
        return UNKNOWN
    if 0 < number < 0.05:
        return "< 0.1"
    return f"{number:,.0f}" if number == round(number) or abs(number) >= 100 else f"{number:,.1f}"


def quantity(number: float | None, name: str) -> str:
    """A count with its noun: `0 tasks`, `1 task`, `1,200 tasks`."""
    return f"{count(number)} {name}{'' if number == 1 else 's'}"


def size(number: float | None) -> str:
    """Bytes in the largest unit that gives at least 1: `512 B`, `1.5 GiB`."""
    if number is None:
        return UNKNOWN
    if number < 1023.5:
        return f"{number:.0f} B"
    power = next((power for power in (1, 2, 3) if number < 1023.95 * 1024**power), 4)
    return f"{number / 1024**power:.1f} {_UNITS[power - 1]}"


def duration(ms: float | None) -> str:
    """A duration, given in milliseconds: `3 ms`, `12.3 s`, `2 min 05 s`, `1 h 02 min`."""
    if ms is None:
        return UNKNOWN
    if ms < 999.5:
        return "< 1 ms" if 0 < ms < 0.5 else f"{ms:.0f} ms"
    if ms < 59_950:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02d} s"
    return f"{minutes // 60:,} h {minutes % 60:02d} min"


def between(low_ms: float | None, high_ms: float | None) -> str:
    """What follows an estimated duration that has a range: ` (20.0 s to 1 min 00 s)`; empty without one."""
    return "" if low_ms is None or high_ms is None else f" ({duration(low_ms)} to {duration(high_ms)})"


def age(seconds: float) -> str:
    """How long ago something was, in the largest whole unit: `3 d ago`, `2 h ago`, `5 min ago`, `just now`."""
    units = ((86_400, "d"), (3_600, "h"), (60, "min"))
    return next((f"{seconds // unit:,.0f} {name} ago" for unit, name in units if seconds >= unit), "just now")


def share(ratio: float | None) -> str:
    """A ratio as a percentage: `12 %`, `0.3 %`."""
    if ratio is None:
        return UNKNOWN
    percent = ratio * 100
    if 0 < percent < 0.05:
        return "< 0.1 %"
    return f"{percent:.0f} %" if percent >= 9.95 or percent == round(percent) else f"{percent:.1f} %"


def timestamp(instant: datetime | None) -> str:
    """An instant in UTC to the second: `2024-01-01 08:15:30Z`."""
    return UNKNOWN if instant is None else f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
