"""How numbers and foreign text look in a report; what is unknown is said, never shown as 0."""

import math
import re
from datetime import UTC, datetime
from typing import Final

from app.redaction import redacted

UNKNOWN: Final = "not known"
UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def count(number: float | None) -> str:
    """A number of things with thousands separated: `1,234,567`."""
    if number is None:
        return UNKNOWN
    return f"{number:,.0f}" if number == round(number) or abs(number) >= 100 else f"{number:,.1f}"


def size(number: float | None) -> str:
    """A number of bytes in the largest unit that leaves at least 1: `12.3 MB`."""
    if number is None:
        return UNKNOWN
    if number < 1000:
        return f"{number:.0f} {UNITS[0]}"
    power = next((power for power in (1, 2, 3) if number < 999.95 * 1000**power), 4)
    return f"{number / 1000**power:.1f} {UNITS[power]}"


def span(milliseconds: float | None) -> str:
    """A length of time in milliseconds: `3 ms`, `0.42 s`, `12.3 s`, `2 min 05 s`, `1 h 02 min`."""
    if milliseconds is None:
        return UNKNOWN
    if milliseconds < 100:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60:,} h {minutes % 60:02d} min"


def tick(milliseconds: float) -> str:
    """A round time at an axis, in the unit that needs no fraction: `500 ms`, `5 s`, `1 min 30 s`."""
    units = ((3_600_000, "h"), (60_000, "min"), (1000, "s"))
    most = next(((unit, name) for unit, name in units if milliseconds >= unit and not milliseconds % unit), (1, "ms"))
    if milliseconds > 60_000 and most[0] == 1000:
        return span(milliseconds)
    return "0" if not milliseconds else f"{milliseconds / most[0]:,.0f} {most[1]}"


def share(ratio: float | None) -> str:
    """A part of a whole as a percentage: `12 %`, `0.3 %`."""
    if ratio is None:
        return UNKNOWN
    percent = ratio * 100
    if 0 < percent < 0.05:
        return "< 0.1 %"
    return f"{percent:.0f} %" if percent >= 10 or percent == round(percent) else f"{percent:.1f} %"


def times(factor: float | None) -> str:
    """A factor: `3.2 x`."""
    return UNKNOWN if factor is None or not math.isfinite(factor) else f"{factor:.{0 if factor >= 10 else 1}f} x"


def moment(milliseconds: float | None) -> str:
    """An instant, given in milliseconds since the epoch, in UTC: `2024-01-01 08:15:30Z`."""
    if milliseconds is None:
        return UNKNOWN
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"
    except (OverflowError, ValueError, OSError):
        return UNKNOWN


def amount(name: str, value: float) -> str:
    """A number of a finding, whose unit is in its name: `longest_task_ms`, `spilled_bytes`, `gc_ratio`."""
    for ending, shown in (("_ms", span), ("_bytes", size), ("_ratio", share), ("_share", share)):
        if name.endswith(ending):
            return shown(value)
    return span(value * 1000) if name.endswith("_seconds") else count(value)


def words(name: str) -> str:
    """A name of code in words, without the unit that its value shows: `longest_task_ms` is `longest task`."""
    return re.sub(r"_(ms|bytes|ratio|share|seconds)$", "", name).replace("_", " ")


def text(content: object, most: int = 300) -> str:
    """Foreign text: secrets masked, control characters made visible, and cut with a word on how long it was."""
    whole = str(content)
    shown = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", redacted(whole[: most * 4]))
    if len(shown) <= most and len(whole) <= most * 4:
        return shown
    return f"{shown[:most]}… (cut: {len(whole):,} characters)"


def line(content: object, most: int = 120) -> str:
    """The same on one line, cut without a word."""
    joined = " ".join(text(content, most * 2).split())
    return joined if len(joined) <= most else joined[: most - 1] + "…"
