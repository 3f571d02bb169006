"""How numbers and foreign text look in a report: as everywhere, but what is unknown is said in words."""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from app import amounts
from app.redaction import redacted

UNKNOWN: Final = "not known"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def _told(shown: Callable[[float], str]) -> Callable[[float | None], str]:
    return lambda number: UNKNOWN if number is None else shown(number)


count, size, duration, share = map(_told, (amounts.count, amounts.size, amounts.duration, amounts.share))


def things(number: float | None, name: str) -> str:
    """A number of things by their name: `1 job`, `2 jobs`."""
    return f"{UNKNOWN} {name}s" if number is None else amounts.things(number, name)


def tick(milliseconds: float) -> str:
    """A round time at an axis, in the unit that needs no fraction: `500 ms`, `5 s`, `1 min 30 s`."""
    units = ((3_600_000, "h"), (60_000, "min"), (1000, "s"))
    most = next(((unit, name) for unit, name in units if milliseconds >= unit and not milliseconds % unit), (1, "ms"))
    if milliseconds > 60_000 and most[0] == 1000:
        return amounts.duration(milliseconds)
    return "0" if not milliseconds else f"{milliseconds / most[0]:,.0f} {most[1]}"


def times(factor: float | None) -> str:
    """A factor: `3.2 x`."""
    return UNKNOWN if factor is None or not math.isfinite(factor) else f"{factor:.{0 if factor >= 10 else 1}f} x"


def moment(milliseconds: float | None) -> str:
    """An instant, given in milliseconds since the epoch, in UTC; what no calendar has is unknown."""
    if milliseconds is None:
        return UNKNOWN
    try:
        return amounts.moment(datetime.fromtimestamp(milliseconds / 1000, UTC))
    except (OverflowError, ValueError, OSError):
        return UNKNOWN


def amount(name: str, value: float) -> str:
    """A number of a finding, whose unit is in its name: `longest_task_ms`, `spilled_bytes`, `gc_ratio`."""
    units = {"ms": amounts.duration, "bytes": amounts.size, "ratio": amounts.share}
    return units.get(name.rpartition("_")[2], amounts.count)(value)


def words(name: str) -> str:
    """A name of code in words, without the unit that its value shows: `spilled_bytes` is `spilled`.

    A task in milliseconds is its time: `longest_task_ms` is `longest task time`, beside which stand its bytes.
    """
    return re.sub(r"_(ms|bytes|ratio)$", "", re.sub(r"_task_ms$", "_task_time", name)).replace("_", " ")


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
